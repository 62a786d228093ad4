"""`mico.bitconv1d` and `mico.bitconv2d` as a padded input under a moving window.

Zero points are subtracted before the input is padded, so padding is 0 and contributes nothing. A
grouped convolution has its groups as a dimension of input and weight. Where a channel's weights
have a scale for each group of elements, which may begin anywhere in the window, the inputs under
the window are laid out first, so that the elements of a group are next to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.dialects.mico.layers import ConvolutionOp
from fewbit.dialects.mico.syntax import ints
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.layers import (
    Factors,
    contract,
    factors_of,
    finish,
    group_sum,
)
from fewbit.passes.linalg.building.loops import generic, loops, read, same
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_type,
    collapse_axes,
    expand_axis,
    pad,
    size_of,
    with_shape,
)
from fewbit.passes.linalg.building.windows import Window, counts
from fewbit.passes.quant.lower_activation_quant import integer_layer


@dataclass(frozen=True)
class LowerBitConv(ModulePass):
    """Turn convolutions into loops."""

    name = "lower-bit-conv"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(op, {mico.BitConv1dOp: _bit_conv, mico.BitConv2dOp: _bit_conv})


@dataclass(frozen=True)
class _Nest:
    """The padded input as samples x groups x channels x space, and the windows over it."""

    x: SSAValue
    windows: tuple[Window, ...]
    spatial: tuple[Size, ...]
    groups: int
    kernel: tuple[int, ...]
    """The weight's shape: output channels, channels of a group, window."""

    @property
    def samples(self) -> Size:
        return size_of(self.x, 0)


def _bit_conv(op: ConvolutionOp) -> Sequence[SSAValue]:
    decomposed = integer_layer(op)
    if decomposed is not None:
        return decomposed
    factors = factors_of(op)
    nest = _nest(op, factors.x)
    if factors.groups is None:
        total = collapse_axes(_plain_sum(nest, factors), 1, 2)
    else:
        total = _group_sum(nest, factors, factors.groups)
    return [as_type(finish(op, total, factors, 1), op.result.type)]


def _nest(op: ConvolutionOp, x: SSAValue) -> _Nest:
    kernel = mico.shape_of(op.weight.type)
    groups = op.groups.value.data
    shape = mico.shape_of(x.type)
    x = with_shape(x, (shape[0], groups * kernel[1], *shape[2:]))
    windows = tuple(
        Window(size, stride, before, after, dilation)
        for size, stride, (before, after), dilation in zip(
            kernel[2:], ints(op.stride), op.padding_pairs, ints(op.dilation), strict=True
        )
    )
    spatial = tuple(counts(x, windows))
    low = [0, 0, *(w.before for w in windows)]
    padded = pad(x, low, [0, 0, *(w.after for w in windows)], 0)
    return _Nest(expand_axis(padded, 1, [groups, kernel[1]]), windows, spatial, groups, kernel)


def _plain_sum(nest: _Nest, factors: Factors) -> SSAValue:
    """Return samples x groups x channels of a group x space."""
    rank = len(nest.windows)
    n, g, o, *others = loops(4 + 2 * rank)
    place, c, offset = others[:rank], others[rank], others[rank + 1 :]
    per_group = nest.kernel[0] // nest.groups
    weight = expand_axis(factors.w, 0, [nest.groups, per_group])
    under = [w.index(p, k) for w, p, k in zip(nest.windows, place, offset, strict=True)]
    return contract(
        read(nest.x, n, g, c, *under),
        read(weight, g, o, c, *offset),
        [n, g, o, *place],
        [nest.samples, nest.groups, per_group, *nest.spatial],
        factors.element,
    )


def _group_sum(nest: _Nest, factors: Factors, scales: int) -> SSAValue:
    rank = len(nest.windows)
    flat = collapse_axes(factors.w, 1, 1 + rank)
    length = mico.shape_of(flat.type)[1] // scales
    per_group = nest.kernel[0] // nest.groups
    columns = expand_axis(_columns(nest), 2, [scales, length])
    weight = expand_axis(expand_axis(flat, 1, [scales, length]), 0, [nest.groups, per_group])
    n, g, o, *place, part, i = loops(5 + rank)
    partial = contract(
        read(columns, n, g, part, i, *place),
        read(weight, g, o, part, i),
        [n, g, o, *place, part],
        [nest.samples, nest.groups, per_group, *nest.spatial, scales],
        factors.element,
    )
    n, o, *place, part = loops(3 + rank)
    return group_sum(collapse_axes(partial, 1, 2), factors, [n, o, *place], part, o)


def _columns(nest: _Nest) -> SSAValue:
    """Return the inputs under the window: samples x groups x elements of the window x space."""
    rank = len(nest.windows)
    n, g, c, *others = loops(3 + 2 * rank)
    offset, place = others[:rank], others[rank:]
    under = [w.index(p, k) for w, p, k in zip(nest.windows, place, offset, strict=True)]
    columns = generic(
        [read(nest.x, n, g, c, *under)],
        [n, g, c, *offset, *place],
        [nest.samples, nest.groups, *nest.kernel[1:], *nest.spatial],
        mico.element_type(nest.x.type),
        same,
    )
    return collapse_axes(columns, 2, 2 + rank)
