"""Resize along an axis of dynamic size: the program computes which elements it takes.

Places are computed in f64 as the tables of static sizes are, so that both choose the same elements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from fewbit.frontends.onnx.ops.padding import clamp_places
from fewbit.frontends.onnx.table import Call, is_symbol
from fewbit.frontends.onnx.values import Size

_torch = cast(Any, torch)


@dataclass(frozen=True)
class DynamicAxis:
    """How an axis is resized; a scale of None is that of the sizes."""

    given: Size
    wanted: Size
    scale: float | None


def scaled_size(size: Size, scale: float) -> Size:
    """Return a size, times a scale, rounded down."""
    if not is_symbol(size):
        return math.floor(int(size) * scale + 1e-9 * scale)
    if scale == int(scale):
        return size * int(scale)
    return math.floor(size * scale + 1e-9 * scale)


def resize_dynamic(call: Call, x: Tensor, number: int, axis: DynamicAxis, mode: str) -> Tensor:
    """Resize one axis to the nearest element, or linearly between two."""
    if mode == "cubic" or call.attr("antialias", 0):
        raise call.refusal("a dynamic size is resized by more than two elements")
    places = _places(call, axis)
    if mode == "nearest":
        chosen = _nearest(places, call.attr("nearest_mode", "round_prefer_floor"))
        return torch.index_select(x, number, clamp_places(chosen.to(torch.int64), axis.given))
    below = torch.floor(places)
    shape = [-1 if i == number else 1 for i in range(x.ndim)]
    part = (places - below).to(x.dtype).reshape(shape)
    first = below.to(torch.int64)
    before = torch.index_select(x, number, clamp_places(first, axis.given))
    behind = torch.index_select(x, number, clamp_places(first + 1, axis.given))
    return before * (1 - part) + behind * part


def _places(call: Call, axis: DynamicAxis) -> Tensor:
    """Return where each element of the result lies among the elements given."""
    mode = call.attr("coordinate_transformation_mode", "half_pixel")
    i = torch.arange(axis.wanted).to(torch.float64)
    given, wanted = _torch.sym_float(axis.given), _torch.sym_float(axis.wanted)
    length = wanted if axis.scale is None else given * axis.scale
    if mode == "align_corners":
        return i * ((given - 1) / _torch.sym_max(length - 1, 1.0))
    inverse = given / wanted if axis.scale is None else 1 / axis.scale
    if mode == "asymmetric":
        return i * inverse
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) * inverse
    if mode not in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
        raise call.refusal(f"a dynamic size is resized with the mode '{mode}'")
    middle = (i + 0.5) * inverse - 0.5
    if mode == "half_pixel_symmetric":
        return middle + given / 2 * (1 - wanted / length)
    return middle


def _nearest(x: Tensor, mode: str) -> Tensor:
    if mode == "round_prefer_floor":
        return torch.ceil(x - 0.5)
    if mode == "round_prefer_ceil":
        return torch.floor(x + 0.5)
    return torch.floor(x) if mode == "floor" else torch.ceil(x)
