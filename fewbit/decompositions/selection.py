"""Elements chosen by their order, distances, and writes by index, in ops that torch-mlir has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from fewbit.decompositions.sizes import is_static
from fewbit.decompositions.wide_reductions import widen_to_f32

aten = torch.ops.aten

_REDUCTIONS = {"add": "sum", "multiply": "prod"}


def selection_decompositions() -> dict[Any, Callable[..., Any]]:
    """Decompositions, by op."""
    return {
        aten.kthvalue.default: _kth_value,
        aten.median.dim: _median,
        aten.median.default: _median_of_all,
        aten.nanmedian.dim: _median_without_nan,
        aten.nanmedian.default: _median_of_all_without_nan,
        aten.mode.default: _mode,
        aten.cummax.default: _cumulative(torch.ge),
        aten.cummin.default: _cumulative(torch.le),
        aten.logcumsumexp.default: _log_of_sums,
        aten.searchsorted.Tensor: _search_sorted,
        aten.searchsorted.Scalar: _search_number,
        aten._cdist_forward.default: _distances,
        aten.scatter.value: _scatter_number,
        aten.scatter.src: _from_the_front(torch.scatter),
        aten.scatter_add.default: _from_the_front(torch.scatter_add, _add_truth),
        aten.scatter.reduce: _scatter_by_name,
        aten.scatter.value_reduce: _scatter_by_name,
        aten.scatter_reduce.two: _from_the_front(torch.scatter_reduce, _reduce),
        aten.index_reduce.default: _index_reduce,
        aten.put.default: _put,
        aten.copysign.Tensor: _copy_sign,
    }


def _kth_value(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, places = torch.sort(x, dim)
    return _at(values, k - 1, dim, keepdim), _at(places, k - 1, dim, keepdim)


def _at(x: Tensor, place: int, dim: int, keepdim: bool) -> Tensor:
    return x.narrow(dim, place, 1) if keepdim else x.select(dim, place)


def _median(x: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The lower one of two; NaN where there is one, which sorting puts last."""
    if x.ndim == 0 or not is_static(x.shape[dim]):
        return NotImplemented
    values, places = torch.sort(x, dim)
    middle = (x.shape[dim] - 1) // 2
    value, place = _at(values, middle, dim, keepdim), _at(places, middle, dim, keepdim)
    if not x.dtype.is_floating_point:
        return value, place
    largest = _at(values, x.shape[dim] - 1, dim, keepdim)
    first_nan = (x != x).to(torch.int64).argmax(dim, keepdim)
    is_nan = largest != largest
    return torch.where(is_nan, largest, value), torch.where(is_nan, first_nan, place)


def _median_of_all(x: Tensor) -> Any:
    if not is_static(x.numel()) or x.numel() == 0:
        return NotImplemented
    return _median(x.reshape([-1]), 0)[0]


def _median_without_nan(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower one of two, of what is no NaN; sorting puts NaN last."""
    values, places = torch.sort(x, dim)
    count = (~torch.isnan(x)).sum(dim, True)
    middle = torch.div(count - 1, 2, rounding_mode="floor").clamp(min=0)
    value, place = values.gather(dim, middle), places.gather(dim, middle)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


def _median_of_all_without_nan(x: Tensor) -> Any:
    if not is_static(x.numel()) or x.numel() == 0:
        return NotImplemented
    return _median_without_nan(x.reshape([-1]), 0)[0]


def _mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest of the most frequent elements, and the last place where it is."""
    lines = x.movedim(dim, -1)
    counts = (lines.unsqueeze(-1) == lines.unsqueeze(-2)).sum(-1)
    is_frequent = counts == counts.amax(-1, True)
    largest = lines.amax(-1, True)
    value = torch.where(is_frequent, lines, largest).amin(-1, True)
    places = torch.arange(lines.shape[-1])
    place = torch.where(lines == value, places, -1).amax(-1, True)
    results = value.movedim(-1, dim), place.movedim(-1, dim)
    return results if keepdim else tuple(each.squeeze(dim) for each in results)  # pyright: ignore


def _log_of_sums(x: Tensor, dim: int) -> Any:
    """The logarithm of sums of powers up to each element, pairwise: none is far below the others.

    torch-mlir takes the largest of all elements out of the powers, and what is 100 less is 0.
    """
    if not is_static(x.shape[dim]):
        return NotImplemented
    y, size, shift = widen_to_f32(x), int(x.shape[dim]), 1
    while shift < size:
        none = torch.full_like(y.narrow(dim, 0, shift), float("-inf"))
        before = torch.cat([none, y.narrow(dim, 0, size - shift)], dim)
        largest = torch.maximum(y, before)
        least = torch.minimum(y, before)
        difference = torch.where(least == largest, torch.zeros_like(y), least - largest)
        y = largest + torch.log1p(torch.exp(difference))
        shift *= 2
    return y.to(x.dtype) if y is not x else x.clone()


def _cumulative(is_better: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Any]:
    """The best element up to each, and the last place of it, by comparing all pairs."""

    def decompose(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        if x.ndim == 0:
            return x.clone(), torch.zeros([], dtype=torch.int64)
        lines = x.movedim(dim, -1)
        places = torch.arange(lines.shape[-1])
        is_nan = lines != lines
        better = is_better(lines.unsqueeze(-1), lines.unsqueeze(-2)) | is_nan.unsqueeze(-1)
        # Element j is the best up to i, if it is no worse than all up to i.
        upto = places.unsqueeze(0) <= places.unsqueeze(1)
        beats = better.unsqueeze(-3) | ~upto.unsqueeze(-2)
        best = beats.all(-1) & upto
        place = torch.where(best, places, -1).amax(-1)
        return lines.gather(-1, place).movedim(-1, dim), place.movedim(-1, dim)

    return decompose


def _search_sorted(
    ordered: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Return how many elements of a line are smaller; on the right side, equal ones as well."""
    if sorter is not None:
        ordered = ordered.gather(-1, sorter)
    lines = ordered if ordered.ndim == 1 else ordered.unsqueeze(-2)
    smaller = lines <= x.unsqueeze(-1) if right or side == "right" else lines < x.unsqueeze(-1)
    return smaller.sum(-1).to(torch.int32 if out_int32 else torch.int64)


def _search_number(ordered: Tensor, x: Any, **options: Any) -> Tensor:
    return _search_sorted(ordered, cast(Any, torch).scalar_tensor(x), **options)


def _distances(a: Tensor, b: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    apart = (a.unsqueeze(-2) - b.unsqueeze(-3)).abs()
    if p == 0:
        return (apart != 0).to(a.dtype).sum(-1)
    if p == torch.inf:
        return apart.amax(-1)
    if p == 1:
        return apart.sum(-1)
    if p == 2:
        return (apart * apart).sum(-1).sqrt()
    return (apart**p).sum(-1) ** (1 / p)


def _from_the_front(
    scatter: Callable[..., Tensor], decompose: Callable[..., Any] = lambda *_, **__: NotImplemented
) -> Callable[..., Any]:
    """Count the dimension from the front: torch-mlir takes all memory where it is negative.

    A scalar is a row of one, since IREE does not scatter without a dimension.
    """

    def scatter_along(x: Tensor, dim: int, *given: Any, **options: Any) -> Any:
        if x.ndim == 0:
            rows = tree_map_only(Tensor, lambda each: each.reshape([-1]), given)
            return scatter(x.reshape([1]), 0, *rows, **options).reshape([])
        if dim < 0:
            return scatter(x, dim + x.ndim, *given, **options)
        return decompose(x, dim, *given, **options)

    return scatter_along


def _add_truth(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Any:
    """Add truth values: several true ones are true, which a sum of single bits is not."""
    if x.dtype != torch.bool:
        return NotImplemented
    return x.to(torch.int32).scatter_add(dim, index, src.to(torch.int32)) != 0


def _scatter_number(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    return torch.scatter(x, dim, index, torch.full_like(index, value, dtype=x.dtype))


def _scatter_by_name(x: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str) -> Tensor:
    if not isinstance(src, Tensor):
        src = torch.full_like(index, src, dtype=x.dtype)
    return torch.scatter_reduce(x, dim, index, src, _REDUCTIONS[reduce], include_self=True)


def _reduce(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    if x.dtype == torch.bool:
        numbers, added = x.to(torch.int32), src.to(torch.int32)
        counts = torch.scatter_reduce(numbers, dim, index, added, reduce, include_self=include_self)
        return counts != 0
    if reduce != "mean":
        return NotImplemented
    return _scatter_mean(x, dim, index, src, include_self)


def _scatter_mean(x: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool) -> Tensor:
    ones = torch.ones_like(src)
    start = torch.ones_like(x) if include_self else torch.zeros_like(x)
    count = start.scatter_add(dim, index, ones)
    kept = x
    if not include_self:
        touched = torch.zeros_like(x).scatter_add(dim, index, ones) > 0
        kept = torch.where(touched, torch.zeros_like(x), x)
    total = kept.scatter_add(dim, index, src)
    count = count.clamp(min=1)
    if x.dtype.is_floating_point:
        return total / count
    return cast(Any, torch).div(total, count, rounding_mode="floor")


def _index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    shape = [-1 if i == dim % x.ndim else 1 for i in range(x.ndim)]
    places = index.to(torch.int64).reshape(shape).expand(source.shape)
    return torch.scatter_reduce(x, dim, places, source, reduce, include_self=include_self)


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat, places, values = x.reshape([-1]), index.reshape([-1]), source.reshape([-1])
    places = torch.where(places < 0, places + x.numel(), places)
    if accumulate:
        return flat.scatter_add(0, places, values).reshape(x.shape)
    return flat.scatter(0, places, values).reshape(x.shape)


def _copy_sign(x: Tensor, sign: Any) -> Tensor:
    size = x.abs()
    is_negative = (sign < 0) | ((sign == 0) & (1 / sign < 0))
    return torch.where(is_negative, -size, size)
