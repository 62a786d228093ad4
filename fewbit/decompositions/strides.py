"""Views by strides and diagonals as elements that are chosen, or written, by their places.

A program has no memory that tensors share: a view by strides of a tensor that lies in memory in
its own order is a choice among its elements, of which one may be chosen several times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from fewbit.decompositions.sizes import is_static

aten = torch.ops.aten


def stride_decompositions() -> dict[Any, Callable[..., Any]]:
    """Decompositions, by op."""
    return {
        aten.as_strided.default: _as_strided,
        aten.as_strided_copy.default: _as_strided,
        aten.as_strided_scatter.default: _write_strided,
        aten.diagonal_scatter.default: _write_diagonal,
    }


def _as_strided(
    x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:
    if not _lies_in_order(x, size):
        return NotImplemented
    return x.reshape([-1]).index_select(0, _places(x, size, stride, storage_offset)).reshape(size)


def _write_strided(
    x: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Any:
    if not _lies_in_order(x, size):
        return NotImplemented
    places = _places(x, size, stride, storage_offset)
    return x.reshape([-1]).scatter(0, places, src.reshape([-1])).reshape(x.shape)


def _lies_in_order(x: Tensor, size: Sequence[int]) -> bool:
    return all(map(is_static, (*x.shape, *size))) and x.is_contiguous()


def _places(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Tensor:
    """Return the places in a flat tensor that a view by strides has, one after another."""
    places = torch.full([1], 0 if offset is None else offset - int(x.storage_offset()))
    for count, step in zip(size, stride, strict=True):
        places = (places[:, None] + torch.arange(count) * step).reshape([-1])
    return places


def _write_diagonal(x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    if not all(map(is_static, x.shape)):
        return NotImplemented
    order = torch.arange(x.numel()).reshape(x.shape)
    places = order.diagonal(offset, dim1, dim2).reshape([-1])
    return x.reshape([-1]).scatter(0, places, src.to(x.dtype).reshape([-1])).reshape(x.shape)
