"""Attention to a cache, found among the ops that a language model's step has for it.

A step has a matmul of queries and keys, which are kept in blocks, a scale, a mask, softmax, and a
matmul by values. All of it is one call of a kernel, if it has just this form; every other form
stays as it is: loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, f16, f32
from xdsl.dialects.linalg.ops import FillOp, GenericOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from fewbit.dialects import mico
from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.dialects.upstream.linalg.matmul import BatchMatmulOp
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.cached_attention import BLOCK, CachedAttention, refuse

QUERIES_AND_KEYS = (
    AffineMap.from_callable(lambda h, r, b, k, d: (h, r, d)),
    AffineMap.from_callable(lambda h, r, b, k, d: (h, b, d, k)),
    AffineMap.from_callable(lambda h, r, b, k, d: (h, r, b, k)),
)
MASKED = (
    AffineMap.from_callable(lambda h, r, t: (r, t)),
    AffineMap.from_callable(lambda h, r, t: ()),
    AffineMap.from_callable(lambda h, r, t: (h, r, t)),
    AffineMap.from_callable(lambda h, r, t: (h, r, t)),
)


@dataclass(frozen=True)
class FoundAttention:
    """The problem, and the tensors that it reads."""

    problem: CachedAttention
    query: SSAValue
    """[heads, rows, width]"""
    keys: SSAValue
    """[heads, blocks, width, 64]"""
    values: SSAValue
    """[heads, tokens, width]"""
    seen: SSAValue
    """[rows, tokens], of bits."""


def find_cached_attention(op: BatchMatmulOp, arch: Arch) -> FoundAttention | None:
    """Return the attention that ends with this matmul by values, if there is one."""
    weights, values = op.inputs
    softmax, values = weights.owner, _find_narrow(values)
    if not isinstance(softmax, mico.SoftmaxOp) or not _sums_into_zeros(op.outputs[0]):
        return None
    if softmax.dim.value.data not in (-1, len(mico.shape_of(weights.type)) - 1):
        return None
    masked = _body(softmax.input.owner, arith.SelectOp)
    if masked is None or _maps(masked.op) != MASKED or not masked.is_in_order:
        return None
    hidden, least, scores = masked.op.inputs
    seen = _find_opposite(hidden)
    if seen is None or not _is_least(least):
        return None
    scale, scores = _split_scale(scores)
    product = scores.owner
    if isinstance(product, mico.ReshapeOp):
        product = product.input.owner
    matmul = _body(product, math.FmaOp)
    if matmul is None or _maps(matmul.op) != QUERIES_AND_KEYS or not matmul.is_in_order:
        return None
    if not _sums_into_zeros(matmul.op.outputs[0]):
        return None
    query, keys = matmul.op.inputs
    keys = _find_narrow(keys)
    return _check((query, keys, values, seen), scale, arch)


def _check(given: tuple[SSAValue, ...], scale: float, arch: Arch) -> FoundAttention | None:
    query, keys, values, seen = given
    shapes = [mico.shape_of(value.type) for value in (query, keys, values, seen)]
    if any(DYNAMIC in shape for shape in shapes) or shapes[1][-1] != BLOCK:
        return None
    (heads, rows, width), kept = shapes[0], mico.element_type(keys.type)
    tokens = shapes[2][1]
    if shapes[1][1] * BLOCK != tokens or mico.element_type(values.type) != kept:
        return None
    if kept not in (f16, f32):
        return None
    dtype = "f16" if kept == f16 else "f32"
    problem = CachedAttention(heads, rows, tokens, width, dtype, scale)
    if refuse(problem, arch) is not None:
        return None
    return FoundAttention(problem, query, keys, values, seen)


@dataclass(frozen=True)
class _Body:
    """A loop, and the op that gives the result of its body."""

    op: GenericOp
    inner: Operation

    @property
    def is_in_order(self) -> bool:
        """Whether the op's operands are the elements that are read, in their order."""
        arguments = self.op.body.block.args
        return all(a is b for a, b in zip(self.inner.operands, arguments, strict=False))


def _body(op: Any, kind: type[Operation]) -> _Body | None:
    if not isinstance(op, GenericOp):
        return None
    end = op.body.block.last_op
    inner = None if end is None or len(end.operands) != 1 else end.operands[0].owner
    return _Body(op, inner) if isinstance(inner, kind) else None


def _maps(op: GenericOp) -> tuple[AffineMap, ...]:
    return tuple(each.data for each in op.indexing_maps)


def _find_narrow(value: SSAValue) -> SSAValue:
    """Return a tensor as it is kept, before it is widened."""
    widened = _body(value.owner, arith.ExtFOp)
    if widened is None or not widened.is_in_order or len(set(_maps(widened.op))) != 1:
        return value
    return widened.op.inputs[0]


def _find_opposite(hidden: SSAValue) -> SSAValue | None:
    """Return the bits whose opposites are given."""
    found = _body(hidden.owner, arith.XOrIOp)
    if found is None or len(set(_maps(found.op))) != 1:
        return None
    bit, one = found.inner.operands
    is_read = bit is found.op.body.block.args[0]
    return found.op.inputs[0] if is_read and _number(one) in (-1, 1) else None


def _split_scale(scores: SSAValue) -> tuple[float, SSAValue]:
    """Return what scores are multiplied by, and those before."""
    found = _body(scores.owner, arith.MulfOp)
    if found is None or len(set(_maps(found.op))) != 1:
        return 1.0, scores
    x, factor = found.inner.operands
    number = _number(factor)
    if x is not found.op.body.block.args[0] or number is None:
        return 1.0, scores
    return number, found.op.inputs[0]


def _number(value: SSAValue) -> float | None:
    if isinstance(value.owner, arith.TruncFOp):
        number = _number(value.owner.input)
        return None if number is None else float(np.float32(number))
    if not isinstance(value.owner, arith.ConstantOp):
        return None
    attribute = cast(Any, value.owner.value)
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        return (
            float(np.asarray(attribute.get_values()).ravel()[0]) if attribute.is_splat() else None
        )
    return attribute.value.data if hasattr(attribute, "value") else None


def _is_least(value: SSAValue) -> bool:
    return _number(value) == -np.inf


def _sums_into_zeros(value: SSAValue) -> bool:
    filled = value.owner
    return isinstance(filled, FillOp) and _number(filled.inputs[0]) == 0
