"""What a few-bit layer computes: a matmul, or a convolution, of rounded operands.

Normally the rounded floats are multiplied, which trains; in `exact` mode the integers are, and the
sums are scaled in the order that `fewbit.numerics` fixes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from fewbit.errors import UsageError
from fewbit.numerics import ActivationGranularity, check_accumulator, weight_scale_shape
from fewbit.numerics.hadamard import check_rotation
from fewbit.quant.scheme import LayerScheme, check_blocks, check_offsets
from fewbit.quant.torch.fake_quant import (
    Integers,
    fake_quant_activation,
    fake_quant_weight,
    quantize_activation,
    quantize_weight,
    rotate,
)

Matmul = Callable[[Tensor, Tensor], Tensor]
"""A layer's operation (matmul or convolution, without its bias) on activation and weight."""


class Rounding(Protocol):
    """How a layer rounds: by its scheme, with static scales where it has them."""

    scheme: LayerScheme
    exact: bool
    act_scale: float | None
    act_zero_point: int | None


def few_bit_matmul(
    how: Rounding, matmul: Matmul, x: Tensor, weight: Tensor, bias: Tensor | None, rank: int
) -> Tensor:
    """A convolution of that rank, or for rank 0 a linear layer, with its bias."""
    x = rotate(x, how.scheme.hadamard)
    channels = (-1, *[1] * rank)
    group = how.scheme.act_group
    rows: ActivationGranularity = "group" if group else "sample" if rank else "row"
    if how.exact:
        with torch.no_grad():
            y = _exact(how, matmul, x, weight, channels, rows)
            y = y if bias is None else y + bias.float().view(channels)
            return y.to(x.dtype)
    rounded = fake_quant_activation(x, how.scheme.act, rows, *_static(how, x), group)
    y = matmul(rounded, fake_quant_weight(weight, how.scheme))
    return y if bias is None else y + bias.view(channels)


def few_bit_lookup(how: Rounding, lookup: Callable[[Tensor], Tensor], weight: Tensor) -> Tensor:
    """Rows of a table; unless they share a scale, only those that are taken are rounded."""
    if how.scheme.granularity == "tensor":
        return rotate(lookup(fake_quant_weight(weight, how.scheme)), how.scheme.hadamard)
    taken = lookup(weight)
    if taken.numel() == 0:
        return taken
    rows = taken.reshape(math.prod(taken.shape[:-1]), taken.shape[-1])
    rounded = fake_quant_weight(rows, how.scheme).reshape(taken.shape)
    return rotate(rounded, how.scheme.hadamard)


def check_rounding(
    scheme: LayerScheme, weight_shape: tuple[int, ...], act_scale: float | None, *, is_table: bool
) -> None:
    """Refuse what the shapes do not allow, and static scales that are missing."""
    act = None if is_table else scheme.act
    check_rotation(scheme.hadamard, weight_shape)
    check_offsets(scheme, weight_shape)
    if not is_table:
        check_blocks(scheme, weight_shape)
    if scheme.weight is not None:
        scales = weight_scale_shape(weight_shape, scheme.granularity, scheme.group)
        groups = scales[1] if len(scales) == 2 else 1
        if act is not None:
            zero_points = not scheme.symmetric or scheme.mode == "offset"
            both = zero_points if scheme.static else "w" if zero_points else False
            check_accumulator(math.prod(weight_shape[1:]) // groups, act, scheme.weight, both)
    if scheme.static and act is not None and act_scale is None:
        raise UsageError(
            f"the scheme '{scheme}' is static, and no scale is known",
            hint="calibrate first: prepare_qat(model, recipe, calibration=calibrate(...))",
        )


def _exact(
    how: Rounding,
    matmul: Matmul,
    x: Tensor,
    weight: Tensor,
    channels: tuple[int, ...],
    rows: ActivationGranularity,
) -> Tensor:
    scheme = how.scheme
    scale, zero_point = _static(how, x)
    if scheme.weight is None or scheme.act is None:
        real = fake_quant_activation(x.float(), scheme.act, rows, scale, zero_point)
        return matmul(real, fake_quant_weight(weight.float(), scheme))
    xs = quantize_activation(
        x, scheme.act, rows, scale=scale, zero_point=zero_point, group=scheme.act_group
    )
    return _integer_matmul(xs, quantize_weight(weight, scheme), matmul, channels)


def _static(how: Rounding, x: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The static scale and zero point, as float32 scalars beside `x`."""
    scale, zero_point = (
        None if value is None else torch.tensor(value, dtype=torch.float32, device=x.device)
        for value in (how.act_scale, how.act_zero_point)
    )
    return scale, zero_point


def _integer_matmul(x: Integers, w: Integers, matmul: Matmul, channels: tuple[int, ...]) -> Tensor:
    """Σ over groups, in order, of acc · s_x · s_w; sums of integers are exact in float64.

    Where the groups of a linear layer have offsets m, each also adds Σ u_x · s_x · m.
    """
    xs, ws = x.centered().double(), w.centered().double()
    x_scale = x.scale.reshape(*x.scale.shape, *[1] * (xs.dim() - x.scale.dim()))
    in_blocks = x.scale.dim() == xs.dim() > 0
    scales = list(w.scale.T) if w.scale.dim() == 2 else [w.scale]
    total = None
    for index, scale in enumerate(scales):
        part = ws if len(scales) == 1 else _only_group(ws, index, len(scales))
        scale = scale if scale.dim() == 0 else scale.reshape(channels)
        row_scale = x_scale[..., index, None] if in_blocks else x_scale
        term = matmul(xs, part).float() * row_scale * scale
        if w.offset is not None:
            row_sums = xs.reshape(*xs.shape[:-1], len(scales), -1).sum(-1)[..., index, None]
            term = term + row_sums.float() * row_scale * w.offset[:, index]
        total = term if total is None else total + term
    assert total is not None
    return total


def _only_group(weight: Tensor, index: int, groups: int) -> Tensor:
    """The weight with every other group along K set to zero."""
    runs = weight.reshape(weight.shape[0], groups, -1)
    kept = torch.zeros_like(runs)
    kept[:, index] = runs[:, index]
    return kept.reshape(weight.shape)
