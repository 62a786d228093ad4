"""What mixtures of experts are made of: matmuls of groups of rows, and counts of their sizes.

Which rows belong to which expert is known only when the program runs. Every expert is therefore
applied to every row, as one batched matmul, and a mask keeps what belongs to it. That is more work
than needed by the number of experts, but its shapes are static, and the weights stay in one
operand of a matmul, where they can be quantized.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from fewbit.decompositions.sizes import is_static
from fewbit.decompositions.wide_reductions import widen_to_f32

aten = torch.ops.aten


def expert_decompositions() -> dict[Any, Callable[..., Any]]:
    """Decompositions, by op."""
    table: dict[Any, Callable[..., Any]] = {
        aten._grouped_mm.default: grouped_matmul,
        aten.histc.default: histogram,
        aten.empty_permuted.default: _empty_permuted,
        aten.empty_strided.default: _empty_strided,
    }
    # transformers registers an op of its own for where torch has no kernel.
    fallback = getattr(cast(Any, torch.ops).transformers, "grouped_mm_fallback", None)
    if fallback is not None:
        table[fallback.default] = grouped_matmul
    return table


def grouped_matmul(
    a: Tensor,
    b: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Matmuls of groups that end at `offs`: of rows, of columns, or of what is summed over."""
    dtype = out_dtype or a.dtype
    a, b = widen_to_f32(a), widen_to_f32(b)
    if offs is None or a.ndim == b.ndim == 3:
        return torch.matmul(a, b).to(dtype)
    if a.ndim == 2 and b.ndim == 2:
        inner = _members(offs, a.shape[1]).unsqueeze(1)
        return torch.matmul(torch.where(inner, a, 0.0), b).to(dtype)
    rows_are_grouped = a.ndim == 2
    grouped = _members(offs, a.shape[0] if rows_are_grouped else b.shape[1])
    mask = grouped.unsqueeze(2 if rows_are_grouped else 1)
    return torch.where(mask, torch.matmul(a, b), 0.0).sum(0).to(dtype)


def _members(offs: Tensor, count: Any) -> Tensor:
    """Return whether place `i` of `count` is in group `g`, as booleans [g, i]."""
    places = torch.arange(count, dtype=offs.dtype)
    is_before_end = places < offs.unsqueeze(1)
    starts = torch.cat([torch.zeros_like(offs[:1]), offs[:-1]])
    return is_before_end & (places >= starts.unsqueeze(1))


def histogram(x: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """Count elements in each of `bins` intervals between two numbers, in the type of x."""
    flat = x.reshape([-1])
    wide = widen_to_f32(flat)
    low, high = (torch.full([], float(bound), dtype=wide.dtype) for bound in (min, max))
    if min == max:
        if not is_static(flat.shape[0]) or flat.shape[0] == 0:
            return NotImplemented
        low, high = wide.amin(), wide.amax()
        is_point = low == high
        low, high = torch.where(is_point, low - 1, low), torch.where(is_point, high + 1, high)
    inside = (wide >= low) & (wide <= high)
    place = torch.where(inside, (wide - low) * bins / (high - low), 0.0).to(torch.int64)
    return _count(place.clamp(max=bins - 1), inside, bins).to(x.dtype)


def _count(places: Tensor, counted: Tensor, bins: int) -> Tensor:
    hits = (places.unsqueeze(0) == torch.arange(bins).unsqueeze(1)) & counted
    return hits.sum(1)


def _empty_permuted(size: Any, physical_layout: Any, **options: Any) -> Tensor:
    """Memory has one order here."""
    return _empty(size, options)


def _empty_strided(size: Any, stride: Any, **options: Any) -> Tensor:
    return _empty(size, options)


def _empty(size: Any, options: dict[str, Any]) -> Tensor:
    return aten.empty.memory_format(size, dtype=options.get("dtype"))
