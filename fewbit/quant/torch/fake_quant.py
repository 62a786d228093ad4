"""The quantization formulas in torch, equal to `fewbit.numerics` bit by bit, with gradients.

Integers are kept in float32 tensors, which hold them exactly. Every operation is one IEEE
operation on tensors: a Python number divided by a tensor would be computed through a reciprocal,
and differ. Fake quantization gives the value that the integers stand for and passes gradients
straight through the rounding. For weights the gradient is 1 everywhere: their clamp moves with
them, and a clipped weight without a gradient could never come back. For activations it is 1 where
the value is within half a step of the range, and 0 beyond it. Scales are constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from fewbit.errors import Error, ShapeError
from fewbit.numerics import (
    EPS,
    ActivationGranularity,
    Mode,
    WeightMode,
    Width,
    activation_scale_shape,
    weight_scale_shape,
)
from fewbit.numerics.fitted_scales import CANDIDATES
from fewbit.numerics.formulas import check_asymmetric
from fewbit.numerics.hadamard import factor
from fewbit.numerics.mean_magnitude import LANES, part_length
from fewbit.numerics.weights import LARGEST_HALF
from fewbit.quant.scheme import LayerScheme

_EPS = float(EPS)
_ROWS_BLOCK = 1 << 22


class Integers(NamedTuple):
    """A quantized tensor: integers, scales and what else as float32, as `numerics.Quantized`.

    Beside offsets, the zero points are the least integer of the width.
    """

    values: Tensor
    scale: Tensor
    zero_point: Tensor | None = None
    offset: Tensor | None = None

    def centered(self) -> Tensor:
        """The values less their zero points."""
        if self.zero_point is None:
            return self.values
        runs = _runs(self.values, self.scale)
        return (runs - self.zero_point.reshape(-1, 1)).reshape(self.values.shape)

    def dequantize(self) -> Tensor:
        runs = _runs(self.centered(), self.scale) * self.scale.reshape(-1, 1)
        if self.offset is not None:
            runs = runs + self.offset.reshape(-1, 1)
        return runs.reshape(self.values.shape)


def quantize_weight(weight: Tensor, scheme: LayerScheme) -> Integers:
    """A weight's integers; the scheme must give it a width."""
    assert scheme.weight is not None
    weight = rotate(weight.detach().float(), scheme.hadamard)
    shape = weight_scale_shape(tuple(weight.shape), scheme.granularity, scheme.group)
    runs = weight.reshape(math.prod(shape), -1)
    if scheme.symmetric:
        integers = _fit_scales(runs, scheme.weight, scheme.mode)
        if scheme.scales == "f16":
            integers = _with_half_scales(runs, scheme.weight, integers)
    else:
        integers = _asymmetric(runs, scheme.weight)
    return _shape(integers, weight.shape, shape)


def quantize_activation(
    x: Tensor,
    width: Width,
    granularity: ActivationGranularity = "row",
    mode: Mode = "max",
    scale: Tensor | None = None,
    zero_point: Tensor | None = None,
    symmetric: bool = True,
    group: int | None = None,
) -> Integers:
    """An activation's integers: dynamic, or static where a scale is given."""
    shape = activation_scale_shape(tuple(x.shape), granularity, group)
    length = group or math.prod(x.shape[len(shape) :])
    runs = x.detach().float().reshape(math.prod(shape), length)
    if scale is not None:
        if zero_point is not None:
            check_asymmetric(width)
        _check_finite(runs)
        values = _with_scale(runs, width, scale.float(), zero_point)
        return Integers(values.reshape(x.shape), scale.float(), zero_point)
    if length == 0:
        raise ShapeError("no scale can be taken from an empty tensor", hint="give static scales")
    integers = _symmetric(runs, width, mode) if symmetric else _asymmetric(runs, width)
    return _shape(integers, x.shape, shape)


def fake_quant_weight(weight: Tensor, scheme: LayerScheme) -> Tensor:
    """Return what the weight's integers stand for; as it is where it stays float."""
    if scheme.weight is None:
        return weight
    value = quantize_weight(weight, scheme).dequantize().to(weight.dtype)
    return _straight_through(rotate(weight, scheme.hadamard), value, None)


def rotate(x: Tensor, block: int | None) -> Tensor:
    """Rotate blocks of the last dimension, as `numerics.hadamard` does; its own gradient, too."""
    if block is None:
        return x
    wide = x if x.dtype == torch.float64 else x.float()
    for _ in range(block.bit_length() - 1):
        first, second = wide.reshape(x.numel() // block, block // 2, 2).unbind(-1)
        wide = torch.stack([first + second, first - second], dim=1)
    return (wide * factor(block)).reshape(x.shape).to(x.dtype)


def fake_quant_activation(
    x: Tensor,
    width: Width | None,
    granularity: ActivationGranularity = "row",
    scale: Tensor | None = None,
    zero_point: Tensor | None = None,
    group: int | None = None,
) -> Tensor:
    """Return what the activation's integers stand for; as it is without a width."""
    if width is None:
        return x
    integers = quantize_activation(
        x, width, granularity, scale=scale, zero_point=zero_point, group=group
    )
    value = integers.dequantize().to(x.dtype)
    inside = _inside(x, width, integers) if torch.is_grad_enabled() and x.requires_grad else None
    return _straight_through(x, value, inside)


class _StraightThrough(torch.autograd.Function):
    """`value` forwards; backwards the gradient of `x`, where it is inside."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, value: Tensor, inside: Tensor | None) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(inside)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        inside: Tensor | None = ctx.saved_tensors[0]
        return grad if inside is None else grad * inside, None, None


_straight_through = cast(
    "Callable[[Tensor, Tensor, Tensor | None], Tensor]",
    _StraightThrough.apply,  # pyright: ignore[reportUnknownMemberType]
)


def _inside(x: Tensor, width: Width, integers: Integers) -> Tensor:
    runs = _runs(x.detach().float(), integers.scale)
    steps = runs / integers.scale.reshape(-1, 1)
    if integers.zero_point is not None:
        steps = steps + integers.zero_point.reshape(-1, 1)
    return ((steps >= width.qmin - 0.5) & (steps <= width.qmax + 0.5)).reshape(x.shape)


def _runs(x: Tensor, scale: Tensor) -> Tensor:
    """`x` as a matrix with one row for each scale; there may be none."""
    count = scale.numel()
    return x.reshape(count, x.numel() // max(count, 1))


def _shape(integers: Integers, shape: torch.Size, scale_shape: tuple[int, ...]) -> Integers:
    zeros, offset = integers.zero_point, integers.offset
    return Integers(
        integers.values.reshape(shape),
        integers.scale.reshape(scale_shape),
        None if zeros is None else zeros.reshape(scale_shape),
        None if offset is None else offset.reshape(scale_shape),
    )


def _symmetric(runs: Tensor, width: Width, mode: Mode) -> Integers:
    by_mean = mode == "mean" or width.bits <= 2
    largest = _mean_magnitude(runs) if by_mean else torch.maximum(runs.amax(1), -runs.amin(1))
    _check_finite(largest)
    magnitude = largest.clamp(min=_EPS)
    if width.bits <= 2:
        return Integers(_with_scale(runs, width, magnitude), magnitude)
    multiplier = torch.div(torch.full_like(magnitude, width.qmax), magnitude)
    values = _clamp(torch.round(runs * multiplier[:, None]), width)
    return Integers(values, torch.div(torch.ones_like(multiplier), multiplier))


def _fit_scales(runs: Tensor, width: Width, mode: WeightMode) -> Integers:
    """Values and scales by any mode of weights, as `numerics.fitted_scales` has them."""
    if mode == "max" or mode == "mean":
        return _symmetric(runs, width, mode)
    low, high = runs.amin(1), runs.amax(1)
    _check_finite(torch.maximum(high, -low))
    if mode == "offset":
        return _from_lowest(runs, width, low, high)
    if mode == "signed-max":
        low, high = low.clamp(max=-_EPS), high.clamp(min=_EPS)
        star = torch.where(high >= -low, high, low)
        scale = torch.div(star, torch.full_like(star, width.qmin))
    else:
        scale = _least_error_scale(runs, width)
    return Integers(_with_scale(runs, width, scale), scale)


def _with_half_scales(runs: Tensor, width: Width, given: Integers) -> Integers:
    """Round scales and offsets to f16, and then the weight by them."""
    scale = _as_half(given.scale)
    if given.offset is None:
        return Integers(_with_scale(runs, width, scale), scale)
    offset = _as_half(given.offset)
    values = _with_scale(runs - offset[:, None], width, scale, given.zero_point)
    return Integers(values, scale, given.zero_point, offset)


def _as_half(numbers: Tensor) -> Tensor:
    largest = float(LARGEST_HALF)
    return numbers.clamp(-largest, largest).half().float()


def _from_lowest(runs: Tensor, width: Width, low: Tensor, high: Tensor) -> Integers:
    span = (high - low).clamp(min=_EPS)
    _check_finite(span)
    scale = torch.div(span, torch.full_like(span, (1 << width.bits) - 1))
    zero_point = torch.full_like(scale, width.qmin)
    values = _with_scale(runs - low[:, None], width, scale, zero_point)
    return Integers(values, scale, zero_point, low)


def _least_error_scale(runs: Tensor, width: Width) -> Tensor:
    magnitude = torch.maximum(runs.amax(1), -runs.amin(1)).clamp(min=_EPS)
    multiplier = torch.div(torch.full_like(magnitude, width.qmax), magnitude)
    largest = torch.div(torch.ones_like(multiplier), multiplier)
    best, least = largest, torch.full_like(largest, torch.inf, dtype=torch.float64)
    for candidate in CANDIDATES:
        scale = largest * candidate
        difference = (runs - _with_scale(runs, width, scale) * scale[:, None]).double()
        error = _sum_magnitudes(difference * difference)
        best, least = torch.where(error < least, scale, best), torch.minimum(error, least)
    return best


def _asymmetric(runs: Tensor, width: Width) -> Integers:
    check_asymmetric(width)
    low, high = runs.amin(1).clamp(max=0.0), runs.amax(1).clamp(min=0.0)
    span = (high - low).clamp(min=_EPS)
    _check_finite(span)
    scale = torch.div(span, torch.full_like(span, (1 << width.bits) - 1))
    zero_point = _clamp(torch.round(width.qmin - low / scale), width)
    return Integers(_with_scale(runs, width, scale, zero_point), scale, zero_point)


def _with_scale(
    runs: Tensor, width: Width, scale: Tensor, zero_point: Tensor | None = None
) -> Tensor:
    if width.is_binary:
        return torch.where(runs >= 0, torch.ones_like(runs), -torch.ones_like(runs))
    values = torch.round(runs / scale.reshape(-1, 1))
    if zero_point is not None:
        values = values + zero_point.reshape(-1, 1)
    return _clamp(values, width)


def _clamp(x: Tensor, width: Width) -> Tensor:
    return x.clamp(width.qmin, width.qmax)


def _mean_magnitude(runs: Tensor) -> Tensor:
    """mean|x| of each run."""
    return (_sum_magnitudes(runs) / runs.shape[1]).float()


def _sum_magnitudes(runs: Tensor) -> Tensor:
    """Σ|x| of each run, in the order of `numerics.mean_magnitude`."""
    count, length = runs.shape
    rows = max(1, _ROWS_BLOCK // max(length, 1))
    lanes = torch.cat([_lanes(runs[top : top + rows]) for top in range(0, max(count, 1), rows)])
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return lanes[:, 0]


def _lanes(runs: Tensor) -> Tensor:
    """The magnitudes of runs, added in lanes: [runs, lanes], in float64."""
    count, length = runs.shape
    part = part_length(length)
    parts = max(1, -(-length // part))
    padded = torch.nn.functional.pad(runs.abs(), (0, parts * part - length))
    split = padded.reshape(count, parts, part // LANES, LANES)
    lanes = torch.zeros((count, parts, LANES), dtype=torch.float64, device=runs.device)
    for step in range(part // LANES):
        lanes = lanes + split[:, :, step]
    total = lanes[:, 0]
    for number in range(1, parts):
        total = total + lanes[:, number]
    return total


def _check_finite(x: Tensor) -> None:
    if torch.compiler.is_compiling() or bool(torch.isfinite(x).all()):
        return
    raise Error(
        "a tensor to be quantized holds values that are not finite in float32",
        hint="a scale cannot be taken from NaN or infinity; look where they come from",
    )
