"""Convolutions and poolings of the `kernel` dialect as named ops of linalg.

A compiler that has strategies of its own finds them by these names: IREE runs
`linalg.conv_2d_nhwc_hwcf` 30 to 50 times as fast as the same sums as a `linalg.generic`. Weights
are put in the order that the named ops want, output channels last; IREE does that once, when it
loads them. Convolutions in groups, unless they are depthwise, are left to `lower-kernel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntElementsAttr,
    ModuleOp,
    TensorType,
    i32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, Region, SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import kernel, mico
from fewbit.dialects.upstream.linalg.bodies import multiply_add, region
from fewbit.dialects.upstream.linalg.table import TABLE
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.loops import Binary, generic, loops, read, same
from fewbit.passes.linalg.building.tensors import (
    Size,
    collapse_axes,
    empty,
    full,
    integers,
    pad,
    size_of,
    sizes_of,
)
from fewbit.passes.linalg.building.windows import Window
from fewbit.passes.linalg.lower_kernel import (
    counts,
    depthwise_channels_last,
    finish,
    pad_image,
    pad_to_windows,
    pool2d,
    sum_type,
    windows_of,
)

_NAMED: dict[str, Any] = {op.name: op for op in TABLE}


@dataclass(frozen=True)
class NameWindows(ModulePass):
    """Turn convolutions and poolings of the kernel dialect into named ops of linalg."""

    name = "name-windows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {kernel.Conv2dOp: _conv2d, kernel.Pool2dOp: lambda op: pool2d(op, _reduce_windows)},
        )


def _conv2d(op: kernel.Conv2dOp) -> Sequence[SSAValue] | None:
    outputs, inputs, *_ = mico.shape_of(op.weight.type)
    groups = op.groups.value.data
    depthwise = inputs == 1 and outputs == groups
    if groups > 1 and not depthwise:
        return None
    x, weight = integers(op.x), integers(op.weight)
    windows = windows_of(op)
    space = counts(x, windows)
    padded = pad_image(x, windows, 0)
    kind: Any = linalg.Conv2DNhwc_HwcfOp
    if depthwise and outputs > 1:
        kind = _NAMED["linalg.depthwise_conv_2d_nhwc_hwc"]
        weight = depthwise_channels_last(collapse_axes(weight, 0, 1))
    else:
        weight = _outputs_last(weight)
        if inputs == 1:
            # IREE drops dimensions of size 1, and with them finds no convolution any more.
            padded = pad(padded, [0] * 4, [0, 0, 0, 1], 0)
            weight = pad(weight, [0] * 4, [0, 0, 1, 0], 0)
    start = full([size_of(x, 0), *space, outputs], sum_type(op), 0)
    body = region(multiply_add, [padded, weight, start])
    total = _emit_named(kind, [padded, weight], start, windows, body)
    return finish(op, total)


def _outputs_last(weight: SSAValue) -> SSAValue:
    """Transpose O x C x kh x kw to kh x kw x C x O."""
    o, c, h, w = loops(4)
    outputs, inputs, *kernel_size = sizes_of(weight)
    sizes = [*kernel_size, inputs, outputs]
    return generic(
        [read(weight, o, c, h, w)], [h, w, c, o], sizes, mico.element_type(weight.type), same
    )


def _reduce_windows(
    x: SSAValue, windows: Sequence[Window], body: Binary, padding: float, neutral: float
) -> SSAValue:
    count: list[Size] = counts(x, windows)
    whole = pad_to_windows(x, windows, count, padding, neutral)
    element = mico.element_type(x.type)
    # Nothing but its shape matters: it is the size of the window.
    window = empty([w.kernel for w in windows], element)
    start = full([size_of(x, 0), *count, size_of(x, 3)], element, neutral)
    kind = _NAMED[f"linalg.pooling_nhwc_{'max' if body is s.larger else 'sum'}"]
    hidden = kind.get_hidden_region([whole, window], [start])
    return _emit_named(kind, [whole, window], start, windows, hidden)


def _emit_named(
    kind: type[Operation],
    inputs: Sequence[SSAValue],
    start: SSAValue,
    windows: Sequence[Window],
    body: Region,
) -> SSAValue:
    op = kind.create(
        operands=[*inputs, start],
        result_types=[start.type],
        properties={
            "strides": _numbers([w.stride for w in windows]),
            "dilations": _numbers([w.dilation for w in windows]),
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [len(inputs), 1]),
        },
        regions=[body],
    )
    return op.results[0]


def _numbers(values: Sequence[int]) -> DenseIntElementsAttr:
    return cast(
        DenseIntElementsAttr, DenseIntElementsAttr.from_list(TensorType(i64, [len(values)]), values)
    )
