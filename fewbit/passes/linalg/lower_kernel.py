"""Loops for ops of the `kernel` dialect that a target calls no kernel for.

Channels are innermost in tensors, and in loops too wherever they are not summed: such loops run
over neighbouring elements, which compilers turn into vector code. The weight of a convolution is
turned to channels-last first; where it is constant, `fold_weights` does that once. What a kernel
does before it stores is one loop behind the sums, in the same order and rounded as often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, i8, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr
from xdsl.passes import ModulePass

from fewbit.dialects import kernel, mico
from fewbit.dialects.mico.syntax import ints
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.formulas import activated
from fewbit.passes.linalg.building.layers import Factors, products
from fewbit.passes.linalg.building.loops import (
    Binary,
    Read,
    apply,
    converted,
    elementwise,
    generic,
    loops,
    read,
    read_leading,
    same,
)
from fewbit.passes.linalg.building.quantized import dynamic_quantization, static_quantization
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_type,
    collapse_axes,
    empty,
    expand_axis,
    filled,
    integers,
    pad,
    size_of,
    sizes_of,
)
from fewbit.passes.linalg.building.windows import Window
from fewbit.passes.linalg.lower_bit_linear import sum_of_groups

Reduced = Callable[[SSAValue, Sequence[Window], Binary, float, float], SSAValue]
"""Combines each window of an image to one value: by a function, with a padding, from a neutral."""


@dataclass(frozen=True)
class LowerKernel(ModulePass):
    """Turn ops of the kernel dialect into loops."""

    name = "lower-kernel"

    precise: bool = False
    """Whether means are computed in f64 and rounded once, as the interpreter does."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {
                kernel.MatmulOp: matmul,
                kernel.Conv2dOp: _conv2d,
                kernel.Pool2dOp: lambda op: pool2d(op, _reduced),
                kernel.QuantizeRowsOp: _quantize_rows,
            },
            precise=self.precise,
        )


def sum_type(op: kernel.ProductOp) -> Attribute:
    return f32 if op.is_float else i32


def matmul(op: kernel.MatmulOp) -> Sequence[SSAValue]:
    x, weight = integers(op.x), integers(op.weight)
    if op.scale_groups is not None:
        return finished(op, sum_of_groups(Factors(x, weight, op.x_scale, op.weight_scale)))
    *rows, n, k = loops(len(mico.shape_of(x.type)) + 1)
    total = products(
        read(x, *rows, k),
        read(weight, n, k),
        [*rows, n],
        [*sizes_of(x)[:-1], size_of(weight, 0)],
        sum_type(op),
    )
    return finished(op, total)


def _conv2d(op: kernel.Conv2dOp) -> Sequence[SSAValue]:
    x, weight = integers(op.x), integers(op.weight)
    outputs, inputs, *_ = mico.shape_of(weight.type)
    windows = windows_of(op)
    space = counts(x, windows)
    padded = surrounded(x, windows, 0)
    groups = op.groups.value.data
    if inputs == 1 and outputs == groups:
        return finished(op, _depthwise(padded, weight, windows, space, sum_type(op)))
    n, oh, ow, g, o, kh, kw, c = loops(8)
    per_group = outputs // groups
    total = products(
        read(expand_axis(padded, 3, [groups, inputs]), n, *under(windows, oh, ow, kh, kw), g, c),
        read(expand_axis(channels_last(weight), 0, [groups, per_group]), g, o, kh, kw, c),
        [n, oh, ow, g, o],
        [size_of(x, 0), *space, groups, per_group],
        sum_type(op),
    )
    return finished(op, collapse_axes(total, 3, 4))


def windows_of(op: kernel.Conv2dOp) -> list[Window]:
    kernel_size = mico.shape_of(op.weight.type)[2:]
    return [
        Window(size, stride, before, after, dilation)
        for size, stride, (before, after), dilation in zip(
            kernel_size, ints(op.stride), op.padding_pairs, ints(op.dilation), strict=True
        )
    ]


def channels_last(weight: SSAValue) -> SSAValue:
    """O x C x kh x kw as O x kh x kw x C."""
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
    """The sums of single channels: each vector of them meets a vector of weights."""
    n, oh, ow, kh, kw, c = loops(6)
    return products(
        read(padded, n, *under(windows, oh, ow, kh, kw), c),
        read(channels_innermost(collapse_axes(weight, 0, 1)), kh, kw, c),
        [n, oh, ow, c],
        [size_of(padded, 0), *space, size_of(weight, 0)],
        element,
    )


def channels_innermost(weight: SSAValue) -> SSAValue:
    """C x kh x kw as kh x kw x C."""
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
    """Where the window at oh, ow has its element kh, kw."""
    return [windows[0].index(oh, kh), windows[1].index(ow, kw)]


def counts(x: SSAValue, windows: Sequence[Window]) -> list[Size]:
    """Windows along the two spatial dimensions, which precede the channels."""
    return [w.count(size_of(x, 1 + i)) for i, w in enumerate(windows)]


def surrounded(x: SSAValue, windows: Sequence[Window], fill: float) -> SSAValue:
    low = [0, *(w.before for w in windows), 0]
    return pad(x, low, [0, *(w.after for w in windows), 0], fill)


def finished(op: kernel.ProductOp, total: SSAValue) -> Sequence[SSAValue]:
    """The results of a product, of its sums."""
    if op.gives_floats:
        return _in_steps(op, _with_epilogue(op, total))
    return _of_integers(op, total)


def _in_steps(op: kernel.ProductOp | kernel.Pool2dOp, result: SSAValue) -> Sequence[SSAValue]:
    """The result; and in whole steps, if there is a step."""
    if op.step is None or op.quantized is None:
        return [result]
    width = mico.element_width(op.quantized.type)
    assert width is not None
    steps = static_quantization(result, s.constant(op.step.value.data, f32), None, width)
    return [result, as_type(steps, op.quantized.type)]


def _with_epilogue(op: kernel.ProductOp, total: SSAValue) -> SSAValue:
    """clamp(f(total · x_scale · weight_scale + bias + add)), what there is of it, in one loop."""
    if op.scale_groups is not None:
        return epilogue(op, total)  # the sums of groups are scaled already
    index = loops(len(sizes_of(total)))
    scales = [
        *([] if op.x_scale is None else [read_leading(op.x_scale, index)]),
        *([] if op.weight_scale is None else [read_leading(op.weight_scale, index[-1:])]),
    ]
    return epilogue(op, total, scales)


def epilogue(op: kernel.ProductOp, total: SSAValue, scales: Sequence[Read] = ()) -> SSAValue:
    """clamp(f(total · scales + bias + add)), what there is of it, in one loop."""
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

    def body(value: SSAValue, *rest: SSAValue) -> SSAValue:
        value = s.to_float(value)
        for scale in rest[: len(scales)]:
            value = s.mul(value, scale)
        for term in rest[len(scales) :]:
            value = s.add(value, term)
        if activation is not None:
            value = activated(value, activation)
        if low is not None:
            value = s.larger(value, s.constant(low, f32))
        if high is not None:
            value = s.smaller(value, s.constant(high, f32))
        return value

    result = elementwise([read(total, *index), *scales, *terms], sizes, f32, body)
    return as_type(result, op.result.type)


def _of_integers(op: kernel.ProductOp, total: SSAValue) -> Sequence[SSAValue]:
    """total + bias; and clamp(round((total + bias) · multiplier)), if there is a multiplier."""
    sizes = sizes_of(total)
    index = loops(len(sizes))
    if op.bias is not None:
        total = elementwise([read(total, *index), read(op.bias, index[-1])], sizes, i32, s.add)
    result = as_type(total, op.result.type)
    if op.multiplier is None or op.quantized is None:
        return [result]
    low, high = op.integer_bounds

    def body(value: SSAValue, multiplier: SSAValue) -> SSAValue:
        whole = s.rounded(s.mul(s.to_float(value), multiplier))
        bounded = s.smaller(s.larger(whole, s.constant(low, f32)), s.constant(high, f32))
        return s.to_integer(bounded, i8)

    factor = read_leading(op.multiplier, index[-1:])
    few = elementwise([read(total, *index), factor], sizes, i8, body)
    return [result, as_type(few, op.quantized.type)]


def pool2d(op: kernel.Pool2dOp, reduced: Reduced) -> Sequence[SSAValue]:
    """The pooled image, by a function that combines windows."""
    windows = [
        Window(size, stride, before, after, 1, bool(op.ceil_mode.value.data))
        for size, stride, (before, after) in zip(
            ints(op.kernel_size), ints(op.stride), op.padding_pairs, strict=True
        )
    ]
    if op.kind.data == "average":
        return [as_type(_average(op, windows, reduced), op.result.type)]
    x = integers(op.x)
    least = -s.INFINITY if mico.element_type(x.type) == f32 else -128
    largest = reduced(x, windows, s.larger, least, least)
    return _in_steps(op, as_type(largest, op.result.type))


def _average(op: kernel.Pool2dOp, windows: Sequence[Window], reduced: Reduced) -> SSAValue:
    wide = s.working_type(f32)
    total = reduced(converted(op.x, wide), windows, s.add, 0, 0)
    includes = op.count_include_pad.value.data != 0
    is_padded = any(w.before or w.after for w in windows)
    if not op.ceil_mode.value.data and (includes or not is_padded):
        elements = windows[0].kernel * windows[1].kernel
        return apply(total, f32, lambda t: s.to_float(s.div(t, s.constant(elements, wide)), f32))
    _, height, width, _ = sizes_of(op.x)
    ones = filled([1, height, width, 1], wide, 1)
    counted = reduced(ones, windows, s.add, float(includes), 0)
    by_position = collapse_axes(collapse_axes(counted, 2, 3), 0, 1)
    n, h, w, c = loops(4)
    return elementwise(
        [read(total, n, h, w, c), read(by_position, h, w)],
        sizes_of(total),
        f32,
        lambda t, n: s.to_float(s.div(t, n), f32),
    )


def _reduced(
    x: SSAValue, windows: Sequence[Window], body: Binary, padding: float, neutral: float
) -> SSAValue:
    """Each window combined to one value; ceil_mode adds, beyond the padding, what is neutral."""
    count = counts(x, windows)
    whole = completed(x, windows, count, padding, neutral)
    n, oh, ow, kh, kw, c = loops(6)
    # Nothing but its shape matters: it gives the loops over the window their range.
    window = empty([w.kernel for w in windows], f32)
    return generic(
        [read(whole, n, *under(windows, oh, ow, kh, kw), c), read(window, kh, kw)],
        [n, oh, ow, c],
        [size_of(x, 0), *count, size_of(x, 3)],
        mico.element_type(x.type),
        lambda value, _, found: body(found, value),
        start=neutral,
    )


def completed(
    x: SSAValue, windows: Sequence[Window], count: Sequence[Size], padding: float, neutral: float
) -> SSAValue:
    """The image with its padding, and with what the last windows lack."""
    missing = [w.missing(size_of(x, 1 + i), count[i]) for i, w in enumerate(windows)]
    return pad(surrounded(x, windows, padding), [0] * 4, [0, *missing, 0], neutral)


def _quantize_rows(op: kernel.QuantizeRowsOp) -> Sequence[SSAValue]:
    lead = len(mico.shape_of(op.scale.type))
    values, scale = dynamic_quantization(op.x, lead, op.width, "max")
    return [as_type(values, op.result.type), as_type(scale, op.scale.type)]
