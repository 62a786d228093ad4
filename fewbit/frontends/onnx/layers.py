"""Layers: matmuls and convolutions with a constant weight, which recipes name and quantize.

A layer is called by its weight where the file gives the weight a name of its own, `fc1.weight`, and
by the module or node otherwise. Where the file has the weight as integers with scales, these are
noted, and so is the grid on which the input lies, if it is on one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from fewbit.frontends.onnx.table import Call
from fewbit.frontends.onnx.values import Known, Traced, outside_trace

WEIGHT = ".weight"
_MADE_UP = re.compile(r"(.*::.*|(val|_val|t|permute|transpose)?_?\d*|.*_(transposed|output_0))")


@dataclass(frozen=True)
class Grid:
    """Floats that were rounded to `(u - zero_point) * scale`, and what they were before."""

    source: Tensor
    scale: float
    zero_point: int
    bits: int


@dataclass(frozen=True)
class Integers:
    """A weight's integers as the file has them, with scales and zero points of the same rank."""

    values: Tensor
    scale: Tensor
    zero_point: Tensor | None
    bits: int
    unsigned: bool

    def permute(self, order: Sequence[int]) -> Integers:
        def move(x: Tensor) -> Tensor:
            return x.permute(*order) if x.ndim > 1 else x

        zeros = None if self.zero_point is None else move(self.zero_point)
        return replace(self, values=move(self.values), scale=move(self.scale), zero_point=zeros)


@dataclass(frozen=True)
class GivenLayer:
    """How the file has quantized a layer."""

    values: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray | None
    bits: int
    unsigned: bool
    act_scale: float | None = None
    act_zero_point: int = 0
    act_bits: int | None = None


def layer_name(call: Call, weight: Known) -> str:
    name = (weight.origin or weight.name).removesuffix("_quantized")
    if name.endswith(WEIGHT):
        return name.removesuffix(WEIGHT)
    if name and not _MADE_UP.fullmatch(name):
        return name
    node = call.node
    own = node.module or node.name or node.outputs[0]
    return own.strip("/").replace("/", ".")


def layer_tensors(
    call: Call, x: int, weight: int, change: Callable[[Tensor], Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Input and weight of a layer, `change` having brought the weight to [N, K, ...]."""
    value, given = call.inputs[weight], call.inputs[x]
    change = change or (lambda tensor: tensor)
    if call.folding or not isinstance(value, Known):
        return call.tensor(x), change(call.tensor(weight))
    evaluator = call.evaluator
    with outside_trace():
        changed = Known(change(value.tensor), value.kind, layer_name(call, value) + WEIGHT)
    path = evaluator.constants.path(changed, evaluator.tracing)
    source, tensor = call.tensor(x), evaluator.tensor(changed)
    if value.integers is None or path is None:
        return source, tensor
    with outside_trace():
        layer = _given_layer(value.integers, change)
    if layer is None:
        return source, tensor
    if isinstance(given, Traced) and given.grid is not None:
        grid = given.grid
        layer = replace(
            layer,
            act_scale=grid.scale,
            act_zero_point=grid.zero_point,
            act_bits=grid.bits,
        )
        source = grid.source
    evaluator.given[path.removesuffix(WEIGHT)] = layer
    return source, tensor


def _given_layer(integers: Integers, change: Callable[[Tensor], Tensor]) -> GivenLayer | None:
    """Integers [N, K, ...] with scales for the tensor, [N], or [N, G]; None where they are none."""
    values = change(integers.values)
    scale, zeros = integers.scale, integers.zero_point
    if scale.ndim > 1:
        scale = change(scale)
        zeros = None if zeros is None else change(zeros)
        channels = scale.shape[0]
        rest = scale.reshape(channels, -1)
        if channels not in (1, values.shape[0]):
            return None
        if rest.shape[1] != 1 and (values.ndim != 2 or scale.ndim != 2):
            return None
        if channels == 1 and rest.shape[1] != 1:
            return None
        shape = () if scale.numel() == 1 else rest.shape
        scale = scale.reshape(shape)
        zeros = None if zeros is None else zeros.reshape(shape)
    if scale.ndim == 2 and values.shape[1] % scale.shape[1]:
        return None
    if scale.dtype.itemsize > 4:
        return None
    return GivenLayer(
        values.numpy(),
        scale.float().numpy(),
        None if zeros is None else zeros.numpy(),
        integers.bits,
        integers.unsigned,
    )
