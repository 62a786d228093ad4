# pyright: basic
"""Padding by negative amounts, as a slice and a padding of what it leaves.

PyTorch and ONNX cut off where a pad is negative; `tensor.pad`, which torch-mlir makes of it, has no
such meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten


def negative_pads() -> dict[Any, Callable[..., Any]]:
    """The decomposition of constant padding; where nothing is cut off, it leaves the op whole."""
    return {aten.constant_pad_nd.default: _cut_and_pad}


def _cut_and_pad(x: torch.Tensor, pad: list[int], value: float = 0) -> Any:
    if not any(_is_negative(amount) for amount in pad):
        return NotImplemented
    for i, (low, high) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        axis = x.ndim - 1 - i
        before, after = _cut(low), _cut(high)
        if before or after:
            x = aten.slice.Tensor(x, axis, before, x.shape[axis] - after)
    return aten.constant_pad_nd.default(x, [0 if _is_negative(p) else p for p in pad], value)


def _is_negative(amount: int) -> bool:
    """Amounts that depend on sizes are not: nobody knows."""
    return isinstance(amount, int) and amount < 0


def _cut(amount: int) -> int:
    return -amount if _is_negative(amount) else 0
