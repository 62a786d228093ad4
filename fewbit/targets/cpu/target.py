"""The target `cpu`: a native library with a C header, for this machine or for another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit import __version__
from fewbit.base.files import PathLike
from fewbit.base.target_name import TargetName
from fewbit.codegen.dispatch import dispatch_object, variant_functions
from fewbit.codegen.header import header_text
from fewbit.codegen.interface import COUNTED, STATE_BYTES, Interface, interface_of
from fewbit.codegen.manifest import manifest_port, manifest_weight
from fewbit.codegen.support import support_object
from fewbit.codegen.weights_file import (
    WEIGHTS,
    WeightsFile,
    hash_of_image,
    use_weights_object,
    weights_name,
)
from fewbit.errors import UsageError
from fewbit.passes.blas.use_blas import BlasCalls
from fewbit.passes.llvm.emit_object import HiddenSymbols
from fewbit.passes.memory.plan_memory import Arena
from fewbit.passes.native import native_pipeline
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.context import make_compile_context
from fewbit.pipeline.stage import Pipeline
from fewbit.program.artifact import (
    Content,
    Folder,
    Manifest,
    Variant,
    signature_of,
    write_folder,
)
from fewbit.program.program import Program
from fewbit.program.references import read_bytes
from fewbit.program.signature import signature_of as program_signature
from fewbit.program.state import initial_state, write_initial_state
from fewbit.program.weight_image import SharedWeights, WeightImage
from fewbit.targets.cpu.variants import CpuVariants, compile_variants, variants_of
from fewbit.targets.options import FLAG, NAMES, TEXT, TunedOptions, one_of, option
from fewbit.targets.target import Request, Target
from fewbit.toolchain import objects
from fewbit.toolchain.archive import Member, archive
from fewbit.toolchain.cblas import Cblas, find_blas
from fewbit.toolchain.isa import ALIASES, Isa, canonical_name, elsewhere, is_known, names
from fewbit.toolchain.link import link_library
from fewbit.toolchain.llvm import host_features
from fewbit.toolchain.system import host_system

if TYPE_CHECKING:
    from fewbit.targets.probe import Found


LARGE = 64 << 20
"""Bytes of weights from which on they are in a file beside the library."""


@dataclass(frozen=True)
class CpuOptions(TunedOptions):
    """The options of `cpu`."""

    blas: str | None = option(
        TEXT,
        "Multiply float matrices by this CBLAS library: openblas, mkl, blis, a path.",
        metavar="LIBRARY",
        see="[BLAS](blas.md)",
    )
    cpu_variants: CpuVariants | None = option(
        NAMES,
        "Code for several processors in a library: names with commas, auto, or all.",
        metavar="NAMES",
        see="[variants](native.md#variants)",
    )
    weights: str | None = option(
        one_of("inside", "beside"),
        "Weights inside of the library, or in a file beside it, as 64 MiB and more are.",
        metavar="PLACE",
        see="[weights beside](native.md#weights-beside-the-library)",
    )
    profile: bool = option(
        FLAG,
        "The library counts the time of each layer.",
        see="[the C library](native.md#where-the-time-goes)",
    )


class Cpu(Target):
    """Native code: a shared and a static library."""

    about = "a C library, for this machine, or for another processor or system"
    see = "[the C library](native.md)"
    detail, details = "PROCESSOR", (*names(), *elsewhere())
    options = CpuOptions
    parts = names()
    tuner = "fewbit.tune.cpu:CpuTuner"
    profile_option = "profile"

    def pipeline(self, request: Request) -> Pipeline:
        given = CpuOptions.of(request)
        return native_pipeline(blas=given.blas is not None, profile=given.profile)

    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        given = CpuOptions.of(request)
        tuned = None if program is None else self._tuned_isa(program, request)
        return cpu_facts(
            program,
            request.name,
            tuned or isa_of(request.target),
            profile=given.profile,
            blas=find_blas(given.blas),
            beside=program is not None and _has_weights_beside(program, given.weights),
        )

    def check(self, request: Request) -> None:
        isa_of(request.target)
        _variants(request)
        find_blas(CpuOptions.of(request).blas)

    def compile(self, program: Program, request: Request, output: Path) -> Folder:
        variants = _variants(request)
        if not variants:
            return super().compile(program, request, output)
        compilations = compile_variants(self.begin(program, request), variants)
        return write_library(compilations, program, request, output)

    def lower(self, program: Program, stage: str, request: Request) -> str:
        if CpuOptions.of(request).cpu_variants is not None:
            raise UsageError(
                "one stage is the program for one processor, and cpu_variants names several",
                hint="give one of them as the target, or write all stages with --dump-ir",
            )
        return super().lower(program, stage, request)

    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        return write_library([made], program, request, output)

    def _tuned_isa(self, program: Program, request: Request) -> Isa | None:
        """Return this machine with the tiles that autotuning found for the program, if it did."""
        if request.detail or CpuOptions.of(request).cpu_variants is not None:
            return None
        return self.known(program, request)

    def probe(self, name: str) -> Found:
        from fewbit.targets.cpu.probe import probe_native

        return probe_native()

    def spell(self, name: str) -> str:
        return str(_canonical(name))

    def find_obstacle(self, name: str) -> str | None:
        isa = isa_of(name)
        if isa.system is not host_system():
            return f"it does not load libraries for {isa.system.title}"
        if not TargetName.parse(name).detail or isa.runs_on(host_features()):
            return None
        return f"it does not execute code for {isa.name}"

    def load(self, folder: Folder) -> Any:
        from fewbit.runtime.native import load_native

        return load_native(folder)


def cpu_facts(
    program: Program | None,
    name: str,
    isa: Isa,
    *,
    profile: bool = False,
    blas: Cblas | None = None,
    beside: bool = False,
) -> Sequence[object]:
    """Return what passes to native code must know: processor, C interface, place of weights."""
    facts: list[object] = [isa, WeightImage()]
    if program is not None:
        facts.append(interface_of(program_signature(program.module), name, profile, beside))
    return facts if blas is None else [*facts, blas]


def _has_weights_beside(program: Program, asked: str | None) -> bool:
    """Return whether weights are written beside the library: where asked for, or if large."""
    if asked is not None:
        return asked == "beside"
    return read_bytes(program.module, program.store) >= LARGE


def _variants(request: Request) -> Sequence[Isa]:
    given = CpuOptions.of(request).cpu_variants
    return () if given is None else variants_of(given, isa_of(request.target))


def isa_of(target: str) -> Isa:
    """Return the processor that `cpu`, `cpu:aarch64` or `cpu:x86-64-v3` means."""
    kind, processor = _canonical(target)
    if kind != "cpu" or not (processor in ("", "host") or is_known(processor)):
        close = get_close_matches(processor, [*names(), *elsewhere(), *ALIASES], n=1)
        meant = f"did you mean cpu:{canonical_name(close[0])}? " if close else ""
        raise UsageError(
            f"there is no target '{target}'",
            hint=f"{meant}cpu is this machine; others are "
            + ", ".join(f"cpu:{name}" for name in (*names(), *elsewhere())),
        )
    return Isa.of(processor or "host")


def _canonical(target: str) -> TargetName:
    """Return the target with our name of the processor: `cpu:aarch64` of `cpu:arm64`."""
    kind, processor = TargetName.parse(target)
    return TargetName(kind, canonical_name(processor))


def compile_cpu(program: Program, name: str, output: PathLike, isa: Isa) -> Folder:
    """Compile a library for one processor, which may have tiles that autotuning tries."""
    compilation = begin_cpu(program, name, isa).run()
    return write_library([compilation], program, Request("cpu", name), Path(output))


def begin_cpu(program: Program, name: str, isa: Isa) -> Compilation:
    """Return a compilation for one processor in which no stage has run yet."""
    ctx = make_compile_context(program.store, program.recipe, cpu_facts(program, name, isa))
    return Compilation(native_pipeline(), ctx, program.module.clone())


def write_library(
    compilations: Sequence[Compilation], program: Program, request: Request, output: Path
) -> Folder:
    """Write the libraries and their header, with code for each of some processors."""
    first = compilations[0].ctx
    variants = [each.ctx.get(Isa) for each in compilations] if first.find(HiddenSymbols) else []
    isa, interface = isa_of(request.target) if variants else first.get(Isa), first.get(Interface)
    name, options = interface.name, {"triple": isa.triple}
    if not variants:
        options = {"processor": isa.cpu, "triple": isa.triple, "features": isa.features}
    weights = first.get(SharedWeights) if variants else first.get(WeightImage)
    arena = _largest([_arena_bytes(each) for each in compilations])
    members = [_member(each, interface) for each in compilations]
    tiles = {tile.name: tile for each in compilations for tile in each.module.tiles}
    members += [Member(t.name, t.data, (*t.symbols.values(),)) for t in tiles.values()]
    if variants:
        symbols = [each.ctx.get(HiddenSymbols).names for each in compilations]
        public = (*interface.functions, *variant_functions(interface))
        dispatch = dispatch_object(interface, variants, symbols, arena)
        members.insert(0, Member(f"{name}.o", dispatch, public))
    if not isa.system.has_threads:
        options["threads"] = "the caller's"
    if interface.beside:
        options[WEIGHTS] = hash_of_image(weights)
    if interface.profile:
        options["profile"] = "cycles"
    if interface.counted:
        options[COUNTED] = ",".join(interface.counted_dimensions)
    libraries: dict[str, str] = {}
    for each in compilations:
        calls = each.ctx.find(BlasCalls)
        if calls is not None and calls.symbols:
            options["blas"] = calls.library.name
            libraries = calls.libraries
    manifest = Manifest(
        name=name,
        target=str(_canonical(request.target)),
        compiler=__version__,
        inputs=tuple(map(manifest_port, interface.inputs)),
        outputs=tuple(map(manifest_port, interface.outputs)),
        recipe=program.recipe,
        arena_bytes=arena,
        weight_bytes=weights.nbytes,
        weights=tuple(map(manifest_weight, weights.entries)),
        float_weights=request.float_weights,
        variants=tuple(map(_variant, compilations)) if variants else (),
        options=options,
        files={},
    )
    support = support_object([member.data for member in members], isa)
    if support is not None:
        members.append(Member(f"{name}_support.o", *support))
    signature = signature_of(manifest)
    symbol = f"{name}_signature"
    signed = objects.text_object(symbol, signature, isa)
    file = WeightsFile(signature, weights)
    members.append(_weights_member(interface, file, isa.baseline if variants else isa))
    members.append(Member(f"{symbol}.o", signed, (symbol,)))
    described = f"{name}, {program.recipe or 'float'}, compiled by fewbit {__version__}"
    named = weights_name(name) if interface.beside else ""
    text = header_text(
        interface, arena, described, signature, [each.name for each in variants], named, isa.system
    )
    data, exports = [member.data for member in members], _exports(interface, bool(variants), symbol)
    files: dict[str, Content] = {
        **link_library(data, name, isa, exports, libraries),
        f"{name}.h": text.encode(),
    }
    if isa.system.format == "elf":
        files[f"lib{name}.a"] = archive(members)
    files |= _initial_state(program, interface)
    if interface.beside:
        files[named] = file
    return write_folder(output, manifest, {**files, **request.files})


def _exports(interface: Interface, variants: bool, signature: str) -> tuple[str, ...]:
    """Return what the header of a library declares."""
    functions = (*interface.functions, *(variant_functions(interface) if variants else ()))
    return (*functions, *([interface.use_weights] if interface.beside else []), signature)


def _weights_member(interface: Interface, file: WeightsFile, isa: Isa) -> Member:
    """Return the object of the weights, or of the function that takes their address."""
    name = f"{interface.name}_weights.o"
    if interface.beside:
        return Member(name, use_weights_object(interface, file, isa), (interface.use_weights,))
    image = objects.weights_object(interface.weights_symbol, file.image.view(), isa)
    return Member(name, image, (interface.weights_symbol,))


def _initial_state(program: Program, interface: Interface) -> dict[str, bytes]:
    """Return a file of what state starts from; none where that is zeros."""
    values = initial_state(program.module, program.store)
    return write_initial_state({interface.inputs[i].name: each for i, each in values.items()})


def _member(made: Compilation, interface: Interface) -> Member:
    """Return the object of a processor in a static library."""
    hidden = made.ctx.find(HiddenSymbols)
    if hidden is None:
        return Member(f"{interface.name}.o", made.module.data, interface.functions)
    name = f"{interface.name}.{made.ctx.get(Isa).name}.o"
    return Member(name, made.module.data, (*hidden.names.values(),))


def _arena_bytes(made: Compilation) -> int | None:
    arena = made.ctx.get(Arena).static
    return None if arena is None else arena + STATE_BYTES


def _largest(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return max(known) if len(known) == len(sizes) else None


def _variant(made: Compilation) -> Variant:
    isa, weights = made.ctx.get(Isa), made.ctx.get(WeightImage)
    return Variant(
        name=isa.name,
        processor=isa.cpu,
        features=isa.features,
        arena_bytes=_arena_bytes(made),
        weight_bytes=weights.bytes_read,
        weights=tuple(map(manifest_weight, weights.entries)),
    )
