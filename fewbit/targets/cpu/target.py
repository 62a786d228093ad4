"""The target `cpu`: a native library with a C header, for this machine or for another."""

from __future__ import annotations

from pathlib import Path

from fewbit import __version__
from fewbit.artifact import Constant, Folder, Manifest, Tensor, write_folder
from fewbit.errors import UsageError
from fewbit.files import PathLike
from fewbit.kernels.isa import Isa, names
from fewbit.program import Program
from fewbit.targets.cpu import objects
from fewbit.targets.cpu.archive import Member, archive
from fewbit.targets.cpu.cblas import Cblas
from fewbit.targets.cpu.compilation import STAGES, Compilation, Inserted, Watcher
from fewbit.targets.cpu.header import header_text
from fewbit.targets.cpu.interface import STATE_BYTES, Port
from fewbit.targets.cpu.link import link_shared
from fewbit.targets.cpu.weights import Placed


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
) -> Folder:
    """Compile to `lib<name>.so`, `lib<name>.a` and `<name>.h` in a folder."""
    compilation = Compilation(program, name, isa_of(target), inserted or {}, watch, blas, profile)
    code = compilation.run(STAGES[-1])
    name, isa = compilation.interface.name, compilation.isa
    weights = objects.weights_object(f"{name}_weights", compilation.weights.tobytes(), isa)
    arena = compilation.arena.static
    members = [
        Member(f"{name}.o", code, compilation.interface.functions),
        Member(f"{name}_weights.o", weights, (f"{name}_weights",)),
    ]
    options = {"processor": isa.cpu, "triple": isa.triple, "features": isa.features}
    if profile:
        options["profile"] = "cycles"
    libraries: dict[str, str] = {}
    calls = compilation.blas_calls
    if calls is not None and calls.symbols:
        options["blas"] = calls.library.name
        libraries = calls.libraries
    files = {
        f"lib{name}.so": link_shared([code, weights], f"lib{name}.so", isa, libraries),
        f"lib{name}.a": archive(members),
        f"{name}.h": header_text(compilation.interface, arena, _description(compilation)).encode(),
    }
    manifest = Manifest(
        name=name,
        target=target,
        compiler=__version__,
        inputs=tuple(map(_tensor, compilation.interface.inputs)),
        outputs=tuple(map(_tensor, compilation.interface.outputs)),
        recipe=program.recipe,
        arena_bytes=None if arena is None else arena + STATE_BYTES,
        weight_bytes=compilation.weights.nbytes,
        weights=tuple(map(_constant, compilation.weights.entries)),
        options=options,
        files={},
    )
    return write_folder(Path(output), manifest, files)


def _tensor(port: Port) -> Tensor:
    return Tensor(name=port.name, shape=port.shape, element=port.element)


def _constant(placed: Placed) -> Constant:
    array = placed.array
    return Constant(
        name=placed.name, offset=placed.offset, shape=array.shape, dtype=str(array.dtype)
    )


def _description(compilation: Compilation) -> str:
    recipe = compilation.program.recipe or "float"
    return f"{compilation.interface.name}, {recipe}, compiled by fewbit {__version__}"
