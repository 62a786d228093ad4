"""Regions of images: deformable convolutions, and pooling of boxes that the program computes."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from fewbit.frontends.onnx.ops.sampling import Sampler, interpolate
from fewbit.frontends.onnx.table import Call, op


@op("DeformConv")
def deform_conv(
    call: Call,
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The elements that each window reads, gathered, and then a matmul with the weight."""
    if x.ndim != 4:
        raise call.refusal("images of other than two dimensions")
    n, channels = (int(size) for size in x.shape[:2])
    groups, offset_groups = call.attr("group", 1), call.attr("offset_group", 1)
    kernel = [int(size) for size in weight.shape[2:]]
    rows, columns = (int(size) for size in offset.shape[2:])
    taps = kernel[0] * kernel[1]
    sampler = Sampler(call, x.reshape([n * offset_groups, -1, *x.shape[2:]]))
    moved = offset.reshape([n * offset_groups, taps, 2, rows, columns])
    places = [_window_places(call, kernel, axis) + moved[:, :, axis] for axis in range(2)]
    read = interpolate(sampler, places, [0, 1], cubic=False)
    if mask is not None:
        read = read * mask.reshape([n * offset_groups, 1, taps, rows, columns])
    read = read.reshape([n, groups, channels // groups * taps, rows * columns])
    result = torch.matmul(weight.reshape([groups, -1, channels // groups * taps]), read)
    result = result.reshape([n, -1, rows, columns])
    return result if bias is None else result + bias.reshape([1, -1, 1, 1])


def _window_places(call: Call, kernel: list[int], axis: int) -> Tensor:
    """Return where the windows read along an axis, as [taps, rows, columns]."""
    counts = [int(size) for size in call.shape(2)[2:]]
    stride, dilation = call.attr("strides", [1, 1])[axis], call.attr("dilations", [1, 1])[axis]
    outputs = torch.arange(counts[axis]) * stride - call.attr("pads", [0] * 4)[axis]
    taps = torch.arange(kernel[axis]) * dilation
    along = [1, -1] if axis else [-1, 1]
    taps = taps.reshape(along).expand(kernel).reshape([-1, 1, 1])
    return taps + outputs.reshape([1, *along])


@op("RoiAlign")
def roi_align(call: Call, x: Tensor, boxes: Tensor, images: Tensor) -> Tensor:
    """Samples inside of each part of a box, interpolated, and their mean or largest."""
    ratio = call.attr("sampling_ratio", 0)
    if ratio <= 0:
        raise call.refusal("how many samples it takes depends on data (sampling_ratio 0)")
    old = call.version < 16
    mode = call.attr("coordinate_transformation_mode", "half_pixel")
    half_pixel = not old and mode == "half_pixel"
    corners = boxes * call.attr("spatial_scale", 1.0) - (0.5 if half_pixel else 0.0)
    height, width = (int(size) for size in x.shape[2:])
    counts = call.attr("output_height", 1), call.attr("output_width", 1)
    lines = [
        _box_places(corners[:, 1 - axis], corners[:, 3 - axis], count, ratio, half_pixel)
        for axis, count in enumerate(counts)
    ]
    count = boxes.shape[0]
    y = lines[0].reshape([count, -1, 1])
    across = lines[1].reshape([count, 1, -1])
    inside = (y >= -1) & (y <= height) & (across >= -1) & (across <= width)
    y, across = y.clamp(0, height - 1), across.clamp(0, width - 1)
    table = x.permute(1, 0, 2, 3).reshape([x.shape[1], -1])
    first = images.to(torch.int64).reshape([-1, 1, 1]) * height
    parts: list[Tensor] = []
    for up, right in product(range(2), repeat=2):
        row, row_weight = _neighbour(y, up, height)
        column, column_weight = _neighbour(across, right, width)
        flat = ((first + row) * width + column).reshape([-1])
        weight = torch.where(inside, row_weight * column_weight, 0.0)
        parts.append(torch.index_select(table, 1, flat).reshape([-1, *weight.shape]) * weight)
    shape = [-1, count, counts[0], ratio, counts[1], ratio]
    if call.attr("mode", "avg") == "max":
        largest = torch.maximum(torch.maximum(*parts[:2]), torch.maximum(*parts[2:]))
        return largest.reshape(shape).amax([3, 5]).transpose(0, 1)
    return sum(parts[1:], parts[0]).reshape(shape).mean([3, 5]).transpose(0, 1)


def _box_places(start: Tensor, end: Tensor, count: int, ratio: int, half_pixel: bool) -> Tensor:
    """The samples along one side of each box, as [boxes, count * ratio]."""
    length = end - start
    if not half_pixel:
        length = length.clamp(min=1.0)
    steps = (torch.arange(count * ratio) + 0.5).to(start.dtype) / ratio
    return start.unsqueeze(1) + steps * (length / count).unsqueeze(1)


def _neighbour(place: Tensor, above: int, size: int) -> tuple[Tensor, Tensor]:
    """One of the two whole places around another, and its weight."""
    low = torch.floor(place)
    share = place - low
    whole = (low + above).clamp(max=size - 1).to(torch.int64)
    return whole, share if above else 1 - share
