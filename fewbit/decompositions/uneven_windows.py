"""Adaptive pooling whose windows differ in size.

The window of output i is `[floor(i·n / m), ceil((i + 1)·n / m))`. All windows are gathered with as
many elements as the largest has; of shorter ones the last element is repeated, and then not
counted. torch-mlir's own lowering stops when it meets such windows.

Where the size of the image is open, so are those of the windows: each is a slice, one axis after
the other for averages, since the mean of equally many means is the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from fewbit.decompositions.sizes import is_static

aten = torch.ops.aten


def window_decompositions() -> dict[Any, Callable[..., Any]]:
    """Decompositions, by op; each leaves windows of one size as they are."""
    return {
        aten.adaptive_avg_pool1d.default: _average_1d,
        aten.adaptive_avg_pool2d.default: _average,
        aten._adaptive_avg_pool2d.default: _average,
        aten.adaptive_avg_pool3d.default: _average,
        aten._adaptive_avg_pool3d.default: _average,
        aten.adaptive_max_pool2d.default: _maximum,
        aten.adaptive_max_pool3d.default: _maximum,
    }


def _average_1d(x: Tensor, output_size: Sequence[int]) -> Any:
    wide = aten.adaptive_avg_pool2d.default(x.unsqueeze(-2), [1, *output_size])
    return wide.squeeze(-2)


def _average(x: Tensor, output_size: Sequence[int]) -> Any:
    if _are_open(x, output_size):
        return _average_open(x, output_size)
    if not _are_uneven(x, output_size):
        if x.ndim == len(output_size) + 2 or len(output_size) != 2:
            return NotImplemented
        return aten.adaptive_avg_pool2d.default(x.unsqueeze(0), output_size).squeeze(0)
    windows = _windows(x, output_size)
    counted = _in_window(x, output_size)
    inner = list(range(-len(output_size), 0))
    total = torch.where(counted, windows, 0).sum(inner)
    return total / counted.sum(inner).to(x.dtype)


def _maximum(x: Tensor, output_size: Sequence[int]) -> Any:
    """Maxima, and where they are in the flattened image."""
    rank = len(output_size)
    if not all(is_static(size) for size in x.shape[-rank:]):
        return _maximum_open(x, output_size)
    windows = _windows(x, output_size).flatten(-rank)
    values, places = windows.max(-1)
    flat = torch.arange(1).reshape([1] * rank)
    for axis, size in enumerate(x.shape[-rank:]):
        line = torch.arange(int(size)).reshape([-1 if i == axis else 1 for i in range(rank)])
        flat = flat * size + line
    sources = _windows(flat, output_size).flatten(-rank).expand(windows.shape)
    return values, sources.gather(-1, places.unsqueeze(-1)).squeeze(-1)


def _are_open(x: Tensor, output_size: Sequence[int]) -> bool:
    """Tell whether several windows share an axis whose size is open."""
    sizes = x.shape[-len(output_size) :]
    pairs = zip(sizes, output_size, strict=True)
    return any(not is_static(size) and not _is_one(count) for size, count in pairs)


def _is_one(count: Any) -> bool:
    return is_static(count) and int(count) == 1


def _average_open(x: Tensor, output_size: Sequence[int]) -> Any:
    for axis, count in enumerate(output_size, x.ndim - len(output_size)):
        if not is_static(count):
            if count is x.shape[axis] or str(count) == str(x.shape[axis]):
                continue  # as many windows as elements
            return NotImplemented
        windows = _slices(x, axis, int(count))
        x = torch.cat([window.mean(axis, keepdim=True) for window, _ in windows], axis)
    return x


def _maximum_open(x: Tensor, output_size: Sequence[int]) -> Any:
    if len(output_size) != 2 or not all(map(is_static, output_size)):
        return NotImplemented
    height, width = x.ndim - 2, x.ndim - 1
    found: list[tuple[Tensor, Tensor]] = []
    for rows, top in _slices(x, height, int(output_size[0])):
        for window, left in _slices(rows, width, int(output_size[1])):
            of_rows, columns = window.max(-1)
            values, row = of_rows.max(-1, keepdim=True)
            column = columns.gather(-1, row)
            found.append((values, (row + top) * x.shape[width] + left + column))
    shape = [int(count) for count in output_size]
    values, places = (torch.cat(list(parts), -1) for parts in zip(*found, strict=True))
    return values.unflatten(-1, shape), places.unflatten(-1, shape)


def _slices(x: Tensor, axis: int, count: int) -> list[tuple[Tensor, Any]]:
    """Return the windows along an axis, and where they begin."""
    size: Any = x.shape[axis]
    starts = [i * size // count for i in range(count)]
    ends = [((i + 1) * size + count - 1) // count for i in range(count)]
    slices: Any = aten.slice.Tensor
    return [(slices(x, axis, *ends_of), ends_of[0]) for ends_of in zip(starts, ends, strict=True)]


def _are_uneven(x: Tensor, output_size: Sequence[int]) -> bool:
    sizes = x.shape[-len(output_size) :]
    if not all(is_static(size) for size in (*sizes, *output_size)):
        return False
    return any(int(size) % out for size, out in zip(sizes, output_size, strict=True))


def _windows(x: Tensor, output_size: Sequence[int]) -> Tensor:
    """The windows of each output, in dimensions behind all others."""
    rank = len(output_size)
    for i, count in enumerate(output_size):
        axis = x.ndim - rank  # the first that is left: each leaves its two dimensions at the end
        start, length, longest = _bounds(int(x.shape[axis - i]), count)
        reach = torch.arange(longest).unsqueeze(0)
        places = (start.unsqueeze(1) + torch.minimum(reach, length.unsqueeze(1) - 1)).reshape([-1])
        taken: Any = x.index_select(axis - i, places)
        x = taken.unflatten(axis - i, [count, longest])
        x = x.movedim([axis - i, axis - i + 1], [x.ndim - 2, x.ndim - 1])
    pairs = [x.ndim - 2 * rank + 2 * i for i in range(rank)]
    leading = list(range(x.ndim - 2 * rank))
    return x.permute([*leading, *pairs, *(pair + 1 for pair in pairs)])


def _in_window(x: Tensor, output_size: Sequence[int]) -> Tensor:
    """Return which of the gathered elements are no repetition, for the windows of one image."""
    rank = len(output_size)
    counted = torch.ones([1] * (2 * rank), dtype=torch.bool)
    for i, count in enumerate(output_size):
        _, length, longest = _bounds(int(x.shape[x.ndim - rank + i]), count)
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = count, longest
        inside = torch.arange(longest).unsqueeze(0) < length.unsqueeze(1)
        counted = counted & inside.reshape(shape)
    return counted


def _bounds(size: int, count: int) -> tuple[Tensor, Tensor, int]:
    """Return where the windows begin, how long they are, and how long the longest is."""
    longest = max(-(-(i + 1) * size // count) - i * size // count for i in range(count))
    places = torch.arange(count)
    start = cast(Any, torch).div(places * size, count, rounding_mode="floor")
    end = cast(Any, torch).div((places + 1) * size + count - 1, count, rounding_mode="floor")
    return start, end - start, longest
