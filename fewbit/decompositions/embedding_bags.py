"""Bags of embeddings: rows of a table, added up or compared by the bag that they are in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

SUM, MEAN, MAX = range(3)


def bag_decompositions() -> dict[Any, Callable[..., Any]]:
    """Decompositions, by op."""
    return {
        aten._embedding_bag.default: _embedding_bag,
        aten._embedding_bag_forward_only.default: _embedding_bag,
    }


def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    starts = offsets[:-1] if include_last_offset else offsets
    bags = starts.shape[0]
    places = torch.arange(indices.shape[0], dtype=offsets.dtype)
    bag = (places.unsqueeze(0) >= starts.unsqueeze(1)).sum(0) - 1
    rows = torch.nn.functional.embedding(indices, weight)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    counted = (bag.unsqueeze(0) == torch.arange(bags).unsqueeze(1)) & (indices != padding_idx)
    sizes = counted.sum(1)
    if mode == MAX:
        result = _maximum(rows, counted, sizes)
    else:
        kept = torch.where((indices != padding_idx).unsqueeze(1), rows, 0.0)
        zeros = torch.zeros([bags, weight.shape[1]], dtype=weight.dtype)
        result = zeros.index_add(0, bag, kept)
    if mode == MEAN:
        result = result / sizes.clamp(min=1).unsqueeze(1).to(weight.dtype)
    return result, bag, sizes, torch.zeros_like(sizes)


def _maximum(rows: Tensor, counted: Tensor, sizes: Tensor) -> Tensor:
    """The largest of each bag; 0 where a bag is empty."""
    candidates = torch.where(counted.unsqueeze(2), rows.unsqueeze(0), -torch.inf)
    return torch.where((sizes > 0).unsqueeze(1), candidates.amax(1), 0.0)
