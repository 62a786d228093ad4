"""Resize and Upsample: along each axis, every element of the result is a weighted sum of a few.

Which elements, and the weights, follow from sizes alone, so they are tables of constants. Along an
axis of dynamic size the program computes them (`dynamic_resize`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fewbit.base.typed_torch import from_numpy
from fewbit.frontends.onnx.ops.dynamic_resize import DynamicAxis, resize_dynamic, scaled_size
from fewbit.frontends.onnx.table import Call, is_symbol, op
from fewbit.frontends.onnx.values import Size, outside_trace


@dataclass(frozen=True)
class Axis:
    """How one axis is resized."""

    given: int
    wanted: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)

    def place(self, mode: str, i: int) -> float:
        """Return where element `i` of the result lies among the elements given."""
        length = self.scale * self.given
        if mode == "align_corners":
            return 0.0 if length == 1 else i * (self.given - 1) / (length - 1)
        if mode == "asymmetric":
            return i / self.scale
        if mode == "tf_crop_and_resize":
            start, end = self.roi
            if self.wanted == 1:
                return 0.5 * (start + end) * (self.given - 1)
            step = (end - start) * (self.given - 1) / (self.wanted - 1)
            return start * (self.given - 1) + i * step
        if mode == "tf_half_pixel_for_nn":
            return (i + 0.5) / self.scale
        if mode == "pytorch_half_pixel" and self.wanted == 1:
            return -0.5
        middle = (i + 0.5) / self.scale - 0.5
        if mode == "half_pixel_symmetric":
            return self.given / 2 * (1 - self.wanted / length) + middle
        return middle


def _nearest(x: float, mode: str) -> int:
    if mode == "round_prefer_floor":
        return math.ceil(x - 0.5)
    if mode == "round_prefer_ceil":
        return math.floor(x + 0.5)
    return math.floor(x) if mode == "floor" else math.ceil(x)


def _cubic(distance: float, a: float) -> float:
    d = abs(distance)
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return (((d - 5) * d + 8) * d - 4) * a if d < 2 else 0.0


def _taps(call: Call, axis: Axis, mode: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices and weights [taps, wanted], and whether each place lies outside."""
    where = call.attr("coordinate_transformation_mode", "half_pixel")
    rounding = call.attr("nearest_mode", "round_prefer_floor")
    smooth = min(axis.scale, 1.0) if call.attr("antialias", 0) else 1.0
    reach = {"nearest": 0, "linear": 1, "cubic": 2}[mode]
    a = call.attr("cubic_coeff_a", -0.75)
    start = math.floor(-reach / smooth) + 1
    offsets = range(start, 2 - start) if reach else range(1)
    if reach == 2:
        offsets = range(math.floor(-2 / smooth) + 1, 2 - (math.floor(-2 / smooth) + 1))
    indices = np.zeros((len(offsets), axis.wanted), np.int64)
    weights = np.ones((len(offsets), axis.wanted), np.float64)
    outside = np.zeros(axis.wanted, bool)
    for i in range(axis.wanted):
        x = axis.place(where, i)
        outside[i] = x < 0 or x > axis.given - 1
        if not reach:
            indices[0, i] = min(max(_nearest(x, rounding), 0), axis.given - 1)
            continue
        base = math.floor(x)
        for k, offset in enumerate(offsets):
            at = base + offset
            distance = (at - x) * smooth
            weight = max(0.0, 1 - abs(distance)) if reach == 1 else _cubic(distance, a)
            beyond = at < 0 or at >= axis.given
            if beyond and call.attr("exclude_outside", 0):
                weight = 0.0
            indices[k, i] = min(max(at, 0), axis.given - 1)
            weights[k, i] = weight
        weights[:, i] /= weights[:, i].sum()
    return indices, weights, outside


def _resize_axis(call: Call, x: Tensor, number: int, axis: Axis, mode: str) -> Tensor:
    with outside_trace():
        indices, weights, outside = _taps(call, axis, mode)
        used = [k for k in range(len(weights)) if np.any(weights[k])]
    if mode == "nearest":
        table = call.constant(_tensor(indices[0]), f"axis{number}")
        return torch.index_select(x, number, table)
    shape = [-1 if i == number else 1 for i in range(x.ndim)]
    total: Tensor | None = None
    for k in used:
        table = call.constant(_tensor(indices[k]), f"axis{number}.{k}")
        weight = call.constant(_tensor(weights[k], x.dtype), f"weight{number}.{k}")
        part = torch.index_select(x, number, table) * weight.reshape(shape)
        total = part if total is None else total + part
    assert total is not None
    if call.attr("coordinate_transformation_mode") != "tf_crop_and_resize" or not outside.any():
        return total
    beyond = call.constant(_tensor(outside), f"outside{number}").reshape(shape)
    value = call.attr("extrapolation_value", 0.0)
    return torch.where(beyond, torch.full_like(total, value), total)


def _tensor(array: np.ndarray, dtype: torch.dtype | None = None) -> Tensor:
    with outside_trace():
        tensor = from_numpy(np.ascontiguousarray(array))
        return tensor if dtype is None else tensor.to(dtype)


def _axes(call: Call, x: Tensor) -> dict[int, Axis | DynamicAxis]:
    chosen = [int(a) % x.ndim for a in call.attr("axes", list(range(x.ndim)))]
    roi = [0.0] * len(chosen) + [1.0] * len(chosen)
    if call.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        roi = call.numbers(1)
    given = [x.shape[a] for a in chosen]
    scales, wanted = _scales(call, given)
    axes: dict[int, Axis | DynamicAxis] = {}
    for i, a in enumerate(chosen):
        if is_symbol(given[i]) or is_symbol(wanted[i]):
            if str(given[i]) != str(wanted[i]) or scales[i] not in (None, 1):
                axes[a] = DynamicAxis(given[i], wanted[i], scales[i])
            continue
        scale = int(wanted[i]) / int(given[i]) if scales[i] is None else scales[i]
        axes[a] = Axis(int(given[i]), int(wanted[i]), scale, (roi[i], roi[len(chosen) + i]))
    return axes


def _scales(call: Call, given: Sequence[Size]) -> tuple[list[Any], list[Size]]:
    """Scales and sizes of the result; a scale of None is that of the sizes."""
    place = 1 if call.version == 10 else 2
    if call.has(place) and _count(call, place):
        scales = call.numbers(place)
        return scales, [scaled_size(g, s) for g, s in zip(given, scales, strict=True)]
    sizes = call.ints(3)
    policy = call.attr("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return [None] * len(sizes), sizes
    if any(is_symbol(size) for size in (*given, *sizes)):
        raise call.refusal(f"a dynamic size with the policy '{policy}'")
    ratios = [size / have for size, have in zip(sizes, given, strict=True)]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    return [ratio] * len(sizes), [math.floor(ratio * have + 0.5) for have in given]


def _count(call: Call, index: int) -> int:
    return math.prod(call.shape(index)) if call.has(index) else 0


@op("Resize", tensors=1)
def resize(call: Call, x: Tensor) -> Tensor:
    if call.version == 10:
        call.attributes = {
            **call.attributes,
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
        }
        call.inputs = [call.inputs[0], None, call.inputs[1]]
        call.version = 11
    mode = call.attr("mode", "nearest")
    return _all_axes(call, x, _axes(call, x), mode)


def _all_axes(call: Call, x: Tensor, axes: Mapping[int, Axis | DynamicAxis], mode: str) -> Tensor:
    cropped = call.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
    for number, axis in axes.items():
        if isinstance(axis, DynamicAxis):
            x = resize_dynamic(call, x, number, axis, mode)
            continue
        if (
            axis.scale == 1
            and axis.wanted == axis.given
            and (not cropped or axis.roi == (0.0, 1.0))
        ):
            continue
        x = _resize_axis(call, x, number, axis, mode)
    return x


@op("Upsample", tensors=1)
def upsample(call: Call, x: Tensor) -> Tensor:
    scales = call.attr("scales") if call.version < 9 else call.numbers(1)
    call.attributes = {
        **call.attributes,
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    axes = {
        i: (DynamicAxis if is_symbol(x.shape[i]) else Axis)(
            x.shape[i], scaled_size(x.shape[i], s), s
        )
        for i, s in enumerate(scales)
        if s != 1
    }
    return _all_axes(call, x, axes, call.attr("mode", "nearest"))
