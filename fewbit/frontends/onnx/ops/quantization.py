"""Numbers on grids: `(u - zero_point) * scale`, with integers u of few bits.

Where a float tensor was rounded to a grid, the value says so, and a layer that reads it takes the
grid as that of its activations. Where a constant was integers, the value keeps them for the layer
whose weight it is.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from fewbit.frontends.onnx import kinds
from fewbit.frontends.onnx.kinds import BITS, FLOAT, HELD, INT8, INT32, UINT8, is_unsigned
from fewbit.frontends.onnx.layers import Grid, Integers
from fewbit.frontends.onnx.ops.cast import round_to_small
from fewbit.frontends.onnx.table import Call, op
from fewbit.frontends.onnx.values import Known, Traced, outside_trace

_GRIDS = (INT8, UINT8)


def broadcast_scale(values: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """A scale or zero point in a form that broadcasts against `x`."""
    if values.numel() == 1 and values.ndim <= 1:
        return values.reshape([])
    if values.ndim == 1 and not block:
        return values.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    if block:
        values = values.repeat_interleave(block, axis % x.ndim)
        return values.narrow(axis % x.ndim, 0, x.shape[axis])
    return values


def quantize_tensor(x: Tensor, scale: Tensor, zero: Tensor | None, kind: int) -> Tensor:
    """Integers of the type, in what holds it."""
    low, high = kinds.limits(kind)
    rounded = torch.round(x / scale)
    if BITS[kind] > 16:
        raise ValueError(kind)
    # Bounded as floats, which cannot overflow.
    result = torch.clamp(rounded, -(2.0**22), 2.0**22).to(torch.int32)
    result = result if zero is None else result + zero.to(torch.int32)
    return torch.clamp(result, low, high).to(HELD[kind])


@op("QuantizeLinear", tensors=3)
@op("QuantizeLinear", domain="com.microsoft", tensors=3)
def quantize_linear(
    call: Call, x: Tensor, scale: Tensor, zero: Tensor | None = None
) -> Known | Traced:
    kind = call.kind(2) if call.has(2) else call.attr("output_dtype", 0) or UINT8
    if kind in kinds.SMALL_FLOATS:
        return _quantize_to_small(call, x, scale, kind)
    if kind not in BITS or BITS[kind] > 16:
        raise call.refusal(f"nothing is rounded to {kinds.name_of(kind)}")
    axis, block = call.attr("axis", 1), call.attr("block_size", 0)
    x = x if x.dtype.is_floating_point else x.to(torch.float32)
    dtype = HELD.get(call.attr("precision", 0) or FLOAT, torch.float32)
    wide = x.to(dtype) if x.dtype.itemsize < 4 else x
    result = quantize_tensor(
        wide,
        broadcast_scale(scale, x, axis, block).to(wide.dtype),
        None if zero is None else broadcast_scale(zero, x, axis, block),
        kind,
    )
    if call.folding:
        return Known(result, kind)
    return Traced(result, kind, grid=_grid(call, x, kind))


def _quantize_to_small(call: Call, x: Tensor, scale: Tensor, kind: int) -> Known | Traced:
    """Floats of few bits have no zero point: only its type counts."""
    whole = broadcast_scale(scale, x, call.attr("axis", 1), call.attr("block_size", 0))
    dtype = HELD.get(call.attr("precision", 0), x.dtype)
    return call.result(round_to_small(call, x.to(dtype) / whole.to(dtype), kind), kind)


def _grid(call: Call, source: Tensor, kind: int) -> Grid | None:
    scale = call.items(1)
    zero = call.items(2) if call.has(2) else [0]
    if scale is None or zero is None or len(scale) != 1 or kind not in _GRIDS:
        return None
    if source.dtype is not torch.float32 or call.kind(1) != FLOAT:
        return None
    first = 2 ** (BITS[kind] - 1) if is_unsigned(kind) else 0
    return Grid(source, float(scale[0]), int(zero[0]) - first, BITS[kind])


@op("DequantizeLinear", tensors=3)
@op("DequantizeLinear", domain="com.microsoft", tensors=3)
def dequantize_linear(
    call: Call, x: Tensor, scale: Tensor, zero: Tensor | None = None
) -> Known | Traced:
    axis, block = call.attr("axis", 1), call.attr("block_size", 0)
    kind = call.attr("output_dtype", 0) or call.kind(1)
    whole = broadcast_scale(scale, x, axis, block)
    if x.dtype.is_floating_point or call.kind(0) == INT32:
        shifted = x
        if zero is not None:
            shifted = x - broadcast_scale(zero, x, axis, block)
    else:
        shifted = x.to(torch.int32)
        if zero is not None:
            shifted = shifted - broadcast_scale(zero, x, axis, block).to(torch.int32)
    result = (shifted.to(whole.dtype) * whole).to(HELD[kind])
    if call.folding:
        return Known(result, kind, integers=_integers(call, x, scale, zero, axis, block))
    return Traced(result, kind, grid=_same_grid(call, result))


def _integers(
    call: Call, x: Tensor, scale: Tensor, zero: Tensor | None, axis: int, block: int
) -> Integers | None:
    kind = call.kind(0)
    if kind not in BITS or BITS[kind] > 8:
        return None
    if block and (x.shape[axis] % block or scale.dtype is not torch.float32):
        return None
    if scale.numel() == 1:
        scale, zero = scale.reshape([]), None if zero is None else zero.reshape([])
    elif not block:
        scale = broadcast_scale(scale, x, axis, 0)
        zero = None if zero is None else broadcast_scale(zero, x, axis, 0)
    return Integers(x, scale, zero, BITS[kind], is_unsigned(kind))


def _same_grid(call: Call, result: Tensor) -> Grid | None:
    """The grid that the integers come from, if they are read with its scale; else their own."""
    value = call.inputs[0]
    own = _grid(call, result, call.kind(0))
    if own is None or not isinstance(value, Traced) or value.grid is None:
        return own
    given = value.grid
    same = (given.scale, given.zero_point, given.bits) == (own.scale, own.zero_point, own.bits)
    return given if same else own


def dynamic_scale(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the scale and zero point of a tensor in 8 bits; where all are 0, the scale is 1."""
    low = torch.clamp(torch.amin(x), max=0)
    span = torch.clamp(torch.amax(x), min=0) - low
    scale = torch.where(span > 0, span / 255, torch.ones_like(span))
    return scale, torch.clamp(torch.round(-low / scale), 0, 255).to(torch.int32)


@op("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: Call, x: Tensor) -> tuple[object, ...]:
    scale, zero = dynamic_scale(x)
    result = quantize_tensor(x, scale, zero, UINT8)
    hold = Known if call.folding else Traced
    return hold(result, UINT8), hold(scale, FLOAT), hold(zero, UINT8)


def as_float(call: Call, value: int, scale: int, zero: int, axis: int = 1) -> Known | Traced:
    """An integer input of a QLinear op as floats on their grid."""
    inputs = [call.inputs[i] if call.has(i) else None for i in (value, scale, zero)]
    folding = all(isinstance(v, Known) for v in inputs if v is not None)
    inner = Call(
        call.evaluator, call.node, call.scope, {"axis": axis}, inputs, 13, call.place, folding
    )
    with outside_trace() if folding else nullcontext():
        tensors = [inner.optional(i) for i in range(3)]
        result = dequantize_linear(inner, *tensors)  # pyright: ignore
    return replace(result, name=_name_of(call, value))


def _name_of(call: Call, index: int) -> str:
    value = call.inputs[index]
    return "" if value is None else value.name


def from_float(call: Call, result: Tensor, scale: int, zero: int, axis: int = 1) -> Known | Traced:
    """Floats as the integer result of a QLinear op."""
    value = call.result(result, FLOAT)
    inputs = [value, *(call.inputs[i] if call.has(i) else None for i in (scale, zero))]
    inner = Call(
        call.evaluator, call.node, call.scope, {"axis": axis}, inputs, 13, call.place, call.folding
    )
    tensors = [inner.optional(i) for i in range(3)]
    return quantize_linear(inner, *tensors)  # pyright: ignore
