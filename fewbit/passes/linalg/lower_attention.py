"""`mico.attention` as matmuls with a softmax between them.

Heads of keys and values that serve several queries are repeated first. The causal mask is a
comparison of loop indices, so it is never a tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import math
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp, f32, i1, i32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.layers import contract
from fewbit.passes.linalg.building.loops import (
    Read,
    convert,
    elementwise,
    generic,
    loops,
    read,
    read_broadcast,
    same,
)
from fewbit.passes.linalg.building.quantized import dequantize, dynamic_quantization
from fewbit.passes.linalg.building.tensors import Size, as_type, collapse_axes, size_of, sizes_of
from fewbit.passes.linalg.lower_elementwise import softmax_along
from fewbit.pipeline.context import CompileContext
from fewbit.toolchain.isa import Isa


@dataclass(frozen=True)
class LowerAttention(ModulePass):
    """Turn attention into loops."""

    name = "lower-attention"

    fused: bool = True
    """Whether matmuls of floats are written as fused multiply-adds, where the processor has these.
    A compiler that knows a matmul by its product and sum fuses them itself."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        isa = ctx.find(Isa) if isinstance(ctx, CompileContext) else None
        fused = self.fused and (isa is None or isa.fma)
        lower_ops(op, {mico.AttentionOp: lambda op: _attention(op, fused)})


WidthAttr = IntegerAttr[IntegerType] | mico.TernaryType


def _attention(op: mico.AttentionOp, fused: bool) -> Sequence[SSAValue]:
    query, value = op.query, _repeat_heads(op.value, op.query)
    scores = _scores(op, query, _repeat_heads(op.key, query), fused)
    rank = len(mico.shape_of(query.type))
    weights = _fake_quantize(softmax_along(scores, rank - 1), op.score_bits)
    *outer, i, e, j = loops(rank + 1)
    y = contract(
        read(weights, *outer, i, j),
        read(_fake_quantize(value, op.value_bits), *outer, j, e),
        [*outer, i, e],
        [*sizes_of(query)[:-1], size_of(value, rank - 1)],
        f32,
        fused=fused,
    )
    return [as_type(convert(y, mico.element_type(op.result.type)), op.result.type)]


def _repeat_heads(x: SSAValue, query: SSAValue) -> SSAValue:
    """Repeat each head as often as there are query heads for it."""
    shape, wanted = mico.shape_of(x.type), mico.shape_of(query.type)
    if len(shape) < 3 or DYNAMIC in (shape[-3], wanted[-3]) or shape[-3] == wanted[-3]:
        return x
    sizes = sizes_of(x)
    *outer, h, again, i, e = loops(len(sizes) + 1)
    times = wanted[-3] // shape[-3]
    repeated = generic(
        [read(x, *outer, h, i, e)],
        [*outer, h, again, i, e],
        [*sizes[:-2], times, *sizes[-2:]],
        mico.element_type(x.type),
        same,
    )
    return collapse_axes(repeated, len(outer), len(outer) + 1)


def _scores(op: mico.AttentionOp, query: SSAValue, key: SSAValue, fused: bool) -> SSAValue:
    """Return the scaled dot products of queries and keys, masked, in f32."""
    head = size_of(query, len(mico.shape_of(query.type)) - 1)
    sizes = [*sizes_of(query)[:-1], size_of(key, len(mico.shape_of(key.type)) - 2)]
    *outer, i, j, e = loops(len(sizes) + 1)
    scales: list[Read] = []
    element = f32
    if op.query_bits is not None and op.key_bits is not None:
        query, query_scale = _quantize(query, op.query_bits)
        key, key_scale = _quantize(key, op.key_bits)
        scales = [read(query_scale, *outer, i), read(key_scale, *outer, j)]
        element = i32
    lhs, rhs = read(query, *outer, i, e), read(key, *outer, j, e)
    total = contract(lhs, rhs, [*outer, i, j], sizes, element, fused=fused)
    factor = _scale(op, head)
    mask = [] if op.mask is None else [read_broadcast(op.mask, [*outer, i, j])]

    def body(acc: SSAValue, *more: SSAValue) -> SSAValue:
        value = s.to_float(acc)
        for scale in more[: len(scales)]:
            value = s.mul(value, scale)
        value = s.mul(value, factor)
        if op.causal.value.data:
            later = s.compare(s.loop_index(j.position), "gt", s.loop_index(i.position))
            value = s.select(later, s.constant(-s.INFINITY, f32), value)
        for mask_value in more[len(scales) :]:
            value = _apply_mask(value, mask_value)
        return value

    return elementwise([read(total, *outer, i, j), *scales, *mask], sizes, f32, body)


def _scale(op: mico.AttentionOp, head: Size) -> SSAValue:
    """Return the factor of dot products: as given, else 1 / √(head size)."""
    if op.scale is not None:
        return s.constant(op.scale.value.data, f32)
    if isinstance(head, int):
        return s.constant(head**-0.5, f32)
    return s.div(s.constant(1, f32), math.SqrtOp(s.to_float(head)).result)


def _apply_mask(value: SSAValue, mask: SSAValue) -> SSAValue:
    """Apply a mask: i1 says what is kept, floats are added."""
    if mask.type == i1:
        return s.select(mask, value, s.constant(-s.INFINITY, f32))
    return s.add(value, s.to_float(mask))


def _quantize(x: SSAValue, bits: WidthAttr) -> tuple[SSAValue, SSAValue]:
    """Return integers, and a scale for each token."""
    lead = len(mico.shape_of(x.type)) - 1
    return dynamic_quantization(x, lead, mico.read_width(bits), "max")


def _fake_quantize(x: SSAValue, bits: WidthAttr | None) -> SSAValue:
    """Quantize and dequantize; without a width, return the value itself."""
    if bits is None:
        return x
    return dequantize(*_quantize(x, bits), None)
