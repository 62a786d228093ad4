"""The target `cpu`: a native library with a C header, for this machine or for another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from fewbit import __version__
from fewbit.artifact import (
    STATE_FILE,
    Folder,
    Manifest,
    Variant,
    signature_of,
    write_folder,
)
from fewbit.errors import UsageError
from fewbit.files import PathLike
from fewbit.kernels.isa import Isa, names
from fewbit.program import Program
from fewbit.quant.float_weights import FloatWeights
from fewbit.state import initial_state
from fewbit.targets.cpu import objects
from fewbit.targets.cpu.archive import Member, archive
from fewbit.targets.cpu.cblas import Cblas, find_blas
from fewbit.targets.cpu.compilation import INSERTABLE, OURS, STAGES, Compilation
from fewbit.targets.cpu.described import described_port, described_weight
from fewbit.targets.cpu.dispatch import dispatch_object, variant_functions
from fewbit.targets.cpu.header import header_text
from fewbit.targets.cpu.interface import STATE_BYTES, Interface
from fewbit.targets.cpu.link import link_shared
from fewbit.targets.cpu.variants import compile_variants, variants_of
from fewbit.targets.target import NO_TUNING, Inserted, Request, Target, Watcher
from fewbit.tensor_file import write


class Cpu(Target):
    """Native code: a shared and a static library."""

    stages = STAGES
    ours = OURS
    upstream = tuple(stage for stage in INSERTABLE if stage not in OURS)
    suffixes = MappingProxyType({"llvm": ".ll", "object": ".s"})
    options = frozenset({"blas", "profile", "cpu_variants", "tuning_db"})
    parts = names()

    def check(self, request: Request) -> None:
        isa_of(request.target)
        _variants(request)
        find_blas(request.options.get("blas"))

    def compile(self, program: Program, request: Request, output: Path) -> Folder:
        return compile_cpu(
            program,
            request.name,
            request.target,
            output,
            inserted=request.passes,
            watch=request.watch,
            blas=find_blas(request.options.get("blas")),
            profile=request.options.get("profile", False),
            variants=_variants(request),
            isa=_tuned(program, request),
            float_weights=request.float_weights,
        )

    def lower(self, program: Program, stage: str, request: Request) -> str:
        if "cpu_variants" in request.options:
            raise UsageError(
                "one stage is the program for one processor, and cpu_variants names several",
                hint="give one of them as the target, or write all stages with --dump-ir",
            )
        made = Compilation(
            program,
            request.name,
            _tuned(program, request) or isa_of(request.target),
            request.passes,
            request.watch,
            find_blas(request.options.get("blas")),
            request.options.get("profile", False),
        )
        made.run(stage)
        return made.text(stage)

    def load(self, folder: Folder) -> Any:
        from fewbit.runtime.native import load_native

        return load_native(folder)


def _variants(request: Request) -> Sequence[Isa]:
    given = request.options.get("cpu_variants")
    return () if given is None else variants_of(given, isa_of(request.target))


def _tuned(program: Program, request: Request) -> Isa | None:
    """This machine with the tiles that a search found for the program, if there was one."""
    given = request.options.get("tuning_db")
    if given == NO_TUNING or request.target != "cpu" or "cpu_variants" in request.options:
        return None
    from fewbit.tune.database import find_database

    database = find_database(given)
    if database is None:
        return None
    from fewbit.tune.cpu import tuned_isa

    return tuned_isa(program, database)


def isa_of(target: str) -> Isa:
    """The processor that `cpu`, `cpu:aarch64` or `cpu:x86-64-v3` means."""
    kind, _, processor = target.partition(":")
    if kind != "cpu" or (processor and processor not in (*names(), "host")):
        raise UsageError(
            f"there is no target '{target}'",
            hint=f"cpu is this machine; others are {', '.join(f'cpu:{n}' for n in names())}",
        )
    return Isa.of(processor or "host")


def compile_cpu(
    program: Program,
    name: str,
    target: str,
    output: PathLike,
    *,
    inserted: Inserted | None = None,
    watch: Watcher | None = None,
    blas: Cblas | None = None,
    profile: bool = False,
    variants: Sequence[Isa] = (),
    isa: Isa | None = None,
    float_weights: FloatWeights | None = None,
) -> Folder:
    """Compile to `lib<name>.so`, `lib<name>.a` and `<name>.h` in a folder.

    With `variants`, the library has code for each of these processors. `isa` is the target's own
    with tiles that a search found.
    """
    isa = isa or isa_of(target)
    compilation = Compilation(program, name, isa, inserted or {}, watch, blas, profile)
    interface = compilation.interface
    name = interface.name
    if variants:
        made, weights = compile_variants(compilation, variants)
        options = {"triple": isa.triple}
    else:
        compilation.run(STAGES[-1])
        made, weights = [compilation], compilation.weights
        options = {"processor": isa.cpu, "triple": isa.triple, "features": isa.features}
    arena = _largest([_arena_bytes(each) for each in made])
    members = [Member(_object_name(each), each.code, (*each.symbols.values(),)) for each in made]
    tiles = {tile.name: tile for each in made for tile in each.tiles}
    members += [Member(t.name, t.data, (*t.symbols.values(),)) for t in tiles.values()]
    if variants:
        symbols = [each.symbols for each in made]
        public = (*interface.functions, *variant_functions(interface))
        dispatch = dispatch_object(interface, variants, symbols, arena)
        members.insert(0, Member(f"{name}.o", dispatch, public))
    image = objects.weights_object(f"{name}_weights", weights.tobytes(), isa)
    members.append(Member(f"{name}_weights.o", image, (f"{name}_weights",)))
    if profile:
        options["profile"] = "cycles"
    libraries: dict[str, str] = {}
    for each in made:
        calls = each.blas_calls
        if calls is not None and calls.symbols:
            options["blas"] = calls.library.name
            libraries = calls.libraries
    manifest = Manifest(
        name=name,
        target=target,
        compiler=__version__,
        inputs=tuple(map(described_port, interface.inputs)),
        outputs=tuple(map(described_port, interface.outputs)),
        recipe=program.recipe,
        arena_bytes=arena,
        weight_bytes=weights.nbytes,
        weights=tuple(map(described_weight, weights.entries)),
        float_weights=float_weights,
        variants=tuple(map(_variant, made)) if variants else (),
        options=options,
        files={},
    )
    signature = signature_of(manifest)
    symbol = f"{name}_signature"
    signed = objects.text_object(symbol, signature, isa)
    members.append(Member(f"{symbol}.o", signed, (symbol,)))
    described = _description(compilation)
    text = header_text(interface, arena, described, signature, [each.name for each in variants])
    files = {
        f"lib{name}.so": link_shared([m.data for m in members], f"lib{name}.so", isa, libraries),
        f"lib{name}.a": archive(members),
        f"{name}.h": text.encode(),
    }
    files |= _initial_state(program, interface)
    return write_folder(Path(output), manifest, files)


def _initial_state(program: Program, interface: Interface) -> dict[str, bytes]:
    """A file of what state starts from; none where that is zeros."""
    values = initial_state(program.module, program.store)
    if not any(array.any() for array in values.values()):
        return {}
    named = {interface.inputs[number].name: array for number, array in values.items()}
    with TemporaryDirectory() as folder:
        path = Path(folder) / STATE_FILE
        write(path, named, {})
        return {STATE_FILE: path.read_bytes()}


def _object_name(compilation: Compilation) -> str:
    name = compilation.interface.name
    return f"{name}.{compilation.isa.name}.o" if compilation.variant else f"{name}.o"


def _arena_bytes(compilation: Compilation) -> int | None:
    arena = compilation.arena.static
    return None if arena is None else arena + STATE_BYTES


def _largest(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return max(known) if len(known) == len(sizes) else None


def _variant(compilation: Compilation) -> Variant:
    isa, weights = compilation.isa, compilation.weights
    return Variant(
        name=isa.name,
        processor=isa.cpu,
        features=isa.features,
        arena_bytes=_arena_bytes(compilation),
        weight_bytes=weights.bytes_read,
        weights=tuple(map(described_weight, weights.entries)),
    )


def _description(compilation: Compilation) -> str:
    recipe = compilation.program.recipe or "float"
    return f"{compilation.interface.name}, {recipe}, compiled by fewbit {__version__}"
