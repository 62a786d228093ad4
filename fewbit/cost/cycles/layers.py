"""Cycles of the layers of a program, as reports and a search of widths ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from fewbit.cost.cycles.estimate import Estimate, cycles
from fewbit.cost.cycles.shapes import Conv2d, Linear
from fewbit.cost.layers import observed_layers
from fewbit.dialects.mico import BitLinearOp, QuantizedLayerOp, shape_of
from fewbit.dialects.mico.layers import ConvolutionOp
from fewbit.dialects.mico.syntax import ints
from fewbit.ir.layers import layer_name
from fewbit.program.program import Program


@dataclass(frozen=True)
class IntegerLayer:
    """A layer of a program whose operands are integers."""

    name: str
    shape: Linear | Conv2d
    act_bits: int
    weight_bits: int

    def cycles(self, core: str) -> Estimate:
        """Return what a core takes for it."""
        return cycles(core, self.shape, self.act_bits, self.weight_bits)


@dataclass(frozen=True)
class LayerCycles(IntegerLayer):
    """A layer of a program, with what a core takes for it."""

    estimate: Estimate


def program_cycles(core: str, program: Program, inputs: Sequence[Any]) -> list[LayerCycles]:
    """Return all layers of integers, in the order in which they run on these inputs."""
    return [
        LayerCycles(each.name, each.shape, each.act_bits, each.weight_bits, each.cycles(core))
        for each in integer_layers(program, inputs)
    ]


def integer_layers(program: Program, inputs: Sequence[Any]) -> list[IntegerLayer]:
    """Return all layers of integers, in the order in which they run on these inputs."""
    layers: list[IntegerLayer] = []
    for _, (op, output) in observed_layers(program, inputs):
        if not isinstance(op, QuantizedLayerOp):
            continue
        shape = layer_shape(op, output.shape)
        if shape is None or op.act_width is None or op.weight_width is None:
            continue
        bits = op.act_width.bits, op.weight_width.bits
        layers.append(IntegerLayer(layer_name(op) or op.name, shape, *bits))
    return layers


def layer_shape(op: QuantizedLayerOp, output: tuple[int, ...]) -> Linear | Conv2d | None:
    """Return what a core computes for a layer with an output of this shape."""
    weight = shape_of(op.weight.type)
    if isinstance(op, BitLinearOp):
        return Linear(prod(output[:-1]), weight[0], weight[1])
    if not isinstance(op, ConvolutionOp):
        return None
    image, kernel, stride = output[2:], weight[2:], ints(op.stride)
    groups = op.groups.value.data
    if len(image) == 1:
        image, kernel, stride = (1, *image), (1, *kernel), (1, *stride)
    return Conv2d(
        inputs=weight[1] * groups,
        outputs=weight[0],
        image=(image[0], image[1]),
        kernel=(kernel[0], kernel[1]),
        stride=(stride[0], stride[1]),
        groups=groups,
        batch=output[0],
    )
