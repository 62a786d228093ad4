"""Padding and cropping."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from fewbit.base.typed_torch import from_numpy
from fewbit.frontends.onnx.table import Call, is_symbol, op
from fewbit.frontends.onnx.values import Size, outside_trace


@op("Pad", tensors=1, any_sign=True)
def pad(call: Call, x: Tensor) -> Tensor:
    pads = call.attr("pads") if call.version < 11 else call.ints(1)
    axes = [a % x.ndim for a in call.whole(3)] if call.has(3) else list(range(x.ndim))
    before, after = pads[: len(axes)], pads[len(axes) :]
    mode = call.attr("mode", "constant")
    if mode == "constant":
        return _constant(call, x, axes, before, after)
    for axis, low, high in zip(axes, before, after, strict=True):
        if not isinstance(low, int) or not isinstance(high, int):
            raise call.refusal(f"mode '{mode}' with dynamic amounts")
        if is_symbol(x.shape[axis]):
            x = _pad_dynamic(call, x, axis, low, high, mode)
        else:
            x = _pad_by_index(call, x, axis, low, high, mode)
    return x


def _constant(
    call: Call, x: Tensor, axes: list[int], before: list[Size], after: list[Size]
) -> Tensor:
    pairs: list[tuple[Size, Size]] = [(0, 0)] * x.ndim
    for axis, low, high in zip(axes, before, after, strict=True):
        pairs[axis] = low, high
    flat = [side for pair in reversed(pairs) for side in pair]
    while len(flat) > 2 and all(isinstance(s, int) and s == 0 for s in flat[-2:]):
        flat = flat[:-2]
    if call.version < 11:
        return F.pad(x, flat, value=call.attr("value", 0.0))
    known = call.items(2) if call.has(2) else [0]
    if known is None:
        return _with_computed_value(x, flat, call.tensor(2))
    number = known[0]
    if x.dtype is torch.bool:
        return F.pad(x.to(torch.int32), flat, value=int(number)) != 0
    return F.pad(x, flat, value=number)


def _with_computed_value(x: Tensor, flat: list[Size], value: Tensor) -> Tensor:
    inside = F.pad(torch.ones_like(x, dtype=torch.float32), flat) != 0
    moved = F.pad(x.to(torch.int32), flat) != 0 if x.dtype is torch.bool else F.pad(x, flat)
    return torch.where(inside, moved, value.reshape([]))


def _pad_by_index(call: Call, x: Tensor, axis: int, low: int, high: int, mode: str) -> Tensor:
    """Every place of the result is an element of `x`; which one, numpy knows."""
    import numpy as np

    if low == 0 and high == 0:
        return x
    size = int(x.shape[axis])
    amounts = (max(low, 0), max(high, 0))
    grown: np.ndarray[Any, Any] = cast(Any, np).pad(np.arange(size), amounts, mode=mode)
    kept = grown[max(-low, 0) : len(grown) - max(-high, 0)]
    with outside_trace():
        chosen = from_numpy(kept.astype(np.int64).copy())
    return torch.index_select(x, axis, call.constant(chosen, f"axis{axis}"))


def _pad_dynamic(call: Call, x: Tensor, axis: int, low: int, high: int, mode: str) -> Tensor:
    """The same of a dynamic size, whose places the program computes."""
    if low == 0 and high == 0:
        return x
    size: Size = x.shape[axis]
    places = torch.arange(size + low + high) - low
    if mode == "reflect":
        # A place is mirrored once, so the padding is shorter than what it mirrors.
        call.require(size > max(low, high), f"size {axis} of its input is less than the padding")
        places = (places.abs() - (size - 1)).abs().neg() + (size - 1)
    elif mode == "edge":
        places = clamp_places(places, size)
    elif mode == "wrap":
        places = cast(Any, torch).remainder(places, size)
    else:
        raise call.refusal(f"mode '{mode}' with dynamic sizes")
    return torch.index_select(x, axis, places)


def clamp_places(places: Tensor, size: Size) -> Tensor:
    """Indices that lie within an axis; those beyond it become its first or last."""
    first, last = places.new_zeros([]), places.new_full([], size - 1)
    return torch.minimum(torch.maximum(places, first), last)


@op("CenterCropPad", tensors=1, any_sign=True)
def center_crop_pad(call: Call, x: Tensor) -> Tensor:
    wanted = call.whole(1)
    axes = [int(a) % x.ndim for a in call.attr("axes", list(range(x.ndim)))]
    for axis, size in zip(axes, wanted, strict=True):
        have = int(x.shape[axis])
        if have > size:
            x = x.narrow(axis, (have - size) // 2, size)
        elif have < size:
            low = (size - have) // 2
            flat = [0, 0] * (x.ndim - 1 - axis) + [low, size - have - low]
            x = F.pad(x, flat)
    return x


@op("Col2Im", tensors=1)
def columns_to_image(call: Call, x: Tensor) -> Tensor:
    image, block = call.whole(1), call.whole(2)
    rank = len(image)
    dilations, strides = call.attr("dilations", [1] * rank), call.attr("strides", [1] * rank)
    pads = call.attr("pads", [0] * (2 * rank))
    padded = [image[i] + pads[i] + pads[rank + i] for i in range(rank)]
    counts = [
        (padded[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)
    ]
    places = torch.zeros(1, dtype=torch.int64)
    for i in range(rank):
        along = torch.arange(block[i]).unsqueeze(1) * dilations[i]
        along = along + torch.arange(counts[i]).unsqueeze(0) * strides[i]
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = block[i], counts[i]
        places = places * padded[i] + along.reshape(shape)
    n, channels = x.shape[0], x.shape[1] // places[(slice(None),) * rank + (0,) * rank].numel()
    values = x.reshape([n, channels, -1])
    index = places.reshape([1, 1, -1]).expand(values.shape)
    total = 1
    for size in padded:
        total *= size
    result = torch.zeros([n, channels, total], dtype=x.dtype).scatter_add(2, index, values)
    result = result.reshape([n, channels, *padded])
    for i in range(rank):
        result = result.narrow(2 + i, pads[i], image[i])
    return result
