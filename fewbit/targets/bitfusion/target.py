"""The target `bitfusion`: layers as tiled loops for the accelerator, all else on its host.

The accelerator is simulated: it computes with bricks of 2 bits, and its cycles and energy are those
of the original simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from fewbit import __version__
from fewbit.base.progress import say
from fewbit.cost.cycles import Conv2d
from fewbit.dialects.mico import QuantizedLayerOp
from fewbit.errors import UnsupportedError, UsageError
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.stage import Pipeline
from fewbit.program.artifact import Folder, Manifest, Tensor, write_folder
from fewbit.program.program import MANIFEST, TEXT, WEIGHTS, Program
from fewbit.program.signature import TensorSpec
from fewbit.targets.bitfusion.accelerator import ACCELERATORS, Accelerator
from fewbit.targets.bitfusion.blocks import Block, Blocks
from fewbit.targets.bitfusion.layer import Layer
from fewbit.targets.bitfusion.lowering import (
    PIPELINE,
    AcceleratorName,
    Lowered,
    accelerator_name,
    host_reason,
)
from fewbit.targets.bitfusion.schedule import cost
from fewbit.targets.bitfusion.simulate import BATCH, BLOCKS, BitFusionSimulator
from fewbit.targets.device import Device, Estimate, Events, LayerCost
from fewbit.targets.target import Request
from fewbit.targets.view import LayerModel

if TYPE_CHECKING:
    from fewbit.cost.cycles.layers import IntegerLayer

ERROR = "as the original simulator says, which is analytic; what the host does is not in it"


class BitFusion(Device):
    """An array of multipliers that are composed of bricks."""

    about = "tiled loops for BitFusion, simulated"
    see = "[BitFusion](bitfusion.md)"
    detail, details = "eyeriss", ("eyeriss",)
    widths = tuple(range(1, 9))

    def check(self, request: Request) -> None:
        if accelerator_name(request) not in ACCELERATORS:
            raise UsageError(
                f"there is no accelerator '{request.target}'",
                hint=f"there are {', '.join(f'bitfusion:{name}' for name in ACCELERATORS)}",
            )

    def refusal(self, op: QuantizedLayerOp) -> str | None:
        return host_reason(op)

    def pipeline(self, request: Request) -> Pipeline:
        return PIPELINE

    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        return (AcceleratorName(accelerator_name(request)),)

    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        lowered = cast(Lowered, made.module)
        for notice in self.legalize(lowered.program).notices:
            say(notice)
        signature = lowered.program.signature
        with TemporaryDirectory(prefix="fewbit-bitfusion-") as temporary:
            saved = Path(temporary) / "program"
            lowered.program.save(saved)
            manifest = Manifest(
                name=request.name,
                target=request.target,
                compiler=__version__,
                inputs=tuple(map(_tensor, signature.inputs)),
                outputs=tuple(map(_tensor, signature.outputs)),
                recipe=program.recipe,
                weight_bytes=(saved / WEIGHTS).stat().st_size,
                float_weights=request.float_weights,
                options={"layers": ",".join(block.layer for block in lowered.blocks.blocks)},
                files={},
            )
            files: dict[str, bytes | Path] = {
                name: saved / name for name in (TEXT, WEIGHTS, MANIFEST)
            }
            files[BLOCKS] = lowered.text.encode()
            return write_folder(output, manifest, {**files, **request.files})

    def simulator(self, folder: Folder) -> BitFusionSimulator:
        return BitFusionSimulator(folder)

    def estimate(self, folder: Folder, events: Events) -> tuple[Estimate, ...]:
        read = Blocks.model_validate_json(folder.file(BLOCKS).read_bytes())
        accelerator = ACCELERATORS[read.accelerator]
        blocks = {block.layer: block for block in read.blocks}
        ran = [
            blocks[layer.name].for_batch(layer.counts[BATCH], accelerator)
            for layer in events.layers
        ]
        costs = [cost(block.cost_layer, accelerator) for block in ran]
        estimate = Estimate(
            machine=f"bitfusion:{read.accelerator}",
            cycles=sum(each.cycles for each in costs),
            error=ERROR,
            energy=sum(each.energy for each in costs) * 1e3,
            layers=tuple(_layer_cost(block, accelerator) for block in ran),
        )
        return (estimate,)

    def model_layers(self, layers: Sequence[IntegerLayer]) -> LayerModel:
        """Model layers as the original simulator does, on the accelerator that MiCo configures."""
        costs = [cost(_model_layer(each, number == 0)) for number, each in enumerate(layers)]
        cycles, joules = [each.cycles for each in costs], [each.energy * 1e-9 for each in costs]
        return LayerModel("BitFusion", {self.name: cycles}, energy={self.name: joules})


def _model_layer(layer: IntegerLayer, first: bool) -> Layer:
    shape = layer.shape
    if not isinstance(shape, Conv2d):
        return Layer(shape.rows, shape.inputs, shape.outputs, layer.act_bits, layer.weight_bits)
    return Layer(
        shape.batch,
        shape.inputs,
        shape.outputs,
        layer.act_bits,
        layer.weight_bits,
        shape.image,
        shape.kernel,
        shape.stride,
        shape.groups,
        im2col=first,
    )


def _layer_cost(block: Block, accelerator: Accelerator) -> LayerCost:
    layer = block.cost_layer
    total = cost(layer, accelerator)
    moved = total.reads["dram"] + total.writes["dram"]
    peak = accelerator.rows * accelerator.columns
    peak *= accelerator.parallel(layer.act_bits, layer.weight_bits)
    return LayerCost(
        block.layer,
        total.cycles,
        bytes=moved // 8,
        utilization=layer.macs / (total.cycles * peak),
        bound="memory" if moved / accelerator.bandwidth > total.compute else "compute",
    )


def _tensor(spec: TensorSpec) -> Tensor:
    if spec.shape is None:
        raise UnsupportedError(f"the rank of '{spec.name}' is known only at run time")
    return Tensor(name=spec.name, shape=spec.shape, element=spec.element, updates=spec.updates)
