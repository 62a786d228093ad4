"""Decompositions of ours, of ops that torch-mlir computes otherwise than PyTorch does.

A decomposition that gives `NotImplemented` leaves the op whole, so each is for its own case only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch

from fewbit.frontends.torch.wide_reductions import wide_reductions

aten = torch.ops.aten


def own_decompositions() -> dict[Any, Callable[..., Any]]:
    return {
        **wide_reductions(),
        aten.constant_pad_nd.default: _pad,
        aten.where.self: _where,
    }


def _pad(x: torch.Tensor, pad: list[int], value: float = 0) -> Any:
    """Where a pad is negative, PyTorch cuts off; `tensor.pad` does not."""
    if not any(_is_negative(amount) for amount in pad):
        return NotImplemented
    for i, (low, high) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        axis = x.ndim - 1 - i
        before, after = _cut(low), _cut(high)
        if before or after:
            x = aten.slice.Tensor(x, axis, before, x.shape[axis] - after)
    return aten.constant_pad_nd.default(x, [0 if _is_negative(p) else p for p in pad], value)


def _is_negative(amount: int | torch.SymInt) -> bool:
    """Amounts that depend on sizes are not: nobody knows."""
    return isinstance(amount, int) and amount < 0


def _cut(amount: int) -> int:
    return -amount if _is_negative(amount) else 0


def _where(condition: torch.Tensor, yes: torch.Tensor, no: torch.Tensor) -> Any:
    """A choice between a tensor and itself; torch-mlir forgets the shape of the condition."""
    if yes is not no:
        return NotImplemented
    return yes.expand(cast(Any, torch).broadcast_shapes(condition.shape, yes.shape)).clone()
