"""Matmuls and convolutions with a constant weight, as quantizable layers.

`dot_general` is put into the form of a linear layer: rows of the input by output channels, N x K.
A convolution is put into N x C x H x W by O x C x kh x kw, whatever order the source has; weights
are transposed here, tensors of the program only where nothing cancels it. A layer waits for what
comes after it: an added constant for each channel is its bias, any other arithmetic with constants
for each channel is a batch norm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from fewbit.dialects import mico
from fewbit.frontends.stablehlo.batch_norm import BatchNorm, Step, batch_norm_of
from fewbit.frontends.stablehlo.build import Builder, array_text
from fewbit.frontends.stablehlo.constants import Constant
from fewbit.frontends.stablehlo.dense import Array, one_of_each
from fewbit.frontends.stablehlo.emit import Bound, Emitter, Pending, Transposed
from fewbit.frontends.stablehlo.names import (
    WEIGHT,
    layer_of_parameter,
    layer_of_scope,
)
from fewbit.frontends.stablehlo.ops import Op, Value, numbers_of
from fewbit.frontends.stablehlo.transposed import transposed_island

LAYER_ELEMENTS = ("f32", "f16", "bf16")
"""Layers compute in float32; those of float64 are left to linalg."""


@dataclass
class Layer(Pending):
    """A layer, and arithmetic on its result, channel by channel."""

    kind: type[mico.QuantizedLayerOp]
    op: Op
    input: SSAValue
    weight: Constant
    """Output channels first."""
    attributes: dict[str, Any]
    channels: tuple[int, ...]
    """The dimensions of the source's result that are output channels."""
    shape: tuple[int, ...] | None
    """What the layer's result is reshaped to; None where it has its shape."""
    order: tuple[int, ...]
    """The order of dimensions from there to the source's result."""
    steps: tuple[Step, ...] = ()
    finished: Transposed | None = None

    def vector(self, constant: Constant) -> bool:
        """Return whether a constant of the result's shape differs in its channels only."""
        own = one_of_each(constant.array).shape
        return all(size == 1 or d in self.channels for d, size in enumerate(own))

    def of_channels(self, array: Array) -> Array:
        """A constant of the result's shape as a vector of output channels."""
        rest = tuple(slice(None) if d in self.channels else 0 for d in range(array.ndim))
        taken = array[rest]
        ascending = sorted(self.channels)
        return taken.transpose([ascending.index(d) for d in self.channels]).reshape(-1)

    @property
    def has_channels_second(self) -> bool:
        """As a batch norm needs them."""
        return self.kind is not mico.BitLinearOp or self.input_rank == 2

    @property
    def input_rank(self) -> int:
        return len(mico.shape_of(self.input.type))

    def with_step(self, step: Step) -> Layer | None:
        """The layer with one more step; None where the step is not for channels."""
        if not self.vector(step.constant):
            return None
        if not self.has_channels_second and (self.steps or step.kind != "add"):
            return None
        return replace(self, steps=(*self.steps, step), finished=None)

    def finish(self, emitter: Emitter) -> Transposed:
        if self.finished is None:
            source, emitter.op = emitter.op, self.op
            self.finished = self._write(emitter)
            emitter.op = source
        return self.finished

    def _write(self, emitter: Emitter) -> Transposed:
        name = layer_name(self.weight, self.op)
        bias, steps = self._bias()
        weight = emitter.write_constant(self.weight, f"{name}{WEIGHT}")
        offset = None
        if bias is not None:
            vector = Constant.of(self.of_channels(bias.array))
            offset = emitter.write_constant(vector, f"{name}.bias")
        new = self.kind.of(self.input, weight, offset, **self.attributes)
        result = emitter.add(new).results[0]
        if steps:
            norm = batch_norm_of(steps, self.of_channels)
            result = self._normalize(emitter, result, norm, name)
        if self.shape is not None:
            result = emitter.add(mico.ReshapeOp.of(result, shape=self.shape)).results[0]
        return Transposed(result, self.order)

    def _bias(self) -> tuple[Constant | None, tuple[Step, ...]]:
        """The constant that is added first, and what follows it."""
        if not self.steps or self.steps[0].kind != "add":
            return None, self.steps
        return self.steps[0].constant, self.steps[1:]

    def _normalize(
        self, emitter: Emitter, result: SSAValue, norm: BatchNorm, name: str
    ) -> SSAValue:
        element = self.weight.type.dtype
        written: list[SSAValue] = []
        for word, array, known in norm.parameters():
            named = known or f"{name}.norm.{word}"
            written.append(emitter.write_constant(Constant.of(array.astype(element)), named))
        new = mico.BatchNormOp.of(result, *written, eps=norm.eps)
        return emitter.add(new).results[0]


def layer_name(weight: Constant, op: Op) -> str:
    """After the weight where the model names it, else after the scope of the op."""
    parameters = [leaf.name for leaf in weight.leaves() if leaf.name is not None]
    if len(parameters) == 1:
        return layer_of_parameter(parameters[0])
    return layer_of_scope(op.source.path) or op.kind


_SWAPPED = {"add": "add", "multiply": "multiply", "subtract": "from"}


def take_step(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    """Arithmetic of a pending layer and a constant, taken into the layer."""
    left, right = op.operands
    for value, other, kind in ((left, right, op.kind), (right, left, _SWAPPED.get(op.kind))):
        layer, constant = emitter.bound(value), emitter.constant(other)
        if kind is None or constant is None or not isinstance(layer, Layer) or value.uses != 1:
            continue
        extended = layer.with_step(Step(kind, constant))
        if extended is not None:
            return [extended]
    return None


def _weight_like(value: Value, constant: Constant | None) -> bool:
    return (
        constant is not None and value.tensor.element in LAYER_ELEMENTS and constant.splat is None
    )


def dot_general(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    dims = numbers_of(op.attributes["dot_dimension_numbers"])
    if dims.get("lhs_batching_dimensions"):
        return None
    contracted = [dims.get(f"{side}_contracting_dimensions", []) for side in ("lhs", "rhs")]
    constants = [emitter.constant(operand) for operand in op.operands]
    sides = [i for i in (1, 0) if _weight_like(op.operands[i], constants[i])]
    if not sides or not contracted[0] or op.result.tensor.element != op.operands[0].tensor.element:
        return None
    side = sides[0]
    constant = constants[side]
    assert constant is not None
    data, weight = op.operands[1 - side].tensor, op.operands[side].tensor
    if op.operands[0].tensor.element != op.operands[1].tensor.element or op.result.tensor.size == 0:
        return None
    data_free = [d for d in range(data.rank) if d not in contracted[1 - side]]
    weight_free = [d for d in range(weight.rank) if d not in contracted[side]]
    if data.size == 0 or weight.size == 0:
        return None
    rows = [data.shape[d] for d in data_free]
    columns = [weight.shape[d] for d in weight_free]
    depth = prod(data.shape[d] for d in contracted[1 - side])
    input = emitter.value(op.operands[1 - side], [*data_free, *contracted[1 - side]])
    if len(contracted[1 - side]) != 1:
        input = emitter.add(mico.ReshapeOp.of(input, shape=[*rows, depth])).results[0]
    matrix = constant.array.transpose([*weight_free, *contracted[side]]).reshape(-1, depth)
    shape = None if len(columns) == 1 else (*rows, *columns)
    count = len(rows)
    if side == 1:
        channels = tuple(range(count, count + len(columns)))
        order = tuple(range(count + len(columns)))
    else:
        channels = tuple(range(len(columns)))
        order = (*range(count, count + len(columns)), *range(count))
    weights = constant.rearrange(matrix)
    return [Layer(mico.BitLinearOp, op, input, weights, {}, channels, shape, order)]


_CONVOLUTION = re.compile(r"\[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]")


def convolution(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    data, weight = (operand.tensor for operand in op.operands)
    constant = emitter.constant(op.operands[1])
    rank = data.rank - 2
    if not _weight_like(op.operands[1], constant) or rank not in (1, 2):
        return None
    assert constant is not None
    if data.element != weight.element or op.result.tensor.element != data.element:
        return None
    padding = op.integers("padding", [0] * (2 * rank))
    if op.integer("batch_group_count", 1) != 1 or min(padding, default=0) < 0:
        return None
    if any(d != 1 for d in op.integers("lhs_dilation", [1] * rank)) or op.result.tensor.size == 0:
        return None
    match = _CONVOLUTION.search(op.attributes["dimension_numbers"])
    assert match is not None
    input_order, weight_order, output_order = (
        _order(listed, letters)
        for listed, letters in zip(match.groups(), ("bf", "oi", "bf"), strict=True)
    )
    array = constant.array.transpose(weight_order)
    flipped = tuple(i + 2 for i, flag in enumerate(op.integers("window_reversal")) if flag)
    weights = constant.rearrange(np.flip(array, flipped) if flipped else array)
    transposed, padding = _strip_padding(emitter, op.operands[0], input_order, padding)
    back = tuple(output_order.index(d) for d in range(rank + 2))
    attributes = {
        "stride": op.integers("window_strides", [1] * rank),
        "padding": padding,
        "dilation": op.integers("rhs_dilation", [1] * rank),
        "groups": op.integer("feature_group_count", 1),
    }
    kind = mico.BitConv2dOp if rank == 2 else mico.BitConv1dOp
    input = emitter.plain(transposed.then(input_order))
    return [Layer(kind, op, input, weights, attributes, (output_order[1],), None, back)]


def _strip_padding(
    emitter: Emitter, value: Value, order: Sequence[int], padding: tuple[int, ...]
) -> tuple[Transposed, tuple[int, ...]]:
    """A convolution's input without zeros around it, which are padding of the convolution."""
    bound = emitter.bound(value)
    if not isinstance(bound, Padded) or any(any(bound.padding[d]) for d in order[:2]):
        return emitter.transposed(value), padding
    added = [side for d in order[2:] for side in bound.padding[d]]
    return bound.tensor, tuple(a + b for a, b in zip(padding, added, strict=True))


@dataclass
class Padded(Pending):
    """Zeros around a tensor, which a convolution takes for its own padding."""

    op: Op
    tensor: Transposed
    padding: list[tuple[int, int]]
    """For each dimension of the source, before and after."""
    finished: Transposed | None = None

    def finish(self, emitter: Emitter) -> Transposed:
        if self.finished is None:
            source, emitter.op = emitter.op, self.op
            order = self.tensor.order
            inverse = [order.index(d) for d in range(len(order))]
            names = ("edge_padding_low", "edge_padding_high", "interior_padding")
            transposed = {n: array_text([self.op.integers(n)[d] for d in inverse]) for n in names}
            self.finished = transposed_island(emitter, self.op, order, transposed)
            emitter.op = source
        return self.finished


def pad(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    low, high, inner = (
        op.integers(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    filler = emitter.constant(op.operands[1])
    if emitter.constant(op.operands[0]) is not None or filler is None or filler.splat != 0:
        return None
    if any(inner) or min((*low, *high), default=0) < 0 or not op.result.tensor.is_float:
        return None
    tensor = emitter.transposed(op.operands[0])
    return [Padded(op, tensor, list(zip(low, high, strict=True)))]


def _order(listed: str, letters: str) -> list[int]:
    """Return where the dimensions N, C, then spatial ones stand: `b, 0, 1, f` has 0, 3, 1, 2."""
    words = [word.strip() for word in listed.split(",")]
    spatial = sorted(int(word) for word in words if word.isdigit())
    return [words.index(letter) for letter in (*letters, *map(str, spatial))]


def embedding(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    """A gather of whole rows of a constant table. Indices are kept inside of it, as gathers do."""
    table, indices = (operand.tensor for operand in op.operands)
    constant = emitter.constant(op.operands[0])
    if not _weight_like(op.operands[0], constant) or table.rank != 2 or not table.is_float:
        return None
    assert constant is not None
    dims = numbers_of(op.attributes["dimension_numbers"])
    vector = dims.get("index_vector_dim", [0])[0]
    alone = vector == indices.rank or (vector == indices.rank - 1 and indices.shape[-1] == 1)
    rows = indices.shape if vector == indices.rank else indices.shape[:-1]
    whole = {"collapsed_slice_dims": [0], "start_index_map": [0], "offset_dims": [len(rows)]}
    if not alone or any(dims.get(name) != wanted for name, wanted in whole.items()):
        return None
    if op.integers("slice_sizes") != (1, table.shape[1]) or op.result.tensor.size == 0:
        return None
    if indices.element not in ("i32", "i64"):
        return None
    build = Builder(emitter, op.source)
    low = build.number(0, indices.of(()))
    high = build.number(table.shape[0] - 1, indices.of(()))
    inside = build.op("clamp", indices, low, op.operands[1], high)
    if rows != indices.shape:
        inside = build.reshape(inside, rows)
    name = layer_name(constant, op)
    weight = emitter.write_constant(constant, f"{name}{WEIGHT}")
    new = emitter.add(mico.EmbeddingOp.of(emitter.value(inside), weight))
    return [Transposed.plain(new.results[0], op.result.tensor.rank)]
