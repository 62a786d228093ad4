"""Loops for ops of the `kernel` dialect that a target calls no kernel for.

Tensors are channels-last, and so are loops wherever channels are not reduced: such loops run over
neighbouring elements, which compilers vectorize. The weight of a convolution is transposed to
channels-last first; where it is constant, `fold_weights` does that once. The epilogue of a kernel
is one loop behind the contraction, in the same order and rounded as often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, f64, i8, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr
from xdsl.passes import ModulePass

from fewbit.dialects import kernel, mico
from fewbit.dialects.mico.syntax import ints
from fewbit.numerics.widths import Width
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.formulas import activate
from fewbit.passes.linalg.building.layers import Factors, contract
from fewbit.passes.linalg.building.loops import (
    Binary,
    Read,
    apply,
    convert,
    elementwise,
    generic,
    loops,
    read,
    read_leading,
    same,
)
from fewbit.passes.linalg.building.quantized import (
    count_from_zero,
    dynamic_quantization,
    rounding_shift,
    static_quantization,
)
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_type,
    collapse_axes,
    empty,
    expand_axis,
    full,
    integers,
    pad,
    size_of,
    sizes_of,
)
from fewbit.passes.linalg.building.windows import Window
from fewbit.passes.linalg.lower_bit_linear import sum_of_groups

ReduceWindows = Callable[[SSAValue, Sequence[Window], Binary, float, float], SSAValue]
"""Reduces each window of an image: by a function, with a padding, from a neutral element."""


@dataclass(frozen=True)
class LowerKernel(ModulePass):
    """Turn ops of the kernel dialect into loops."""

    name = "lower-kernel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {
                kernel.MatmulOp: matmul,
                kernel.Conv2dOp: _conv2d,
                kernel.Pool2dOp: lambda op: pool2d(op, _reduce_windows),
                kernel.QuantizeRowsOp: _quantize_rows,
            },
        )


def sum_type(op: kernel.ContractionOp) -> Attribute:
    return f32 if op.is_float else i32


def matmul(op: kernel.MatmulOp) -> Sequence[SSAValue]:
    x, weight = integers(op.x), integers(op.weight)
    if op.scale_groups is not None:
        if op.weight_offset is not None:
            weight = count_from_zero(weight, mico.element_width(op.weight.type) or Width.of(8))
        factors = Factors(x, weight, op.x_scale, op.weight_scale, op.weight_offset)
        return finish(op, sum_of_groups(factors))
    *rows, n, k = loops(len(mico.shape_of(x.type)) + 1)
    total = contract(
        read(x, *rows, k),
        read(weight, n, k),
        [*rows, n],
        [*sizes_of(x)[:-1], size_of(weight, 0)],
        sum_type(op),
    )
    return finish(op, total)


def _conv2d(op: kernel.Conv2dOp) -> Sequence[SSAValue]:
    x, weight = integers(op.x), integers(op.weight)
    outputs, inputs, *_ = mico.shape_of(weight.type)
    windows = windows_of(op)
    space = counts(x, windows)
    padded = pad_image(x, windows, 0)
    groups = op.groups.value.data
    if inputs == 1 and outputs == groups:
        return finish(op, _depthwise(padded, weight, windows, space, sum_type(op)))
    n, oh, ow, g, o, kh, kw, c = loops(8)
    per_group = outputs // groups
    total = contract(
        read(expand_axis(padded, 3, [groups, inputs]), n, *under(windows, oh, ow, kh, kw), g, c),
        read(expand_axis(channels_last(weight), 0, [groups, per_group]), g, o, kh, kw, c),
        [n, oh, ow, g, o],
        [size_of(x, 0), *space, groups, per_group],
        sum_type(op),
    )
    return finish(op, collapse_axes(total, 3, 4))


def windows_of(op: kernel.Conv2dOp) -> list[Window]:
    kernel_size = mico.shape_of(op.weight.type)[2:]
    return [
        Window(size, stride, before, after, dilation)
        for size, stride, (before, after), dilation in zip(
            kernel_size, ints(op.stride), op.padding_pairs, ints(op.dilation), strict=True
        )
    ]


def channels_last(weight: SSAValue) -> SSAValue:
    """Transpose O x C x kh x kw to O x kh x kw x C."""
    o, c, h, w = loops(4)
    outputs, inputs, *kernel_size = sizes_of(weight)
    sizes = [outputs, *kernel_size, inputs]
    element = mico.element_type(weight.type)
    return generic([read(weight, o, c, h, w)], [o, h, w, c], sizes, element, same)


def _depthwise(
    padded: SSAValue,
    weight: SSAValue,
    windows: Sequence[Window],
    space: Sequence[Size],
    element: Attribute,
) -> SSAValue:
    """Return the accumulators of a depthwise convolution, vectorized along channels."""
    n, oh, ow, kh, kw, c = loops(6)
    return contract(
        read(padded, n, *under(windows, oh, ow, kh, kw), c),
        read(depthwise_channels_last(collapse_axes(weight, 0, 1)), kh, kw, c),
        [n, oh, ow, c],
        [size_of(padded, 0), *space, size_of(weight, 0)],
        element,
    )


def depthwise_channels_last(weight: SSAValue) -> SSAValue:
    """Transpose C x kh x kw to kh x kw x C."""
    c, h, w = loops(3)
    channels, *kernel_size = sizes_of(weight)
    sizes = [*kernel_size, channels]
    return generic([read(weight, c, h, w)], [h, w, c], sizes, mico.element_type(weight.type), same)


def under(
    windows: Sequence[Window],
    oh: AffineDimExpr,
    ow: AffineDimExpr,
    kh: AffineDimExpr,
    kw: AffineDimExpr,
) -> list[AffineExpr]:
    """Return where the window at oh, ow has its element kh, kw."""
    return [windows[0].index(oh, kh), windows[1].index(ow, kw)]


def counts(x: SSAValue, windows: Sequence[Window]) -> list[Size]:
    """Return windows along the two spatial dimensions, which precede the channels."""
    return [w.count(size_of(x, 1 + i)) for i, w in enumerate(windows)]


def pad_image(x: SSAValue, windows: Sequence[Window], fill: float) -> SSAValue:
    low = [0, *(w.before for w in windows), 0]
    return pad(x, low, [0, *(w.after for w in windows), 0], fill)


def finish(op: kernel.ContractionOp, total: SSAValue) -> Sequence[SSAValue]:
    """Return the results of a contraction from its accumulators."""
    if op.gives_floats:
        return _with_quantized(op, _with_epilogue(op, total))
    return _integer_results(op, total)


def _with_quantized(
    op: kernel.ContractionOp | kernel.Pool2dOp, result: SSAValue
) -> Sequence[SSAValue]:
    """Return the result, and the quantized result if there is a step."""
    if op.step is None or op.quantized is None:
        return [result]
    width = mico.element_width(op.quantized.type)
    assert width is not None
    steps = static_quantization(result, s.constant(op.step.value.data, f32), None, width)
    return [result, as_type(steps, op.quantized.type)]


def _with_epilogue(op: kernel.ContractionOp, total: SSAValue) -> SSAValue:
    """Return clamp(f(total · x_scale · weight_scale + bias + add)) as far as given, in a loop."""
    if op.scale_groups is not None:
        return epilogue(op, total)  # the sums of groups are scaled already
    index = loops(len(sizes_of(total)))
    scales = [
        *([] if op.x_scale is None else [read_leading(op.x_scale, index)]),
        *([] if op.weight_scale is None else [read_leading(op.weight_scale, index[-1:])]),
    ]
    return epilogue(op, total, scales)


def epilogue(op: kernel.ContractionOp, total: SSAValue, scales: Sequence[Read] = ()) -> SSAValue:
    """Return clamp(f(total · scales + bias + add)), as far as given, in one loop."""
    low, high = op.bounds
    activation = op.activation_name
    sizes = sizes_of(total)
    index = loops(len(sizes))
    terms = [
        *([] if op.bias is None else [read(op.bias, index[-1])]),
        *([] if op.add is None else [read(op.add, *index)]),
    ]
    if not scales and not terms and activation is None and (low, high) == (None, None):
        return as_type(total, op.result.type)

    def body(value: SSAValue, *more: SSAValue) -> SSAValue:
        value = s.to_float(value)
        for scale in more[: len(scales)]:
            value = s.mul(value, scale)
        for term in more[len(scales) :]:
            value = s.add(value, term)
        if activation is not None:
            value = activate(value, activation)
        if low is not None:
            value = s.larger(value, s.constant(low, f32))
        if high is not None:
            value = s.smaller(value, s.constant(high, f32))
        return value

    result = elementwise([read(total, *index), *scales, *terms], sizes, f32, body)
    return as_type(result, op.result.type)


def _integer_results(op: kernel.ContractionOp, total: SSAValue) -> Sequence[SSAValue]:
    """Return total + bias, and with a multiplier clamp(round((total + bias) · multiplier))."""
    sizes = sizes_of(total)
    index = loops(len(sizes))
    if op.bias is not None:
        total = elementwise([read(total, *index), read(op.bias, index[-1])], sizes, i32, s.add)
    result = as_type(total, op.result.type)
    if op.multiplier is None or op.quantized is None:
        return [result]
    low, high = op.integer_bounds

    def body(value: SSAValue, multiplier: SSAValue, *shift: SSAValue) -> SSAValue:
        if shift:
            product = s.mul(s.to_integer(value, i64), s.to_integer(multiplier, i64))
            whole = rounding_shift(product, s.to_integer(shift[0], i64))
        else:
            whole = s.round_even(s.mul(s.to_float(value), multiplier))
        ends = (s.constant(end, whole.type) for end in (low, high))
        return s.to_integer(s.smaller(s.larger(whole, next(ends)), next(ends)), i8)

    factors = [
        read_leading(factor, index[-1:])
        for factor in (op.multiplier, op.shift)
        if factor is not None
    ]
    few = elementwise([read(total, *index), *factors], sizes, i8, body)
    return [result, as_type(few, op.quantized.type)]


def pool2d(op: kernel.Pool2dOp, reduce_windows: ReduceWindows) -> Sequence[SSAValue]:
    """Return the pooled image, by a function that reduces windows."""
    windows = [
        Window(size, stride, before, after, 1, bool(op.ceil_mode.value.data))
        for size, stride, (before, after) in zip(
            ints(op.kernel_size), ints(op.stride), op.padding_pairs, strict=True
        )
    ]
    if op.kind.data == "average":
        return [as_type(_average(op, windows, reduce_windows), op.result.type)]
    x = integers(op.x)
    least = -s.INFINITY if mico.element_type(x.type) == f32 else -128
    largest = reduce_windows(x, windows, s.larger, least, least)
    return _with_quantized(op, as_type(largest, op.result.type))


def _average(
    op: kernel.Pool2dOp, windows: Sequence[Window], reduce_windows: ReduceWindows
) -> SSAValue:
    wide = f64  # means are rounded once
    total = reduce_windows(convert(op.x, wide), windows, s.add, 0, 0)
    includes = op.count_include_pad.value.data != 0
    is_padded = any(w.before or w.after for w in windows)
    if not op.ceil_mode.value.data and (includes or not is_padded):
        elements = windows[0].kernel * windows[1].kernel
        return apply(total, f32, lambda t: s.to_float(s.div(t, s.constant(elements, wide)), f32))
    _, height, width, _ = sizes_of(op.x)
    ones = full([1, height, width, 1], wide, 1)
    counted = reduce_windows(ones, windows, s.add, float(includes), 0)
    by_position = collapse_axes(collapse_axes(counted, 2, 3), 0, 1)
    n, h, w, c = loops(4)
    return elementwise(
        [read(total, n, h, w, c), read(by_position, h, w)],
        sizes_of(total),
        f32,
        lambda t, n: s.to_float(s.div(t, n), f32),
    )


def _reduce_windows(
    x: SSAValue, windows: Sequence[Window], body: Binary, padding: float, neutral: float
) -> SSAValue:
    """Reduce each window to one value; ceil_mode adds the neutral element beyond the padding."""
    count = counts(x, windows)
    whole = pad_to_windows(x, windows, count, padding, neutral)
    n, oh, ow, kh, kw, c = loops(6)
    # Nothing but its shape matters: it gives the loops over the window their range.
    window = empty([w.kernel for w in windows], f32)
    return generic(
        [read(whole, n, *under(windows, oh, ow, kh, kw), c), read(window, kh, kw)],
        [n, oh, ow, c],
        [size_of(x, 0), *count, size_of(x, 3)],
        mico.element_type(x.type),
        lambda value, _, accumulated: body(accumulated, value),
        start=neutral,
    )


def pad_to_windows(
    x: SSAValue, windows: Sequence[Window], count: Sequence[Size], padding: float, neutral: float
) -> SSAValue:
    """Pad the image, and add what the last windows of ceil_mode lack."""
    missing = [w.missing(size_of(x, 1 + i), count[i]) for i, w in enumerate(windows)]
    return pad(pad_image(x, windows, padding), [0] * 4, [0, *missing, 0], neutral)


def _quantize_rows(op: kernel.QuantizeRowsOp) -> Sequence[SSAValue]:
    lead = len(mico.shape_of(op.scale.type))
    values, scale = dynamic_quantization(op.x, lead, op.width, "max")
    return [as_type(values, op.result.type), as_type(scale, op.scale.type)]
