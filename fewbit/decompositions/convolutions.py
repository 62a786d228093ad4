"""Convolutions that we have no op for, by those that we have, so that they are layers too.

A convolution of volumes is one of images: the planes that a window covers in depth become channels.
A transposed convolution with a stride of s writes s outputs for each input: each of these phases is
an output channel of a plain convolution, and they are interleaved behind it. Nothing is multiplied
that was not multiplied before, but for zeros where the stride does not divide the window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

aten = torch.ops.aten

_CONVOLVE: dict[int, Any] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED: dict[int, Any] = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def convolution_decompositions() -> dict[Any, Callable[..., Any]]:
    return {
        aten.conv3d.default: _conv3d,
        aten.conv3d.padding: _conv3d,
        aten.conv_transpose1d.default: _conv_transpose,
        aten.conv_transpose2d.input: _conv_transpose,
        aten.conv_transpose3d.input: _conv_transpose,
        aten.bilinear.default: _bilinear,
    }


def _each(value: Any, rank: int) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * rank if len(values) == 1 else values


def _conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    if x.ndim == 4:
        return _conv3d(x[None], weight, bias, stride, padding, dilation, groups)[0]
    steps, dilations = _each(stride, 3), _each(dilation, 3)
    # "same" puts the odd one behind.
    spans = [d * (k - 1) for d, k in zip(dilations, weight.shape[2:], strict=True)]
    if isinstance(padding, str):
        sides = [(span // 2, span - span // 2) if padding == "same" else (0, 0) for span in spans]
    else:
        sides = [(p, p) for p in _each(padding, 3)]
    x = _pad(x, [sides[0], (0, 0), (0, 0)])
    depth = (x.shape[2] - spans[0] - 1) // steps[0] + 1
    starts = range(0, spans[0] + 1, dilations[0])
    reach = (depth - 1) * steps[0] + 1
    planes = [x[:, :, start : start + reach : steps[0]] for start in starts]
    stacked = torch.stack(planes, 2).permute(0, 3, 1, 2, 4, 5)
    images = stacked.flatten(2, 3).flatten(0, 1)
    w = weight.flatten(1, 2)
    y = _convolve(images, w, bias, steps[1:], sides[1:], dilations[1:], groups)
    return _unflatten(y, 0, [x.shape[0], depth]).transpose(1, 2)


def _convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    sides: list[tuple[int, int]],
    dilation: list[int],
    groups: int,
) -> Tensor:
    """Convolve, with zeros on the sides: as the op's own padding where they are the same."""
    padding = [before for before, _ in sides]
    if any(before != after for before, after in sides):
        x, padding = _pad(x, sides), [0] * len(sides)
    return _CONVOLVE[len(sides)](x, weight, bias, stride, padding, dilation, groups)


def _pad(x: Tensor, sides: Sequence[tuple[int, int]]) -> Tensor:
    """Pad the last dimensions with zeros, or cut them where a side is negative."""
    amounts = [amount for side in reversed(sides) for amount in side]
    return F.pad(x, amounts) if any(amounts) else x


def _conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    rank = weight.ndim - 2
    if x.ndim == rank + 1:
        given = (stride, padding, output_padding, groups, dilation)
        return _TRANSPOSED[rank](x[None], weight, bias, *given)[0]
    steps, dilations = _each(stride, rank), _each(dilation, rank)
    if any(s > 1 and d > 1 for s, d in zip(steps, dilations, strict=True)):
        return NotImplemented
    cut, more = _each(padding, rank), _each(output_padding, rank)
    kernel = [int(size) for size in weight.shape[2:]]
    taps = [-(-k // s) for k, s in zip(kernel, steps, strict=True)]
    sides: list[tuple[int, int]] = []
    for k, s, t, d, c, m in zip(kernel, steps, taps, dilations, cut, more, strict=True):
        # Output padding may ask for more than the last window writes.
        missing = max(0, d * (k - 1) + 1 + m - c - (d * (t - 1) + 1) * s)
        sides.append((d * (t - 1), d * (t - 1) + -(-missing // s)))
    phases = _phases(weight, steps, taps, groups)
    repeated = None if bias is None else bias.repeat_interleave(phases.shape[0] // bias.shape[0])
    y = _convolve(x, phases, repeated, [1] * rank, sides, dilations, groups)
    y = _interleave(y, steps)
    for axis, (k, s, d, c, m) in enumerate(
        zip(kernel, steps, dilations, cut, more, strict=True), start=2
    ):
        size = (x.shape[axis] - 1) * s - 2 * c + d * (k - 1) + m + 1
        y = y.narrow(axis, c, size)
    return y.clone()


def _phases(weight: Tensor, steps: Sequence[int], taps: Sequence[int], groups: int) -> Tensor:
    """The weight of the plain convolution: outputs and their phases, inputs, taps back to front."""
    inputs, outputs, *kernel = weight.shape
    sides = [(0, t * s - k) for k, s, t in zip(kernel, steps, taps, strict=True)]
    split = [size for t, s in zip(taps, steps, strict=True) for size in (t, s)]
    w = _pad(weight, sides).reshape([groups, inputs // groups, outputs, *split])
    # Dimensions: group, input, output, then taps and phase of each axis.
    of_taps = list(range(3, w.ndim, 2))
    of_phases = list(range(4, w.ndim, 2))
    w = w.flip(of_taps).permute([0, 2, *of_phases, 1, *of_taps])
    return w.reshape([-1, inputs // groups, *taps])


def _interleave(y: Tensor, steps: Sequence[int]) -> Tensor:
    """Channels that are phases, put between each other along each axis."""
    rank = len(steps)
    y = _unflatten(y, 1, [-1, *steps])
    order = [0, 1]
    for axis in range(rank):
        order += [2 + rank + axis, 2 + axis]
    y = y.permute(order)
    for axis in range(rank):
        y = y.flatten(2 + axis, 3 + axis)
    return y


def _unflatten(x: Tensor, dim: int, sizes: list[int]) -> Tensor:
    return cast(Any, x).unflatten(dim, sizes)


def _bilinear(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A linear layer on the first operand, whose outputs the second one weighs."""
    outputs, _, features = weight.shape
    rows = F.linear(x, weight.transpose(1, 2).flatten(0, 1))
    rows = _unflatten(rows, -1, [outputs, features])
    result: Tensor = cast(Any, rows * y.unsqueeze(-2)).sum(-1)
    return result if bias is None else result + bias
