"""Ops along the dimension that PyTorch lets a scalar have, as those of a row of one element.

torch-mlir has no such dimension: its variance of a scalar ends the process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map, tree_map_only

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
    aten.argmax.default,
    aten.argmin.default,
    aten.gather.default,
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
        rows = tree_map_only(torch.Tensor, _row, args)
        return tree_map(_only, op(_row(x), *rows, **kwargs))

    return decompose


def _row(scalar: torch.Tensor) -> torch.Tensor:
    return scalar.reshape([1])


def _only(row: torch.Tensor) -> torch.Tensor:
    return row.reshape([])
