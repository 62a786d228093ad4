"""Writes to the elements that a mask chooses, or to places whose number only the data tells.

One number for all of them is a choice between two tensors. Others are scattered, one by one: where
nothing is chosen, nothing is written. torch-mlir's own lowering writes one element then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

import torch
from torch import Tensor
from torch.fx.experimental import symbolic_shapes

from fewbit.decompositions.masks import chosen_places, is_mask, numbers_of
from fewbit.decompositions.sizes import is_static

aten = torch.ops.aten


def masked_write_decompositions() -> dict[Any, Callable[..., Any]]:
    """Decompositions, by op."""
    return {
        aten.index_put.default: _index_put,
        aten.masked_scatter.default: _masked_scatter,
    }


def _index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Any:
    if accumulate and x.dtype == torch.bool:  # several true ones are true, in a sum of bits not
        counts = x.to(torch.int32)
        return aten.index_put.default(counts, indices, values.to(torch.int32), True) != 0
    masks = [i for i, index in enumerate(indices) if is_mask(index)]
    if not masks and not any(map(_has_size_by_data, indices)):
        return NotImplemented
    chosen = [index for index in indices if index is not None]
    if len(chosen) == len(masks) == 1 and _is_number(values):
        mask = cast(Tensor, indices[masks[0]])
        inner = x.ndim - masks[0] - mask.ndim
        values = values.reshape([])
        return torch.where(
            mask.reshape([*mask.shape, *[1] * inner]), x + values if accumulate else values, x
        )
    places = numbers_of(indices)
    if places is None:
        return NotImplemented
    if any(each is None or each.ndim != 1 for each in places):
        return aten.index_put.default(x, places, values, accumulate) if masks else NotImplemented
    return _write_rows(x, cast("list[Tensor]", places), values, accumulate)


def _is_number(values: Tensor) -> bool:
    return all(is_static(size) and size == 1 for size in values.shape)


def _has_size_by_data(index: Tensor | None) -> bool:
    unbacked: Any = cast(Any, symbolic_shapes).free_unbacked_symbols
    return index is not None and any(unbacked(size) for size in index.shape)


def _write_rows(x: Tensor, places: list[Tensor], values: Tensor, accumulate: bool) -> Tensor:
    """Write to places along the first dimensions, a row for each."""
    written, rest = x.shape[: len(places)], x.shape[len(places) :]
    flat = torch.zeros_like(places[0])
    for place, size in zip(places, written, strict=True):
        flat = flat * size + torch.where(place < 0, place + size, place)
    count = flat.shape[0]
    rows = values.expand([count, *rest]).reshape([count, prod(rest)])
    table = x.reshape([prod(written), prod(rest)])
    index = flat.unsqueeze(1).expand([count, prod(rest)])
    scatter = torch.scatter_add if accumulate else torch.scatter
    return scatter(table, 0, index, rows).reshape(x.shape)


def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    mask = mask.expand(x.shape).reshape([-1])
    places = chosen_places(mask)
    taken = source.reshape([-1]).narrow(0, 0, places.shape[0])
    return x.reshape([-1]).scatter(0, places, taken).reshape(x.shape)
