"""The distinct elements of a tensor, whose number only the data tells.

Sorted, equal elements are neighbours: those that differ from the one before begin a group. NaN is
taken for equal to NaN, as numpy and ONNX do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fewbit.decompositions.masks import chosen_places

aten = torch.ops.aten


def unique_decompositions() -> dict[Any, Callable[..., Any]]:
    """Decompositions, by op."""
    return {aten._unique2.default: _unique}


@dataclass(frozen=True)
class Groups:
    """Equal elements of a flat tensor, as groups in the order of their values."""

    values: Tensor
    """All elements, sorted."""
    order: Tensor
    """Where each was before."""
    begins: Tensor
    """Whether an element is the first of its group."""

    @staticmethod
    def of(flat: Tensor) -> Groups:
        values, order = torch.sort(flat, stable=True)
        before, after = values[:-1], values[1:]
        differs = before != after
        if flat.dtype.is_floating_point:
            differs = differs & ~((before != before) & (after != after))
        begins = torch.cat([torch.ones_like(values[:1], dtype=torch.bool), differs])
        return Groups(values, order, begins)

    @property
    def numbers(self) -> Tensor:
        """The group of each sorted element."""
        return self.begins.to(torch.int64).cumsum(0) - 1

    @property
    def inverse(self) -> Tensor:
        """The group of each element, in the order before."""
        return torch.zeros_like(self.order).scatter(0, self.order, self.numbers)

    @property
    def counts(self) -> Tensor:
        """The sizes of groups, with zeros behind them: as many numbers as there are elements."""
        return torch.zeros_like(self.order).scatter_add(
            0, self.numbers, torch.ones_like(self.order)
        )

    @property
    def begin_places(self) -> Tensor:
        """Where the groups begin among the sorted elements."""
        return chosen_places(self.begins)


def _unique(
    x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    groups = Groups.of(x.reshape([-1]))
    places = groups.begin_places
    none = torch.zeros([0], dtype=torch.int64)
    inverse = groups.inverse.reshape(x.shape) if return_inverse else none
    counts = groups.counts.narrow(0, 0, places.shape[0]) if return_counts else none
    return groups.values.index_select(0, places), inverse, counts
