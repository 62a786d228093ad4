"""From a program to blocks: one for each layer that the accelerator can run.

| stage | the program is |
|---|---|
| `mico` | as it was given; what is no layer, or not for the accelerator, stays with the host |
| `blocks` | [the JSON form](../../../docs/bitfusion.md) of the layers |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from fewbit.dialects.mico import BitLinearOp, QuantizedLayerOp, shape_of
from fewbit.dialects.mico.layers import ConvolutionOp
from fewbit.dialects.mico.syntax import ints
from fewbit.errors import Error, Place
from fewbit.ir.layers import layer_name
from fewbit.pipeline.stage import Pipeline, Stage
from fewbit.program.program import Program
from fewbit.targets.bitfusion.accelerator import ACCELERATORS, Accelerator
from fewbit.targets.bitfusion.blocks import Block, Blocks, Shape, make_block
from fewbit.targets.device import float_reason
from fewbit.targets.target import Request

PIPELINE = Pipeline((Stage("mico"), Stage("blocks", ("inline", "to-blocks"), ".json", "other")))


@dataclass(frozen=True)
class AcceleratorName:
    """Which of the known accelerators the program is for."""

    name: str

    @property
    def accelerator(self) -> Accelerator:
        return ACCELERATORS[self.name]


@dataclass(frozen=True)
class Lowered:
    """The blocks of a program, and the program that the host interprets around them."""

    program: Program
    blocks: Blocks

    @property
    def text(self) -> str:
        return self.blocks.model_dump_json(indent=2)


def lower_layers(program: Program, name: AcceleratorName) -> Lowered:
    """Return a block for each layer that the accelerator runs."""
    layers = enumerate(device_layers(program))
    blocks = tuple(_block(op, number, name.accelerator) for number, op in layers)
    return Lowered(program, Blocks(accelerator=name.name, blocks=blocks))


def _block(op: QuantizedLayerOp, number: int, accelerator: Accelerator) -> Block:
    act, weight = op.act_width, op.weight_width
    assert act is not None
    assert weight is not None
    name = layer_name(op) or op.name
    shape, groups = layer_shape(op)
    first = number == 0 and isinstance(op, ConvolutionOp)
    unfolded = first or max(shape.dilation) > 1
    bits = act.bits, weight.bits
    try:
        return make_block(name, shape, groups, bits, unfolded, accelerator)
    except Error as error:
        error.place = error.place or Place(layer=name)
        raise


def accelerator_name(request: Request) -> str:
    """Return what stands behind the colon: `bitfusion:eyeriss`; without one, `mico`."""
    return request.detail or "mico"


def device_layers(program: Program) -> Iterator[QuantizedLayerOp]:
    """Yield the layers that the accelerator runs, in their order."""
    for op in program.module.walk():
        if isinstance(op, QuantizedLayerOp) and host_reason(op) is None:
            yield op


def host_reason(op: QuantizedLayerOp) -> str | None:
    """Return why a layer is left to the host, if it is."""
    if (reason := float_reason(op)) is not None:
        return reason
    if op.granularity[0] == "group":
        return "its weights have scales of groups"
    spatial = 0 if isinstance(op, BitLinearOp) else 2
    if spatial and any(size < 0 for size in shape_of(op.input.type)[spatial:]):
        return "the size of its image is known only when it runs"
    return None


def layer_shape(op: QuantizedLayerOp) -> tuple[Shape, int]:
    """Return the geometry of a layer, of one group, and how many groups there are.

    A batch that only a run knows counts as 1; the host schedules a block anew for others.
    """
    output = tuple(max(size, 1) for size in shape_of(op.result.type))
    weight = shape_of(op.weight.type)
    if isinstance(op, BitLinearOp):
        shape = Shape(
            batch=prod(output[:-1]),
            inputs=weight[1],
            outputs=weight[0],
            image=(1, 1),
            kernel=(1, 1),
            stride=(1, 1),
            padding=((0, 0), (0, 0)),
            dilation=(1, 1),
        )
        return shape, 1
    assert isinstance(op, ConvolutionOp)
    groups = op.groups.value.data
    padding = op.padding_pairs if op.RANK == 2 else ((0, 0), *op.padding_pairs)
    shape = Shape(
        batch=output[0],
        inputs=weight[1],
        outputs=weight[0] // groups,
        image=_pair(output[2:]),
        kernel=_pair(weight[2:]),
        stride=_pair(ints(op.stride)),
        padding=(padding[0], padding[1]),
        dilation=_pair(ints(op.dilation)),
    )
    return shape, groups


def _pair(sizes: tuple[int, ...]) -> tuple[int, int]:
    """Return two sizes; those of an image of one line have a 1 in front."""
    return (1, sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])
