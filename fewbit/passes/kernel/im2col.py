"""Float convolutions as matmuls, by the columns that they multiply.

The elements under each window are gathered into a row, in the order kh, kw, channel; a row times
the weight, with its channels last too, is a pixel of the result. A kernel of size 1 that visits
every pixel has its rows already. Groups are a batch of matmuls. Matmuls become loops that multiply
and add, with a loop behind them for the epilogue. Depthwise convolutions stay: each channel would
be a tiny matmul of its own. So do integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import kernel, mico
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.layers import contract
from fewbit.passes.linalg.building.loops import generic, loops, read, same
from fewbit.passes.linalg.building.tensors import (
    Size,
    collapse_axes,
    expand_axis,
    size_of,
)
from fewbit.passes.linalg.building.windows import Window
from fewbit.passes.linalg.lower_kernel import (
    channels_last,
    counts,
    finish,
    matmul,
    pad_image,
    under,
    windows_of,
)


@dataclass(frozen=True)
class Im2col(ModulePass):
    """Turn float convolutions into a gather of columns and a matmul."""

    name = "im2col"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(op, {kernel.MatmulOp: _matmul, kernel.Conv2dOp: _conv2d})


def _matmul(op: kernel.MatmulOp) -> Sequence[SSAValue] | None:
    return matmul(op) if op.is_float else None


def _conv2d(op: kernel.Conv2dOp) -> Sequence[SSAValue] | None:
    outputs, inputs, kh, kw = mico.shape_of(op.weight.type)
    groups = op.groups.value.data
    if not op.is_float or (groups > 1 and inputs == 1):
        return None
    windows = windows_of(op)
    space = counts(op.x, windows)
    taps = kh * kw * inputs
    weight = expand_axis(
        collapse_axes(channels_last(op.weight), 1, 3), 0, [groups, outputs // groups]
    )
    n, h, w, g, o, k = loops(6)
    total = contract(
        read(_columns(op.x, windows, space, groups, taps), n, h, w, g, k),
        read(weight, g, o, k),
        [n, h, w, g, o],
        [size_of(op.x, 0), *space, groups, outputs // groups],
        f32,
    )
    return finish(op, collapse_axes(total, 3, 4))


def _columns(
    x: SSAValue, windows: Sequence[Window], space: Sequence[Size], groups: int, taps: int
) -> SSAValue:
    """Return N x OH x OW x groups x taps: what each window holds of each group."""
    if all(w == Window(1, 1, 0, 0, w.dilation) for w in windows):
        return expand_axis(x, 3, [groups, taps])
    inputs = taps // (windows[0].kernel * windows[1].kernel)
    padded = expand_axis(pad_image(x, windows, 0), 3, [groups, inputs])
    n, oh, ow, g, kh, kw, c = loops(7)
    columns = generic(
        [read(padded, n, *under(windows, oh, ow, kh, kw), g, c)],
        [n, oh, ow, g, kh, kw, c],
        [size_of(x, 0), *space, groups, *(w.kernel for w in windows), inputs],
        f32,
        same,
    )
    return collapse_axes(columns, 4, 6)
