"""What rounding is in PyTorch itself: deep networks magnify it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map_only


def in_both_precisions(
    model: torch.nn.Module, inputs: Sequence[Any]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return each result of a model as it is, and of its copy in float64."""
    wide_inputs = tree_map_only(torch.Tensor, _widen, tuple(inputs))
    with torch.no_grad():
        given = arrays(model(*inputs))
        wide = arrays(copy.deepcopy(model).double()(*wide_inputs))
    return list(zip(given, wide, strict=True))


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def arrays(values: Any) -> list[np.ndarray]:
    """Return the tensors of a nested result, in order."""
    leaves = tree_leaves(values)
    return [leaf.detach().numpy().copy() for leaf in leaves if isinstance(leaf, torch.Tensor)]
