"""Pooling.

Windows that torch knows go to its own ops, which have ops of ours. All others are computed from the
slices of the padded input that the elements of a window see, one slice for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import product
from math import prod
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from fewbit.decompositions.functions import max_pool1d
from fewbit.frontends.onnx.kinds import INT64
from fewbit.frontends.onnx.ops.convolution import pad_spatial, window_pads
from fewbit.frontends.onnx.table import Call, is_symbol, op

MOST_SLICES = 4096
_torch = cast(Any, torch)


class Windows:
    """Where the windows of a pooling op lie."""

    def __init__(self, call: Call, x: Tensor) -> None:
        self.kernel: list[int] = call.attr("kernel_shape")
        self.rank = len(self.kernel)
        self.strides: list[int] = call.attr("strides", [1] * self.rank)
        self.dilations: list[int] = call.attr("dilations", [1] * self.rank)
        sizes = list(x.shape[2:])
        self.pads = window_pads(call, sizes, self.kernel, self.strides, self.dilations)
        self.ceil = bool(call.attr("ceil_mode", 0))
        self.sizes = sizes
        if prod(self.kernel) > MOST_SLICES:
            raise call.refusal(f"a window of {prod(self.kernel)} elements")

    def counts(self) -> list[int]:
        """Return how many windows there are along each axis."""
        counts: list[int] = []
        for i in range(self.rank):
            size, before, behind = self.sizes[i], self.pads[i], self.pads[self.rank + i]
            reach = self.dilations[i] * (self.kernel[i] - 1) + 1
            room = size + before + behind - reach
            count = -(-room // self.strides[i]) + 1 if self.ceil else room // self.strides[i] + 1
            if self.ceil:  # None begins in the padding behind.
                count = _torch.sym_min(count, (size + before - 1) // self.strides[i] + 1)
            counts.append(count)
        return counts

    @property
    def is_plain(self) -> bool:
        if any(is_symbol(pad) for pad in self.pads):
            return False
        alike = self.pads[: self.rank] == self.pads[self.rank :]
        small = all(2 * p <= k for p, k in zip(self.pads, self.kernel * 2, strict=True))
        return alike and small and not self.ceil

    @property
    def is_dynamic_row(self) -> bool:
        return self.rank == 1 and is_symbol(self.sizes[0])

    def slices(self, x: Tensor, fill: float) -> Iterator[Tensor]:
        counts = self.counts()
        more = [
            _torch.sym_max(
                0, (counts[i] - 1) * self.strides[i] + self.dilations[i] * (self.kernel[i] - 1) + 1
                - self.sizes[i] - self.pads[i])
            for i in range(self.rank)
        ]  # fmt: skip
        x = pad_spatial(x, [*self.pads[: self.rank], *more], fill)
        for place in product(*(range(k) for k in self.kernel)):
            part = x
            for i, at in enumerate(place):
                start = at * self.dilations[i]
                end = start + (counts[i] - 1) * self.strides[i] + 1
                whole = [slice(None)] * x.ndim
                whole[2 + i] = slice(start, end, self.strides[i])
                part = part[tuple(whole)]
            yield part


@op("MaxPool")
def max_pool(call: Call, x: Tensor) -> object:
    windows = Windows(call, x)
    if call.wants(1):
        return _with_indices(call, x, windows)
    if windows.is_plain and windows.rank == 2 and x.dtype.is_floating_point:
        pads = windows.pads[:2]
        return F.max_pool2d(x, windows.kernel, windows.strides, pads, windows.dilations)
    if windows.is_plain and windows.is_dynamic_row and x.dtype.is_floating_point:
        return max_pool1d(x, windows.kernel, windows.strides, windows.pads[:1], windows.dilations)
    return reduce(torch.maximum, windows.slices(x, _lowest(x)))


def _lowest(x: Tensor) -> float:
    return float("-inf") if x.dtype.is_floating_point else torch.iinfo(x.dtype).min


def _with_indices(call: Call, x: Tensor, windows: Windows) -> tuple[Tensor, object]:
    """The largest, and its place in the whole tensor; of equal ones the first."""
    shape = [int(size) for size in x.shape]
    places = torch.arange(prod(shape)).reshape(shape)
    if call.attr("storage_order", 0):
        outer = torch.arange(shape[0] * shape[1]).reshape(shape[:2] + [1] * windows.rank)
        inner = torch.arange(prod(shape[2:])).reshape(list(reversed(shape[2:])))
        places = outer * prod(shape[2:]) + inner.permute(list(reversed(range(windows.rank))))
    best, where = None, None
    values, indices = windows.slices(x, _lowest(x)), windows.slices(places, 0)
    for value, index in zip(values, indices, strict=True):
        if best is None or where is None:
            best, where = value, index
            continue
        where = torch.where(value > best, index, where)
        best = torch.maximum(best, value)
    assert best is not None
    assert where is not None
    return best, call.result(where, INT64)


@op("AveragePool")
def average_pool(call: Call, x: Tensor) -> Tensor:
    windows = Windows(call, x)
    include = bool(call.attr("count_include_pad", 0))
    if windows.is_plain and windows.rank == 2 and windows.dilations == [1, 1]:
        return F.avg_pool2d(
            x, windows.kernel, windows.strides, windows.pads[:2], count_include_pad=include
        )
    if windows.is_plain and windows.is_dynamic_row and windows.dilations == [1]:
        pads = windows.pads[:1]
        return F.avg_pool1d(x, windows.kernel, windows.strides, pads, count_include_pad=include)
    total = reduce(torch.add, windows.slices(x, 0.0))
    return total / _count_elements(windows, x, include)


def _count_elements(windows: Windows, x: Tensor, include: bool) -> Tensor:
    """Return how many elements of each window count."""
    inside = torch.ones([1, 1, *x.shape[2:]], dtype=x.dtype)
    if not include:
        return reduce(torch.add, windows.slices(inside, 0.0))
    counted = pad_spatial(inside, windows.pads, 1.0)
    bare = Windows.__new__(Windows)
    bare.__dict__.update(vars(windows))
    bare.sizes, bare.pads = list(counted.shape[2:]), [0] * (2 * windows.rank)
    counts = windows.counts()
    bare.counts = lambda: counts
    return reduce(torch.add, bare.slices(counted, 0.0))


@op("LpPool")
def lp_pool(call: Call, x: Tensor) -> Tensor:
    p = call.attr("p", 2)
    powers = torch.pow(torch.abs(x), p) if p != 2 else x * x
    total = reduce(torch.add, Windows(call, x).slices(powers, 0.0))
    return torch.sqrt(total) if p == 2 else torch.pow(total, 1 / p)


@op("GlobalAveragePool")
def global_average_pool(call: Call, x: Tensor) -> Tensor:
    if x.ndim == 4:
        return F.adaptive_avg_pool2d(x, (1, 1))
    return torch.mean(x, list(range(2, x.ndim)), keepdim=True)


@op("GlobalMaxPool")
def global_max_pool(call: Call, x: Tensor) -> Tensor:
    return torch.amax(x, list(range(2, x.ndim)), keepdim=True)


@op("GlobalLpPool")
def global_lp_pool(call: Call, x: Tensor) -> Tensor:
    p, axes = call.attr("p", 2), list(range(2, x.ndim))
    return torch.pow(torch.sum(torch.pow(torch.abs(x), p), axes, keepdim=True), 1 / p)


@op("MaxUnpool", tensors=2)
def max_unpool(call: Call, x: Tensor, indices: Tensor) -> Tensor:
    kernel = call.attr("kernel_shape")
    rank = len(kernel)
    strides, pads = call.attr("strides", [1] * rank), call.attr("pads", [0] * (2 * rank))
    sizes = [
        (int(x.shape[2 + i]) - 1) * strides[i] - pads[i] - pads[rank + i] + kernel[i]
        for i in range(rank)
    ]
    n, c = x.shape[:2]
    result = torch.zeros([n * c * prod(sizes)], dtype=x.dtype)
    flat = indices.reshape([-1])
    if call.has(2):
        wanted = call.whole(2)[2:]
        result = result.scatter(0, flat, x.reshape([-1])).reshape([n, c, *sizes])
        return F.pad(result, [s for i in reversed(range(rank)) for s in (0, wanted[i] - sizes[i])])
    return result.scatter(0, flat, x.reshape([-1])).reshape([n, c, *sizes])
