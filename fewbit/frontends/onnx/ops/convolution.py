"""Convolutions.

Torch pads both sides alike; where the sides differ, the input is padded before.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from fewbit.frontends.onnx.layers import layer_tensors
from fewbit.frontends.onnx.table import Call, is_symbol, op
from fewbit.frontends.onnx.values import Size

_CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def window_pads(
    call: Call, sizes: list[Size], kernel: list[int], strides: list[int], dilations: list[int]
) -> list[int]:
    """Padding before and behind each axis: first all before, then all behind."""
    rank = len(kernel)
    auto = call.attr("auto_pad", "NOTSET")
    if auto in ("NOTSET", ""):
        return call.attr("pads", [0] * (2 * rank))
    if auto == "VALID":
        return [0] * (2 * rank)
    before: list[int] = []
    behind: list[int] = []
    for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        if not isinstance(size, int) and s == 1:
            total = d * (k - 1)
        else:
            missing = (-(-size // s) - 1) * s + d * (k - 1) + 1 - size
            total = cast(Any, torch).sym_max(0, missing)
        small, large = total // 2, total - total // 2
        before.append(large if auto == "SAME_LOWER" else small)
        behind.append(small if auto == "SAME_LOWER" else large)
    return before + behind


def pad_spatial(x: Tensor, pads: list[int], value: float = 0.0) -> Tensor:
    rank = len(pads) // 2
    flat = [side for i in reversed(range(rank)) for side in (pads[i], pads[rank + i])]
    return F.pad(x, flat, value=value) if any(is_symbol(p) or p for p in flat) else x


@op("Conv", tensors=0)
def convolution(call: Call) -> Tensor:
    x, weight = layer_tensors(call, 0, 1)
    return convolve(call, x, weight, call.optional(2))


def convolve(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    rank = weight.ndim - 2
    if rank not in _CONVOLUTIONS:
        raise call.refusal(f"a convolution over {rank} axes")
    strides, dilations = call.attr("strides", [1] * rank), call.attr("dilations", [1] * rank)
    kernel = [int(k) for k in weight.shape[2:]]
    pads = window_pads(call, list(x.shape[2:]), kernel, strides, dilations)
    if any(is_symbol(pad) for pad in pads) or pads[:rank] != pads[rank:]:
        x, pads = pad_spatial(x, pads), [0] * (2 * rank)
    groups = call.attr("group", 1)
    return _CONVOLUTIONS[rank](x, weight, bias, strides, pads[:rank], dilations, groups)


@op("ConvTranspose")
def transposed_convolution(
    call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    rank = weight.ndim - 2
    strides, dilations = call.attr("strides", [1] * rank), call.attr("dilations", [1] * rank)
    extra = call.attr("output_padding", [0] * rank)
    kernel = [int(k) for k in weight.shape[2:]]
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    pads = _output_pads(call, x, strides, spans, extra)
    groups = call.attr("group", 1)
    # The whole result first, then what the padding cuts off.
    whole = _transposed_convolution(x, weight, strides, dilations, groups)
    rank_pads = list(zip(pads[:rank], pads[rank:], extra, strict=True))
    for axis, (before, behind, more) in enumerate(rank_pads, start=2):
        end = whole.shape[axis] - behind + more
        grown = max(0, more - behind)
        if grown:
            whole = F.pad(whole, [0, 0] * (whole.ndim - 1 - axis) + [0, grown])
        if before < 0:
            whole = F.pad(whole, [0, 0] * (whole.ndim - 1 - axis) + [-before, 0])
            end, before = end - before, 0
        whole = whole.narrow(axis, before, end - before)
    if bias is None:
        return whole
    return whole + bias.reshape([-1] + [1] * rank)


def _transposed_convolution(
    x: Tensor, weight: Tensor, strides: list[int], dilations: list[int], groups: int
) -> Tensor:
    """A convolution of `x`, zeros between its elements, with the flipped weight."""
    rank = weight.ndim - 2
    for axis, stride in enumerate(strides, start=2):
        if stride > 1:
            x = _with_gaps(x, axis, stride)
    flipped = torch.flip(weight, list(range(2, 2 + rank)))
    inputs, outputs = flipped.shape[0], flipped.shape[1]
    flipped = flipped.reshape([groups, inputs // groups, outputs, *flipped.shape[2:]])
    flipped = flipped.transpose(1, 2).reshape(
        [groups * outputs, inputs // groups, *flipped.shape[3:]]
    )
    pads = [d * (k - 1) for d, k in zip(dilations, weight.shape[2:], strict=True)]
    return _CONVOLUTIONS[rank](x, flipped, None, [1] * rank, pads, dilations, groups)


def _with_gaps(x: Tensor, axis: int, stride: int) -> Tensor:
    last = x.unsqueeze(axis + 1)
    flat = [0, 0] * (last.ndim - 2 - axis) + [0, stride - 1]
    size = x.shape[axis]
    shape = [*x.shape[:axis], size * stride, *x.shape[axis + 1 :]]
    return F.pad(last, flat).reshape(shape).narrow(axis, 0, (size - 1) * stride + 1)


def _output_pads(
    call: Call, x: Tensor, strides: list[int], spans: list[int], extra: list[int]
) -> list[int]:
    rank = len(strides)
    wanted = call.attr("output_shape")
    auto = call.attr("auto_pad", "NOTSET")
    if wanted is None and auto in ("NOTSET", ""):
        return call.attr("pads", [0] * (2 * rank))
    if wanted is None and auto == "VALID":
        return [0] * (2 * rank)
    sizes = x.shape[2:]
    target = wanted or [int(s) * t for s, t in zip(sizes, strides, strict=True)]
    target = target[-rank:]
    before: list[int] = []
    behind: list[int] = []
    for i in range(rank):
        total = strides[i] * (int(sizes[i]) - 1) + extra[i] + spans[i] - target[i]
        small, large = total // 2, total - total // 2
        before.append(small if auto == "SAME_UPPER" else large)
        behind.append(large if auto == "SAME_UPPER" else small)
    return before + behind
