"""Reductions of 16-bit floats, in f32 as PyTorch computes them.

PyTorch accumulates these in f32 and rounds the result. torch-mlir takes them apart into sums that
are rounded to 16 bits before what follows: a mean overflows where only its sum does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten

_NARROW = (torch.float16, torch.bfloat16)
_REDUCTIONS = (
    aten.sum.dim_IntList,
    aten.mean.default,
    aten.mean.dim,
    aten.linalg_vector_norm.default,
    aten.cumsum.default,
    aten.cumprod.default,
    aten.layer_norm.default,
    aten.group_norm.default,
)


def wide_reductions() -> dict[Any, Callable[..., Any]]:
    """Decompositions, by op; each leaves wider floats and integers as they are."""
    return {op: _in_f32(op) for op in _REDUCTIONS}


def _in_f32(op: Any) -> Callable[..., Any]:
    def decompose(*args: Any, **kwargs: Any) -> Any:
        dtype = args[0].dtype
        if dtype not in _NARROW or kwargs.get("dtype") not in (None, dtype):
            return NotImplemented
        if op is aten.layer_norm.default and len(args) > 2 and args[2] is not None:
            return NotImplemented  # an op of ours, whose working type is f32
        kwargs.pop("dtype", None)
        wide = tree_map_only(torch.Tensor, widen_to_f32, args)
        return op(*wide, **kwargs).to(dtype)

    return decompose


def widen_to_f32(tensor: torch.Tensor) -> torch.Tensor:
    """Floats of 16 bits in f32; anything else as it is."""
    return tensor.to(torch.float32) if tensor.dtype in _NARROW else tensor
