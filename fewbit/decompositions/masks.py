"""Elements chosen by a mask, whose number only the data tells.

The places of the chosen elements are written to the front of a table that has room for all, by the
prefix sums of the mask, and the table is cut to as many as there are. The cut is a slice, so their
number has a bound, by which memory is planned; torch-mlir's own lowering counts in floats, and
does not end for `x[mask]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

aten = torch.ops.aten


def mask_decompositions() -> dict[Any, Callable[..., Any]]:
    """Decompositions, by op."""
    return {
        aten.nonzero.default: nonzero,
        aten.masked_select.default: _masked_select,
        aten.index.Tensor: _index_by_masks,
    }


def chosen_places(mask: Tensor) -> Tensor:
    """Return where a mask of one dimension is true, in order."""
    count, size = cast(Any, mask.sum()).item(), mask.shape[0]
    check = cast(Any, torch)._check
    check(count >= 0)
    check(count <= size)
    slots = torch.where(mask, mask.to(torch.int64).cumsum(0) - 1, size)
    table = torch.zeros([size + 1], dtype=torch.int64)
    table = table.scatter(0, slots, cast(Any, torch).arange(size))
    return table.narrow(0, 0, size).narrow(0, 0, count)


def nonzero(x: Tensor) -> Tensor:
    """Return the indices of elements that are not 0, a row for each."""
    places = chosen_places(x.reshape([-1]) != 0)
    if x.ndim == 0:
        return places.unsqueeze(1).narrow(1, 0, 0)
    columns: list[Tensor] = []
    for size in reversed(x.shape[1:]):
        columns.insert(0, cast(Any, torch).remainder(places, size))
        places = cast(Any, torch).div(places, size, rounding_mode="floor")
    return torch.stack([places, *columns], 1)


def _masked_select(x: Tensor, mask: Tensor) -> Tensor:
    x, mask = cast(Any, torch).broadcast_tensors(x, mask)
    return x.reshape([-1]).index_select(0, chosen_places(mask.reshape([-1])))


def _index_by_masks(x: Tensor, indices: Sequence[Tensor | None]) -> Any:
    """Choose along the dimensions of one mask; several, or one beside numbers, become numbers."""
    masks = [i for i, each in enumerate(indices) if is_mask(each)]
    if not masks:
        return NotImplemented
    axis, mask = masks[0], cast(Tensor, indices[masks[0]])
    if any(each is not None for i, each in enumerate(indices) if i != axis):
        places = numbers_of(indices)
        return NotImplemented if places is None else aten.index.Tensor(x, places)
    outer, inner = x.shape[:axis], x.shape[axis + mask.ndim :]
    places = chosen_places(mask.reshape([-1]))
    return x.reshape([*outer, mask.numel(), *inner]).index_select(axis, places)


def numbers_of(indices: Sequence[Tensor | None]) -> list[Tensor | None] | None:
    """Return indices as numbers: a mask has one for each of its dimensions.

    None where a mask has no dimension: it adds one to the result, which no number does.
    """
    numbers: list[Tensor | None] = []
    for index in indices:
        if index is None or not is_mask(index):
            numbers.append(index)
        elif index.ndim == 0:
            return None
        else:
            numbers += nonzero(index).unbind(1)
    return numbers


def is_mask(index: Tensor | None) -> bool:
    """Return whether an index chooses by truth, not by number."""
    return index is not None and index.dtype == torch.bool
