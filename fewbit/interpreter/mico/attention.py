"""Attention: integer scores where query and key are quantized, everything else in floats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, IntegerType

from fewbit.dialects.mico import AttentionOp, TernaryType, read_width
from fewbit.dialects.mico.shapes import require
from fewbit.errors import InterpretError
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.mico.operands import Operands, as_type
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import Value
from fewbit.numerics import quantize_activation
from fewbit.numerics.floats import multiply_matrices, softmax

WidthAttr = IntegerAttr[IntegerType] | TernaryType


@register(AttentionOp)
def attention(frame: Frame, op: AttentionOp, operands: Sequence[Value]) -> Sequence[Value]:
    given = Operands(op, operands)
    query = given[op.query]
    _check_shapes(query, given[op.key], given[op.value])
    key, value = (_repeat_heads(given[x], query) for x in (op.key, op.value))
    scores = _scores(op, query, key)
    scores = _apply_mask(scores, given.get(op.mask), bool(op.causal.value.data))
    weights = _fake_quantize(softmax(scores, -1), op.score_bits)
    y = multiply_matrices(weights, _fake_quantize(value, op.value_bits).astype(np.float32))
    return (as_type(y, op.result.type),)


def _check_shapes(query: Value, key: Value, value: Value) -> None:
    """Check what the types left open: equal batches, and key heads that divide query heads."""
    require(query.shape[:-3], key.shape[:-3], "the batch of the key")
    require(key.shape[:-1], value.shape[:-1], "the value")
    if query.ndim >= 3 and query.shape[-3] % max(key.shape[-3], 1):
        raise InterpretError(f"{key.shape[-3]} heads of the key for {query.shape[-3]} queries")


def _repeat_heads(tensor: Value, query: Value) -> Value:
    if tensor.ndim < 3 or tensor.shape[-3] == query.shape[-3]:
        return tensor
    return np.repeat(tensor, query.shape[-3] // tensor.shape[-3], axis=-3)


def _scores(op: AttentionOp, query: Value, key: Value) -> Value:
    scale = query.shape[-1] ** -0.5 if op.scale is None else op.scale.value.data
    transposed = np.swapaxes(key, -1, -2)
    if op.query_bits is None or op.key_bits is None:
        scores = multiply_matrices(query.astype(np.float32), transposed.astype(np.float32))
        return scores * np.float32(scale)
    q = quantize_activation(query, read_width(op.query_bits), granularity="row")
    k = quantize_activation(key, read_width(op.key_bits), granularity="row")
    # Sums below 2^31 are exact in float64.
    acc = q.values.astype(np.float64) @ np.swapaxes(k.values, -1, -2).astype(np.float64)
    scaled = acc.astype(np.float32) * q.scale[..., None] * k.scale[..., None, :]
    return scaled * np.float32(scale)


def _apply_mask(scores: Value, mask: Value | None, causal: bool) -> Value:
    if causal:
        rows, columns = scores.shape[-2:]
        keep = np.tri(rows, columns, dtype=bool)
        scores = np.where(keep, scores, np.float32(-np.inf))
    if mask is None:
        return scores
    if mask.dtype == np.bool_:
        return np.where(mask, scores, np.float32(-np.inf))
    return scores + mask.astype(np.float32)


def _fake_quantize(tensor: Value, bits: WidthAttr | None) -> Value:
    """Return the floats that integers of this width can hold; `tensor` itself without a width."""
    if bits is None:
        return tensor
    return quantize_activation(tensor, read_width(bits), granularity="row").dequantize()
