"""The artifact of a program that was compiled to a bare-metal executable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fewbit import __version__
from fewbit.codegen.bare_metal.device_calls import DeviceCalls
from fewbit.codegen.bare_metal.interface import FUNCTIONS
from fewbit.codegen.bare_metal.processor import Processor
from fewbit.codegen.bare_metal.runtime_ir import names, runtime_ir
from fewbit.codegen.interface import Interface, interface_of
from fewbit.codegen.manifest import manifest_port, manifest_weight
from fewbit.passes.llvm.translate_to_bare_metal_ir import LayerFunctions
from fewbit.passes.memory.plan_memory import Arena
from fewbit.pipeline.compilation import Compilation
from fewbit.program.artifact import Folder, Manifest, write_folder
from fewbit.program.program import Program
from fewbit.program.signature import signature_of
from fewbit.program.weight_image import WeightImage
from fewbit.targets.target import Request
from fewbit.targets.vexii.simulate import PROGRAM
from fewbit.toolchain import objects
from fewbit.toolchain.link import link_executable


def bare_metal_facts(program: Program | None, name: str, processor: Processor) -> list[object]:
    """Return what passes to a bare-metal program must know."""
    facts: list[object] = [processor, processor.isa, WeightImage()]
    if program is None:
        return facts
    return [*facts, interface_of(signature_of(program.module), name)]


def write_program(
    made: Compilation,
    recipe: str | None,
    request: Request,
    output: Path,
    files: Mapping[str, bytes],
) -> Folder:
    """Write the executable, and `files` beside it."""
    interface, weights = made.ctx.get(Interface), made.ctx.get(WeightImage)
    layers = made.ctx.get(LayerFunctions).names
    manifest = Manifest(
        name=interface.name,
        target=request.target,
        compiler=__version__,
        inputs=tuple(map(manifest_port, interface.inputs)),
        outputs=tuple(map(manifest_port, interface.outputs)),
        recipe=recipe,
        arena_bytes=made.ctx.get(Arena).static,
        weight_bytes=weights.nbytes,
        weights=tuple(map(manifest_weight, weights.entries)),
        float_weights=request.float_weights,
        options={"xlen": str(made.ctx.get(Processor).xlen), "layers": ",".join(layers)},
        files={},
    )
    return write_folder(output, manifest, {PROGRAM: link_program(made), **files, **request.files})


def link_program(made: Compilation) -> bytes:
    """Link the executable of a program, with its weights and what no system provides."""
    processor, interface = made.ctx.get(Processor), made.ctx.get(Interface)
    text = runtime_ir(processor)
    runtime = objects.link_modules([text], names(text), processor.isa)
    objects.optimize(runtime, processor.isa)
    weights = made.ctx.get(WeightImage).view()
    image = objects.weights_object(f"{interface.name}_weights", weights, processor.isa)
    code = objects.emit_object(runtime, processor.isa)
    assembled = made.ctx.get(DeviceCalls).object()
    return link_executable([made.module.data, code, image, assembled], FUNCTIONS)
