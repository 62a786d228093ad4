"""Whole quantized layers on numpy: the semantics of bitlinear, bitconv1d and bitconv2d.

Where both operands are integers, acc = Σ u_x·u_w is exact and y = acc · s_x · s_w + bias follows
in float32, in that order. With group scales there is a partial sum for each group along K, scaled
the same way and added in float32 in group order, then the bias. With offsets m, which only linear
layers have, a group adds acc · s_x · s_w + (Σ u_x) · s_x · m. Rows of a linear layer may have a s_x
for each group, too. Where one operand is float, the other is dequantized for an ordinary float32
matmul, whose order of summation is free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from fewbit.errors import ShapeError, UsageError, WidthError
from fewbit.numerics import integer
from fewbit.numerics.activations import quantize_activation
from fewbit.numerics.arrays import Float32Array, Int32Array, float32
from fewbit.numerics.quantized import Quantized
from fewbit.numerics.widths import Width, WidthLike
from fewbit.numerics.window import NumberArray, Pair, Sides, Window, convolve

Operand = npt.ArrayLike | Quantized
"""A float tensor, or one that is quantized already."""


def bitlinear(
    x: Operand,
    weight: Operand,
    bias: npt.ArrayLike | None = None,
    act_width: WidthLike | None = None,
    act_scale: npt.ArrayLike | None = None,
    act_zero_point: npt.ArrayLike | None = None,
) -> Float32Array:
    """Compute y[..., N] = x[..., K] · weight[N, K]ᵀ + bias, activations quantized row by row.

    Without `act_width`, float activations stay float. Activations that are quantized already may
    have scales for the groups of the weight.
    """
    xs = _activation(x, "row", act_width, act_scale, act_zero_point)
    ws = _weight(weight)
    if ws.ndim != 2 or xs.ndim < 1 or xs.shape[-1] != ws.shape[1]:
        raise ShapeError(
            f"input {xs.shape} and weight {ws.shape} do not go together",
            hint="they are [..., K] and [N, K]",
        )
    if isinstance(xs, Quantized) and isinstance(ws, Quantized):
        y = _integer_linear(xs, ws)
    else:
        y = np.matmul(_real(xs), _real(ws).T)
    return y if bias is None else y + _bias(bias, ws.shape[0])


def bitconv2d(
    x: Operand,
    weight: Operand,
    bias: npt.ArrayLike | None = None,
    act_width: WidthLike | None = None,
    act_scale: npt.ArrayLike | None = None,
    act_zero_point: npt.ArrayLike | None = None,
    *,
    stride: Pair = (1, 1),
    padding: Sides = ((0, 0), (0, 0)),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Float32Array:
    """Convolve x[N, C, H, W] with weight[O, C/groups, kh, kw], activations quantized by sample.

    Padding stands for the value zero, at every width and with every zero point.
    """
    window = Window(stride, padding, dilation, groups)
    xs = _activation(x, "sample", act_width, act_scale, act_zero_point)
    ws = _weight(weight)
    window.output(xs.shape, ws.shape)
    if isinstance(xs, Quantized) and isinstance(ws, Quantized):
        y = _integer_conv(xs, ws, window)
    else:
        y = _float_conv(_real(xs), _real(ws), window)
    return y if bias is None else y + _bias(bias, ws.shape[0])[:, None, None]


def bitconv1d(
    x: Operand,
    weight: Operand,
    bias: npt.ArrayLike | None = None,
    act_width: WidthLike | None = None,
    act_scale: npt.ArrayLike | None = None,
    act_zero_point: npt.ArrayLike | None = None,
    *,
    stride: int = 1,
    padding: Pair = (0, 0),
    dilation: int = 1,
    groups: int = 1,
) -> Float32Array:
    """Convolve x[N, C, L] with weight[O, C/groups, k], activations quantized by sample."""
    y = bitconv2d(
        _with_height(x, "[N, C, L]"),
        _with_height(weight, "[O, C/groups, k]"),
        bias,
        act_width,
        act_scale,
        act_zero_point,
        stride=(1, stride),
        padding=((0, 0), padding),
        dilation=(1, dilation),
        groups=groups,
    )
    return y[:, :, 0, :]


def _activation(
    x: Operand,
    granularity: Literal["row", "sample"],
    width: WidthLike | None,
    scale: npt.ArrayLike | None,
    zero_point: npt.ArrayLike | None,
) -> Float32Array | Quantized:
    """Return the layer's input, quantized where it has to be and is not yet."""
    if (scale is not None or zero_point is not None) and (
        width is None or isinstance(x, Quantized)
    ):
        reason = "without act_width" if width is None else "for an input that has its own"
        raise UsageError(
            f"act_scale or act_zero_point was given {reason}",
            hint="they quantize a float input, to act_width bits",
        )
    if not isinstance(x, Quantized):
        if width is None:
            return float32(x, "activation")
        return quantize_activation(
            x, width, granularity=granularity, scale=scale, zero_point=zero_point
        )
    if width is not None and Width.of(width) != x.width:
        raise WidthError(f"the layer takes {Width.of(width)} bits, its input has {x.width}")
    deepest = x.ndim - 1 if granularity == "row" else 1
    if granularity == "row" and x.has_groups:
        return x
    if x.scale.ndim > deepest or x.scale.shape != x.shape[: x.scale.ndim]:
        raise ShapeError(
            f"activation scales of shape {x.scale.shape} do not leave one scale per {granularity} "
            f"of an input {x.shape}",
            hint="integers with different scales cannot be accumulated",
        )
    return x


def _weight(weight: Operand) -> Float32Array | Quantized:
    if not isinstance(weight, Quantized):
        return float32(weight, "weight")
    if weight.values.size == 0:
        raise ShapeError(f"a weight of shape {weight.shape} is empty")
    if weight.scale.ndim > 2:
        raise ShapeError(
            f"weight scales of shape {weight.scale.shape} are neither (), (N,) nor (N, K/g)"
        )
    return weight


def _integer_linear(x: Quantized, w: Quantized) -> Float32Array:
    _check_accumulator(x, w)
    xs, ws = x.centered(), w.centered()
    sums = (integer.matmul(xs[..., part], ws[:, part].T) for part in _parts(w))
    w_scales = _weight_scales(w)
    x_scales = _row_scales(x, len(w_scales))
    if w.offset is None:
        return _add_terms(_scale_sums(sums, x_scales, w_scales))
    rows = (xs[..., part].sum(-1, dtype=np.int32, keepdims=True) for part in _parts(w))
    shifts = _scale_sums(rows, x_scales, _by_group(w.offset))
    return _add_terms(
        a + b for a, b in zip(_scale_sums(sums, x_scales, w_scales), shifts, strict=True)
    )


def _row_scales(x: Quantized, groups: int) -> list[Float32Array]:
    """Return the scales of rows in each group, to broadcast over a group's sums."""
    if not x.has_groups:
        return [_expand_trailing(x.scale, x.ndim)] * groups
    if x.scale.shape[-1] != groups:
        raise ShapeError(
            f"activation scales of shape {x.scale.shape} do not leave one scale per row of an "
            f"input {x.shape}, or per group of the weight, of which there are {groups}",
            hint="integers with different scales cannot be accumulated",
        )
    return [x.scale[..., group : group + 1] for group in range(groups)]


def _integer_conv(x: Quantized, w: Quantized, window: Window) -> Float32Array:
    _check_accumulator(x, w)
    if w.offset is not None:
        raise UsageError(
            "the weight of a convolution has no offsets", hint="linear layers have them"
        )
    kernel = window.kernel(w.centered())
    x_scale = np.broadcast_to(x.scale, x.shape[:1])[:, None, None]
    w_scales = [scale.reshape(-1, 1) for scale in _weight_scales(w)]

    def multiply(columns: NumberArray, samples: slice) -> NumberArray:
        sums = (
            integer.channel_matmul(kernel[..., part], columns[:, :, part, :]) for part in _parts(w)
        )
        x_scales = [x_scale[samples]] * len(w_scales)
        return _add_terms(_scale_sums(sums, x_scales, w_scales))

    return convolve(x.centered(), w.shape, window, multiply)


def _float_conv(x: Float32Array, w: Float32Array, window: Window) -> Float32Array:
    kernel = window.kernel(w)

    def multiply(columns: NumberArray, samples: slice) -> NumberArray:
        y = np.matmul(kernel, columns)
        return y.reshape(y.shape[0], w.shape[0], y.shape[-1])

    return convolve(x, w.shape, window, multiply)


def _scale_sums(
    sums: Iterable[Int32Array], x_scales: list[Float32Array], w_scales: list[Float32Array]
) -> Iterator[Float32Array]:
    """Yield acc · s_x · s_w of each group."""
    for acc, x_scale, w_scale in zip(sums, x_scales, w_scales, strict=True):
        yield acc.astype(np.float32) * x_scale * w_scale


def _add_terms(terms: Iterator[Float32Array]) -> Float32Array:
    """Return the sum over the groups, in order."""
    total = next(terms)
    for term in terms:
        total += term
    return total


def _parts(w: Quantized) -> list[slice]:
    """Return the runs of K that share a scale: all of it, or the groups."""
    k = math.prod(w.shape[1:])
    return list(integer.parts(k, k // len(_weight_scales(w))))


def _weight_scales(w: Quantized) -> list[Float32Array]:
    """Return the scales, () or (N,), of each group along K."""
    return _by_group(w.scale)


def _by_group(each: Float32Array) -> list[Float32Array]:
    return list(each.T) if each.ndim == 2 else [each]


def _check_accumulator(x: Quantized, w: Quantized) -> None:
    """Refuse sums that could overflow: over K, or over a group where those are what is summed."""
    k = math.prod(w.shape[1:]) // len(_weight_scales(w))
    both = x.zero_point is not None and w.zero_point is not None
    one = "x" if x.zero_point is not None else "w" if w.zero_point is not None else False
    if w.offset is not None:
        both, one = x.zero_point is not None, "w"
    integer.check_accumulator(k, x.width, w.width, asymmetric=both or one)


def _expand_trailing(scale: Float32Array, ndim: int) -> Float32Array:
    """Reshape a scale of the leading dimensions to broadcast over a tensor of rank `ndim`."""
    return scale.reshape(scale.shape + (1,) * (ndim - scale.ndim))


def _real(x: Float32Array | Quantized) -> Float32Array:
    return x.dequantize() if isinstance(x, Quantized) else x


def _bias(bias: npt.ArrayLike, channels: int) -> Float32Array:
    array = float32(bias, "bias")
    if array.shape != (channels,):
        raise ShapeError(f"a bias of shape {array.shape} does not fit {channels} channels")
    return array


def _with_height(x: Operand, expected: str) -> Operand:
    """Return a tensor [A, B, L] as [A, B, 1, L]."""
    array = x if isinstance(x, Quantized) else np.asarray(x)
    if array.ndim != 3:
        raise ShapeError(f"a one-dimensional convolution takes {expected}, not {array.shape}")
    if isinstance(array, Quantized):
        return replace(array, values=array.values[:, :, None, :])
    return array[:, :, None, :]
