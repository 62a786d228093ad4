"""Pooling as a reduction over windows of the padded input.

`ceil_mode` may let the last window reach beyond the padding: the input is padded further, by what
never wins a maximum and never counts in a mean. Where not every element of a window counts, the
number of those that do is computed from where the window is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.dialects.mico.pooling import PoolOp
from fewbit.dialects.mico.syntax import ints
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.loops import (
    Binary,
    apply,
    convert,
    elementwise,
    generic,
    loops,
    read,
)
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_type,
    empty,
    integers,
    pad,
    sizes_of,
)
from fewbit.passes.linalg.building.windows import Window, count_elements, counts


@dataclass(frozen=True)
class LowerPool(ModulePass):
    """Turn pooling into loops."""

    name = "lower-pool"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {mico.MaxPool2dOp: _max_pool, mico.AvgPool2dOp: _avg_pool},
        )


def _windows(op: PoolOp, dilation: Sequence[int]) -> list[Window]:
    return [
        Window(size, stride, before, after, step, bool(op.ceil_mode.value.data))
        for size, stride, (before, after), step in zip(
            ints(op.kernel_size), ints(op.stride), op.padding_pairs, dilation, strict=True
        )
    ]


def _pad(
    x: SSAValue, windows: Sequence[Window], count: Sequence[Size], padding: float, beyond: float
) -> SSAValue:
    """Pad the last two dimensions with `padding`, and what ceil_mode adds with `beyond`."""
    extents = sizes_of(x)[-2:]
    missing = [w.missing(e, n) for w, e, n in zip(windows, extents, count, strict=True)]
    lead: list[Size] = [0] * (len(sizes_of(x)) - 2)
    inner = pad(
        x, [*lead, *(w.before for w in windows)], [*lead, *(w.after for w in windows)], padding
    )
    return pad(inner, [0] * (len(lead) + 2), [*lead, *missing], beyond)


def _reduce_windows(
    padded: SSAValue, windows: Sequence[Window], count: Sequence[Size], body: Binary, start: float
) -> SSAValue:
    """Reduce each window to one value, over the last two dimensions."""
    element = mico.element_type(padded.type)
    lead = sizes_of(padded)[:-2]
    *outer, oh, ow, kh, kw = loops(len(lead) + 4)
    under = [windows[0].index(oh, kh), windows[1].index(ow, kw)]
    # Nothing but its shape matters: it gives the loops over the window their range.
    kernel = empty([w.kernel for w in windows], element)
    return generic(
        [read(padded, *outer, *under), read(kernel, kh, kw)],
        [*outer, oh, ow],
        [*lead, *count],
        element,
        lambda value, _, accumulated: body(accumulated, value),
        start=start,
    )


def _max_pool(op: mico.MaxPool2dOp) -> Sequence[SSAValue]:
    x = integers(op.input)
    least = _least(mico.element_type(x.type))
    windows = _windows(op, ints(op.dilation))
    count = counts(x, windows)
    padded = _pad(x, windows, count, least, least)
    return [as_type(_reduce_windows(padded, windows, count, s.larger, least), op.result.type)]


def _least(element: Attribute) -> float:
    if isinstance(element, IntegerType):
        return -(1 << (element.bitwidth - 1))
    return -s.INFINITY


def _avg_pool(op: mico.AvgPool2dOp) -> Sequence[SSAValue]:
    element = mico.element_type(op.input.type)
    wide = f64  # means are rounded once
    x = convert(op.input, wide)
    windows = _windows(op, (1, 1))
    count = counts(x, windows)
    total = _reduce_windows(_pad(x, windows, count, 0, 0), windows, count, s.add, 0)
    if _all_count(op, windows):
        elements = s.constant(windows[0].kernel * windows[1].kernel, wide)
        mean = apply(total, element, lambda t: s.to_float(s.div(t, elements), element))
        return [as_type(mean, op.result.type)]
    height, width = (
        count_elements(window, extent, padding=_counts_padding(op))
        for window, extent in zip(windows, sizes_of(x)[-2:], strict=True)
    )
    index = loops(4)
    mean = elementwise(
        [read(total, *index), read(height, index[2]), read(width, index[3])],
        sizes_of(total),
        element,
        lambda t, h, w: s.to_float(s.div(t, s.mul(h, w)), element),
    )
    return [as_type(mean, op.result.type)]


def _all_count(op: mico.AvgPool2dOp, windows: Sequence[Window]) -> bool:
    """Return whether every element of every window counts in its mean."""
    padded = any(w.before or w.after for w in windows)
    return not op.ceil_mode.value.data and (not padded or _counts_padding(op))


def _counts_padding(op: mico.AvgPool2dOp) -> bool:
    return op.count_include_pad.value.data != 0
