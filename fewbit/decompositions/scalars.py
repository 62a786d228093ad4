"""Ops along the dimension that PyTorch lets a scalar have, as those of a row of one element.

torch-mlir has no such dimension: its variance of a scalar ends the process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map

aten = torch.ops.aten
_ALONG = (
    aten._softmax.default,
    aten.softmax.int,
    aten.cumsum.default,
    aten.cumprod.default,
    aten.logcumsumexp.default,
    aten.cummax.default,
    aten.cummin.default,
    aten.max.dim,
    aten.min.dim,
    aten.median.dim,
    aten.nanmedian.dim,
    aten.mode.default,
    aten.kthvalue.default,
    aten.sort.default,
    aten.topk.default,
    aten.var.correction,
    aten.var_mean.correction,
)


def scalar_decompositions() -> dict[Any, Callable[..., Any]]:
    """Decompositions, by op; each leaves tensors with dimensions as they are."""
    return {op: _as_row(op) for op in _ALONG}


def _as_row(op: Any) -> Callable[..., Any]:
    def decompose(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.ndim > 0:
            return NotImplemented
        results = op(x.reshape([1]), *args, **kwargs)
        return tree_map(_only, results)

    return decompose


def _only(row: torch.Tensor) -> torch.Tensor:
    return row.reshape([])
