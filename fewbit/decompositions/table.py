"""Decompositions of ours, of ops that torch-mlir lacks or computes otherwise than PyTorch does.

A decomposition that gives `NotImplemented` leaves the op whole, so each is for its own case only.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any, cast

import torch

from fewbit.decompositions.antialias import antialias_decompositions
from fewbit.decompositions.convolutions import convolution_decompositions
from fewbit.decompositions.einsum import einsum_decompositions
from fewbit.decompositions.embedding_bags import bag_decompositions
from fewbit.decompositions.masked_writes import masked_write_decompositions
from fewbit.decompositions.masks import mask_decompositions
from fewbit.decompositions.recurrent import recurrent_decompositions
from fewbit.decompositions.scalars import scalar_decompositions
from fewbit.decompositions.selection import selection_decompositions
from fewbit.decompositions.sizes import is_static
from fewbit.decompositions.strides import stride_decompositions
from fewbit.decompositions.suppression import suppression_decompositions
from fewbit.decompositions.uneven_windows import window_decompositions
from fewbit.decompositions.unique import unique_decompositions
from fewbit.decompositions.wide_reductions import wide_reductions

aten = torch.ops.aten

_WINDOWS = {
    aten.conv1d.default: 1,
    aten.conv1d.padding: 1,
    aten.conv2d.default: 2,
    aten.conv2d.padding: 2,
    aten.max_pool2d.default: 2,
    aten.max_pool2d_with_indices.default: 2,
    aten.max_pool3d.default: 3,
    aten.max_pool3d_with_indices.default: 3,
}
"""Along how many dimensions their windows move."""


def own_decompositions() -> dict[Any, Callable[..., Any]]:
    windows = window_decompositions()
    averages = (aten.adaptive_avg_pool1d.default, aten.adaptive_avg_pool2d.default)
    scalars = scalar_decompositions()
    own = {
        **wide_reductions(),
        **convolution_decompositions(),
        **antialias_decompositions(),
        **bag_decompositions(),
        **einsum_decompositions(),
        **selection_decompositions(),
        **stride_decompositions(),
        **mask_decompositions(),
        **masked_write_decompositions(),
        **unique_decompositions(),
        **suppression_decompositions(),
        **windows,
        **recurrent_decompositions(),
        **{op: _as_batch(op, moved) for op, moved in _WINDOWS.items()},
        aten.avg_pool2d.default: _average(aten.avg_pool2d.default, 2),
        aten.avg_pool3d.default: _average(aten.avg_pool3d.default, 3),
        aten.amax.default: _extreme_of_scalar,
        aten.amin.default: _extreme_of_scalar,
        aten.angle.default: _angle,
        aten.signbit.default: _signbit,
        aten.clamp.default: _clamp,
        aten.clamp.Tensor: _clamp,
        aten.clamp_min.default: _clamp,
        aten.clamp_min.Tensor: _clamp,
        aten.clamp_max.default: _clamp_above,
        aten.clamp_max.Tensor: _clamp_above,
        aten.constant_pad_nd.default: _pad,
        aten.fmod.Scalar: _fmod,
        aten.fmod.Tensor: _fmod,
        aten.hardtanh.default: _hard_tanh,
        aten.hypot.default: _hypot,
        aten.maximum.default: _choose(torch.gt),
        aten.minimum.default: _choose(torch.lt),
        aten.reciprocal.default: _reciprocal,
        **{op: _mean_or(windows[op]) for op in averages},
        aten.reflection_pad1d.default: _reflect,
        aten.reflection_pad2d.default: _reflect,
        aten.reflection_pad3d.default: _reflect,
        aten.replication_pad1d.default: _replicate,
        aten.replication_pad2d.default: _replicate,
        aten.replication_pad3d.default: _replicate,
        aten.roll.default: _roll,
        aten.sort.default: _sort,
        aten.sort.stable: _stable_sort,
        aten.topk.default: _topk,
        aten.squeeze.dims: _squeeze,
        aten.select_scatter.default: _select_scatter,
        aten.slice_scatter.default: _as_written(aten.slice_scatter.default),
        aten.where.self: _where,
    }
    return own | {op: _either(own[op], scalars[op]) if op in own else scalars[op] for op in scalars}


def _either(first: Callable[..., Any], second: Callable[..., Any]) -> Callable[..., Any]:
    """Take an op of a scalar apart in the second way, of other tensors in the first."""

    def decompose(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return (first if x.ndim > 0 else second)(x, *args, **kwargs)

    return decompose


def _as_batch(op: Any, moved: int) -> Callable[..., Any]:
    """A window over one sample without a batch is that over a batch of one; pools give indices."""

    def decompose(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.ndim == moved + 2:
            return NotImplemented
        results = op(x.unsqueeze(0), *args, **kwargs)
        if isinstance(results, torch.Tensor):
            return results.squeeze(0)
        return tuple(result.squeeze(0) for result in results)

    return decompose


def _average(op: Any, moved: int) -> Callable[..., Any]:
    """An average over windows; of integers, it is rounded towards zero."""
    of_floats = _as_batch(op, moved)

    def decompose(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.is_floating_point():
            return of_floats(x, *args, **kwargs)
        return op(x.to(torch.float64), *args, **kwargs).trunc().to(x.dtype)

    return decompose


def _as_written(op: Any) -> Callable[..., Any]:
    """A write into a part of a tensor, which keeps its type: PyTorch's own rule widens it."""

    def decompose(x: torch.Tensor, src: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.dtype == src.dtype:
            return NotImplemented
        return op(x, src.to(x.dtype), *args, **kwargs)

    return decompose


def _select_scatter(x: torch.Tensor, src: torch.Tensor, dim: int, index: int) -> Any:
    """A write at an index from the front, beside the type: torch-mlir writes nothing at -1."""
    if index < 0:
        return aten.select_scatter.default(x, src.to(x.dtype), dim, index + x.shape[dim])
    return _as_written(aten.select_scatter.default)(x, src, dim, index)


def _extreme_of_scalar(x: torch.Tensor, dim: Any = (), keepdim: bool = False) -> Any:
    """The largest or least element of a tensor without dimensions is its own."""
    return x.clone() if x.ndim == 0 else NotImplemented


def _signbit(x: torch.Tensor) -> torch.Tensor:
    """Return what is below zero, with the zero that divides one to minus infinity."""
    return (x < 0) | ((x == 0) & (x.reciprocal() < 0)) if x.is_floating_point() else x < 0


def _angle(x: torch.Tensor) -> Any:
    """Half a turn for numbers below zero; NaN stays."""
    if x.is_complex():
        return NotImplemented
    dtype: torch.dtype = cast(Any, torch).result_type(x, 1.0)
    zero = torch.zeros_like(x, dtype=dtype)
    half = torch.where(x < 0, torch.full_like(zero, pi), zero)
    return torch.where(x != x, x.to(dtype), half)


def _choose(wins: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """The one of two tensors that wins, or the one that is NaN, which torch-mlir forgets."""

    def decompose(x: torch.Tensor, y: torch.Tensor) -> Any:
        dtype: torch.dtype = cast(Any, torch).result_type(x, y)
        if not dtype.is_floating_point:
            return NotImplemented
        x, y = x.to(dtype), y.to(dtype)
        return cast(Any, torch).where(wins(x, y) | (x != x), x, y)

    return decompose


def _clamp(x: torch.Tensor, min: Any = None, max: Any = None) -> Any:
    """The largest of a number and a bound, then the least: NaN stays, which torch-mlir forgets."""
    if not x.is_floating_point():
        return NotImplemented
    if isinstance(min, torch.Tensor) or isinstance(max, torch.Tensor):
        x = x if min is None else torch.maximum(x, min)
        return x if max is None else torch.minimum(x, max)
    x = x if min is None else torch.where(x < min, min, x)
    return x if max is None else torch.where(x > max, max, x)


def _clamp_above(x: torch.Tensor, max: Any) -> Any:
    return _clamp(x, None, max)


def _hard_tanh(x: torch.Tensor, min_val: float = -1, max_val: float = 1) -> Any:
    is_relu6 = (min_val, max_val) == (0, 6)
    return NotImplemented if is_relu6 else torch.clamp(x, min_val, max_val)


def _hypot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """√(x² + y²), by the ratio of the smaller to the larger, which does not overflow.

    An infinity wins over a NaN, which `x - x` keeps.
    """
    x, y = x.abs(), y.abs()
    most, least = torch.maximum(x, y), torch.minimum(x, y)
    ratio = torch.where(most == 0, most, least / most)
    length = most * torch.sqrt(1 + ratio * ratio) + (x - x) + (y - y)
    infinite = torch.isinf(x) | torch.isinf(y)
    return torch.where(infinite, torch.full_like(length, torch.inf), length)


def _mean_or(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The mean of all elements where there is one window of dynamic size, or what else there is."""

    def decompose(x: torch.Tensor, output_size: list[int]) -> Any:
        dims = list(range(-len(output_size), 0))
        if all(size == 1 for size in output_size) and not all(is_static(x.shape[d]) for d in dims):
            return x.mean(dims, keepdim=True)
        return otherwise(x, output_size)

    return decompose


def _pad(x: torch.Tensor, pad: list[int], value: float = 0) -> Any:
    """Cut off where a pad is negative, as PyTorch does; `tensor.pad` does not.

    Around nothing, a tensor is filled: IREE computes sums over what is padded there wrongly.
    """
    if any(is_static(size) and size == 0 for size in x.shape):
        return _fill_padded(x, pad, value)
    if not any(_is_negative(amount) for amount in pad):
        return NotImplemented
    for i, (low, high) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        axis = x.ndim - 1 - i
        before, after = _cut(low), _cut(high)
        if before or after:
            x = aten.slice.Tensor(x, axis, before, x.shape[axis] - after)
    return aten.constant_pad_nd.default(x, [0 if _is_negative(p) else p for p in pad], value)


def _fill_padded(x: torch.Tensor, pad: list[int], value: float) -> torch.Tensor:
    sizes = list(x.shape)
    for i, amount in enumerate(pad):
        sizes[-1 - i // 2] += amount
    return x.new_full(sizes, value)


def _is_negative(amount: int | torch.SymInt) -> bool:
    """Amounts that depend on sizes are not: they are not known."""
    return isinstance(amount, int) and amount < 0


def _cut(amount: int) -> int:
    return -amount if _is_negative(amount) else 0


def _where(condition: torch.Tensor, yes: torch.Tensor, no: torch.Tensor) -> Any:
    """A choice between a tensor and itself; torch-mlir forgets the shape of the condition."""
    if yes is not no:
        return NotImplemented
    return yes.expand(cast(Any, torch).broadcast_shapes(condition.shape, yes.shape)).clone()


def _fmod(x: torch.Tensor, divisor: Any) -> torch.Tensor:
    """The remainder with the sign of `x`, by the one with the divisor's, which torch-mlir has.

    Of numbers that are not negative both are the same, and exact. For integers, products that wrap
    around are exact too, while the least has no absolute value.
    """
    dtype: torch.dtype = cast(Any, torch).result_type(x, divisor)
    x = x.to(dtype)
    if isinstance(divisor, torch.Tensor):
        divisor = divisor.to(dtype)
    if not dtype.is_floating_point:
        return x - cast(Any, torch).div(x, divisor, rounding_mode="trunc") * divisor
    size = cast(Any, torch).remainder(x.abs(), abs(divisor))
    return cast(Any, torch).where(x < 0, -size, size)


def _reciprocal(x: torch.Tensor) -> torch.Tensor:
    """Infinity for 0, which torch-mlir's own lowering asserts not to meet."""
    return torch.ones([], dtype=cast(Any, torch).result_type(x, 1.0)) / x


def _roll(x: torch.Tensor, shifts: list[int], dims: list[int] | None = None) -> torch.Tensor:
    """Both parts of each dimension, the last first."""
    if not dims:
        return _roll(x.flatten(), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        x = _roll_axis(x, shift, dim)
    return x.clone()


def _roll_axis(x: torch.Tensor, shift: int, dim: int) -> torch.Tensor:
    size = x.shape[dim]
    if not is_static(size):
        places = cast(Any, torch).arange(size) - shift
        return x.index_select(dim, cast(Any, torch).remainder(places, size))
    start = -shift % size if size else 0
    if start == 0:
        return x
    return torch.cat([x.narrow(dim, start, size - start), x.narrow(dim, 0, start)], dim)


def _topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Without `sorted` any order will do, and the sorted one is one."""
    return NotImplemented if sorted else aten.topk.default(x, k, dim, largest, True)


def _reflect(x: torch.Tensor, padding: list[int]) -> torch.Tensor:
    """Elements before the first and behind the last are those that lie as far inside."""

    def mirror(places: torch.Tensor, last: Any) -> torch.Tensor:
        return (places.abs() - last).abs().neg() + last

    return _pad_by_index(x, padding, mirror)


def _replicate(x: torch.Tensor, padding: list[int]) -> torch.Tensor:
    """The first and the last element are repeated."""

    def clamp(places: torch.Tensor, last: Any) -> torch.Tensor:
        zero, end = places.new_zeros([]), places.new_full([], last)
        return cast(Any, torch).minimum(cast(Any, torch).maximum(places, zero), end)

    return _pad_by_index(x, padding, clamp)


def _pad_by_index(
    x: torch.Tensor, padding: list[int], inside: Callable[[torch.Tensor, Any], torch.Tensor]
) -> torch.Tensor:
    """Choose an element of `x` for every place, axis by axis from the last."""
    for i, (low, high) in enumerate(zip(padding[::2], padding[1::2], strict=True)):
        axis = x.ndim - 1 - i
        size = x.shape[axis]
        if low == 0 and high == 0:
            continue
        places = cast(Any, torch).arange(size + low + high) - low
        x = x.index_select(axis, inside(places, size - 1))
    return x


def _squeeze(x: torch.Tensor, dims: list[int]) -> Any:
    """One dimension after another, which torch-mlir knows beside any number of dynamic ones."""
    # PyTorch takes 0 and -1 for dimensions of a scalar, which has none.
    given = {d % x.ndim for d in dims} if x.ndim else set[int]()
    ones = sorted(d for d in given if is_static(x.shape[d]) and x.shape[d] == 1)
    if not ones:
        # What a view gives must be another tensor.
        return aten.alias.default(x)
    for dim in reversed(ones):
        x = aten.squeeze.dim(x, dim)
    return x


def _sort(x: torch.Tensor, dim: int = -1, descending: bool = False) -> Any:
    """Sort truth values as numbers: as one bit with a sign, which torch-mlir takes, true is -1."""
    if x.dtype != torch.bool:
        return NotImplemented
    values, places = aten.sort.default(x.to(torch.int32), dim, descending)
    return values != 0, places


def _stable_sort(
    x: torch.Tensor, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> Any:
    """Sorting is stable here, whether it is asked for or not."""
    return aten.sort.default(x, dim, descending)
