"""Resizing with antialiasing, as two matmuls with the weights of its filter.

The filter is stretched by the factor by which an image shrinks. The weight of input j for output i
is `f((j + 0.5 - (i + 0.5)·s) / max(s, 1))`, and the weights of an output add up to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from fewbit.decompositions.sizes import is_static

aten = torch.ops.aten


def antialias_decompositions() -> dict[Any, Callable[..., Any]]:
    """Decompositions, by op."""
    return {
        aten._upsample_bilinear2d_aa.default: _resize_by(_triangle),
        aten._upsample_bicubic2d_aa.default: _resize_by(_cubic),
    }


def _resize_by(filter: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    def resize(
        x: Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Any:
        if not all(is_static(size) for size in (*x.shape[-2:], *output_size)):
            return NotImplemented
        rows, columns = (
            _weights(filter, int(have), int(want), align_corners, factor).to(x.dtype)
            for have, want, factor in zip(
                x.shape[-2:], output_size, (scales_h, scales_w), strict=True
            )
        )
        return torch.matmul(torch.matmul(rows, x), columns.T)

    return resize


def _weights(
    filter: Callable[[Tensor], Tensor], have: int, want: int, align: bool, factor: float | None
) -> Tensor:
    """The weights [want, have] of inputs for outputs."""
    if align:
        step = (have - 1) / (want - 1) if want > 1 else 0.0
    else:
        step = 1 / factor if factor else have / want
    centers = ((torch.arange(want) + 0.5) * step).to(torch.float64)
    inputs = (torch.arange(have) + 0.5).to(torch.float64)
    weights = filter((inputs.unsqueeze(0) - centers.unsqueeze(1)) / max(step, 1.0))
    return weights / weights.sum(1, keepdim=True)


def _triangle(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp(min=0)


def _cubic(x: Tensor) -> Tensor:
    """Keys' cubic with a = -0.5, as PIL has it."""
    x = x.abs()
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return torch.where(x < 1, near, torch.where(x < 2, far, 0.0))
