"""The artifact of a program that was compiled to a bare-metal executable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fewbit import __version__
from fewbit.codegen.bare_metal.device_calls import DeviceCalls
from fewbit.codegen.bare_metal.helpers import helper_object, missing_symbols
from fewbit.codegen.bare_metal.interface import FUNCTIONS
from fewbit.codegen.bare_metal.processor import Processor
from fewbit.codegen.bare_metal.runtime_ir import names, runtime_ir
from fewbit.codegen.interface import Interface, interface_of
from fewbit.codegen.manifest import manifest_port, manifest_weight
from fewbit.errors import UnsupportedError
from fewbit.passes.llvm.translate_to_bare_metal_ir import LayerFunctions
from fewbit.passes.memory.plan_memory import Arena
from fewbit.pipeline.compilation import Compilation
from fewbit.program.artifact import Content, Folder, Manifest, write_folder
from fewbit.program.program import Program
from fewbit.program.signature import signature_of
from fewbit.program.weight_image import WeightImage
from fewbit.targets.bare_metal.board import BareMetalOptions
from fewbit.targets.bare_metal.files import Linked, boot_files
from fewbit.targets.target import Request
from fewbit.targets.vexii.simulate import PROGRAM
from fewbit.toolchain import objects
from fewbit.toolchain.elf import symbols
from fewbit.toolchain.link import link_executable


def bare_metal_facts(program: Program | None, name: str, processor: Processor) -> list[object]:
    """Return what passes to a bare-metal program must know."""
    facts: list[object] = [processor, processor.isa, WeightImage()]
    if program is None:
        return facts
    return [*facts, interface_of(signature_of(program.module), name)]


def write_program(
    made: Compilation,
    program: Program,
    request: Request,
    output: Path,
    board: str,
    files: Mapping[str, bytes] | None = None,
) -> Folder:
    """Write the executable, and `files` beside it; `board` is what it boots on by default."""
    interface, weights = made.ctx.get(Interface), made.ctx.get(WeightImage)
    processor, layers = made.ctx.get(Processor), made.ctx.get(LayerFunctions).names
    given = BareMetalOptions.of(request)
    boots = given.board_or(board) if given.bare_metal else None
    options = {"xlen": str(processor.xlen), "layers": ",".join(layers)}
    if processor.floats != "d":
        options["floats"] = processor.floats
    if boots is not None and boots.uart is not None:
        options["uart"] = hex(boots.uart.address)
    manifest = Manifest(
        name=interface.name,
        target=request.target,
        compiler=__version__,
        inputs=tuple(map(manifest_port, interface.inputs)),
        outputs=tuple(map(manifest_port, interface.outputs)),
        recipe=program.recipe,
        arena_bytes=made.ctx.get(Arena).static,
        weight_bytes=weights.nbytes,
        weights=tuple(map(manifest_weight, weights.entries)),
        float_weights=request.float_weights,
        options=options,
        files={},
    )
    parts = program_objects(made)
    linked = link_executable(parts, FUNCTIONS)
    written: dict[str, Content] = {PROGRAM: linked, **(files or {})}
    if boots is not None:
        written |= boot_files(made, program, Linked(parts, linked), boots)
    return write_folder(output, manifest, {**written, **request.files})


def program_objects(made: Compilation) -> list[bytes]:
    """Return the objects of a program, with its weights and what no system provides."""
    processor, interface = made.ctx.get(Processor), made.ctx.get(Interface)
    weights = made.ctx.get(WeightImage).view()
    image = objects.weights_object(f"{interface.name}_weights", weights, processor.isa)
    program = [made.module.data, image, made.ctx.get(DeviceCalls).object()]
    program.append(_runtime(processor, _missing(program)))
    return [*program, *_helpers(processor, _missing(program))]


def _missing(program: Sequence[bytes]) -> set[str]:
    """Return the symbols that a program's objects take from others."""
    defined = {each.name for data in program for each in symbols(data) if each.defined}
    return {name for data in program for name in missing_symbols(data)} - defined


def _runtime(processor: Processor, wanted: set[str]) -> bytes:
    """Return an object of what no system provides of these."""
    text = runtime_ir(processor)
    public = [name for name in names(text) if processor.floats == "d" or name in wanted]
    runtime = objects.link_modules([text], public, processor.isa)
    objects.optimize(runtime, processor.isa)
    return objects.emit_object(runtime, processor.isa)


def _helpers(processor: Processor, wanted: set[str]) -> list[bytes]:
    """Return an object of what the processor lacks of what a program calls, if it lacks any."""
    if not wanted:
        return []
    isa = processor.isa
    helpers, absent = helper_object(isa, wanted) if processor.xlen == 32 else (None, wanted)
    if absent:
        raise UnsupportedError(
            f"the program calls {', '.join(sorted(absent))}, which a processor with the extensions "
            f"{isa.features} has no instruction for, and no helper of ours",
            hint="give all layers static scales and compile with --integer-only, or take vexii",
        )
    return [] if helpers is None else [helpers.data]
