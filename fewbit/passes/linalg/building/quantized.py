"""Few-bit integers and their scales: the formulas of `fewbit.numerics`, as loops.

Every op here is the numpy formula with the same operations in the same order, so that integers
come out the same to the bit. A scale belongs to a run of elements: of the tensor, of one index of
its leading dimensions, or of a group of a weight, which is seen as channels x groups x elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, f64, i8, i32, i64
from xdsl.ir import Attribute, SSAValue

from fewbit.dialects.mico.shapes import compatible
from fewbit.dialects.mico.types import shape_of
from fewbit.numerics.formulas import EPS
from fewbit.numerics.mean_magnitude import LANES, PART, PARTS, part_length
from fewbit.numerics.widths import Width
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.loops import (
    apply,
    elementwise,
    generic,
    loops,
    read,
    read_leading,
)
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_tensor,
    collapse_axes,
    expand_axis,
    pad,
    size_difference,
    size_of,
    size_product,
    size_quotient,
    size_quotient_up,
    sizes_of,
)

_EPS = float(EPS)


@dataclass(frozen=True)
class Runs:
    """A tensor seen so that each run is one index of its leading dimensions."""

    tensor: SSAValue
    lead: int
    restore: Callable[[SSAValue], SSAValue]


def runs_of(tensor: SSAValue, scale: tuple[int, ...]) -> Runs:
    """Return the runs that scales of this shape have: of leading dimensions, or of groups."""
    shape = shape_of(tensor.type)
    if compatible(scale, shape[: len(scale)]):
        return Runs(tensor, len(scale), lambda result: result)
    groups, inner = scale[1], shape[1:]
    flat = collapse_axes(tensor, 1, len(shape) - 1)
    grouped = expand_axis(flat, 1, [groups, prod(inner) // groups])

    def restore(result: SSAValue) -> SSAValue:
        return expand_axis(collapse_axes(result, 1, 2), 1, inner)

    return Runs(grouped, 2, restore)


def dynamic_quantization(
    x: SSAValue, lead: int, width: Width, mode: str
) -> tuple[SSAValue, SSAValue]:
    """Return i8 integers, and one scale for each index of the first `lead` dimensions."""
    sizes = sizes_of(x)
    everything = loops(len(sizes))
    narrow = width.bits <= 2
    magnitude = _mean_magnitude(x, lead) if narrow or mode == "mean" else _max_magnitude(x, lead)
    if narrow:
        scale = apply(magnitude, f32, _at_least_eps)
        return static_quantization(x, scale, None, width), scale
    factor = apply(magnitude, f32, lambda m: s.div(s.constant(width.qmax, f32), _at_least_eps(m)))
    scale = apply(factor, f32, lambda m: s.div(s.constant(1, f32), m))

    def quantize(value: SSAValue, m: SSAValue) -> SSAValue:
        return s.to_integer(s.clamp(s.round_even(s.mul(s.to_float(value), m)), width), i8)

    inputs = [read(x, *everything), read_leading(factor, everything)]
    return elementwise(inputs, sizes, i8, quantize), scale


def _at_least_eps(magnitude: SSAValue) -> SSAValue:
    return s.larger(magnitude, s.constant(_EPS, f32))


def _max_magnitude(x: SSAValue, lead: int) -> SSAValue:
    sizes = sizes_of(x)
    everything = loops(len(sizes))

    def body(value: SSAValue, most: SSAValue) -> SSAValue:
        return s.larger(most, s.magnitude(s.to_float(value)))

    return generic([read(x, *everything)], everything[:lead], sizes[:lead], f32, body, start=0)


def _mean_magnitude(x: SSAValue, lead: int) -> SSAValue:
    """Sum in the order of `numerics.mean_magnitude`.

    Targets keep the order of sums, but for those along the innermost loop: here of two lanes.
    """
    if lead == len(shape_of(x.type)):
        return apply(x, f32, lambda v: s.magnitude(s.to_float(v)))
    count = count_of(sizes_of(x)[lead:], f64)
    lanes = _magnitudes_in_lanes(x, lead)
    half = LANES // 2
    while half > 1:
        lanes = _sum_along(expand_axis(lanes, lead, [2, half]), lead)
        half //= 2
    totals = _sum_along(lanes, lead)
    return apply(totals, f32, lambda t: s.to_float(s.div(t, count), f32))


def _magnitudes_in_lanes(x: SSAValue, lead: int) -> SSAValue:
    """Return the sums of magnitudes as [runs, lanes], in f64."""
    sizes = sizes_of(x)
    flat = collapse_axes(x, lead, len(sizes) - 1)
    length = size_of(flat, lead)
    part, parts = _parts(length)
    missing = size_difference(size_product(part, parts), length)
    padded = pad(flat, [0] * (lead + 1), [0] * lead + [missing], 0)
    split = expand_axis(padded, lead, [parts, size_quotient(part, LANES), LANES])
    widened = apply(split, f64, lambda v: s.to_float(s.magnitude(s.to_float(v)), f64))
    return _sum_along(_sum_along(widened, lead + 1), lead)


def _parts(length: Size) -> tuple[Size, Size]:
    """Return how long the parts of a run are, and how many."""
    if isinstance(length, int):
        return part_length(length), -(-length // part_length(length))
    part = size_product(size_quotient_up(length, PART * PARTS), PART)
    return part, size_quotient_up(length, part)


def _sum_along(x: SSAValue, axis: int) -> SSAValue:
    sizes = sizes_of(x)
    index = loops(len(sizes))
    kept = [loop for loop in index if loop.position != axis]
    left = [size for position, size in enumerate(sizes) if position != axis]
    return generic([read(x, *index)], kept, left, f64, lambda v, total: s.add(total, v), start=0)


def count_of(sizes: list[Size], type: Attribute) -> SSAValue:
    """Return the number of elements, as a float."""
    count: Size = 1
    for size in sizes:
        count = size_product(count, size)
    return s.constant(count, type) if isinstance(count, int) else s.to_float(count, type)


def static_quantization(
    x: SSAValue, scale: SSAValue, zero_point: SSAValue | None, width: Width
) -> SSAValue:
    """Return i8 integers by given scales: clamp(round(x / s) + z); at one bit the sign."""
    sizes = sizes_of(x)
    everything = loops(len(sizes))
    inputs = [read(x, *everything)]
    if width.is_binary:

        def sign(value: SSAValue) -> SSAValue:
            return s.select(
                s.compare(s.to_float(value), "ge", s.constant(0, f32)),
                s.constant(1, i8),
                s.constant(-1, i8),
            )

        return elementwise(inputs, sizes, i8, sign)
    inputs.append(read_leading(scale, everything))
    if zero_point is not None:
        inputs.append(read_leading(zero_point, everything))

    def quantize(value: SSAValue, scale: SSAValue, *zero: SSAValue) -> SSAValue:
        whole = s.round_even(s.div(s.to_float(value), scale))
        for z in zero:
            whole = s.add(whole, s.to_float(z))
        return s.to_integer(s.clamp(whole, width), i8)

    return elementwise(inputs, sizes, i8, quantize)


def asymmetric_quantization(
    x: SSAValue, lead: int, width: Width
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Return i8 integers, scales, and i32 zero points, from the range of each run."""
    low, high = _extreme(x, lead, s.smaller), _extreme(x, lead, s.larger)
    sizes = sizes_of(low)
    index = loops(lead)

    def step(low: SSAValue, high: SSAValue) -> SSAValue:
        return s.div(_at_least_eps(s.sub(high, low)), s.constant((1 << width.bits) - 1, f32))

    def zero(low: SSAValue, scale: SSAValue) -> SSAValue:
        exact = s.sub(s.constant(width.qmin, f32), s.div(low, scale))
        return s.to_integer(s.clamp(s.round_even(exact), width), i32)

    scale = elementwise([read(low, *index), read(high, *index)], sizes, f32, step)
    zero_point = elementwise([read(low, *index), read(scale, *index)], sizes, i32, zero)
    return static_quantization(x, scale, zero_point, width), scale, zero_point


def _extreme(x: SSAValue, lead: int, pick: Callable[[SSAValue, SSAValue], SSAValue]) -> SSAValue:
    """Return the least or the largest value of each run, with 0 among them."""
    sizes = sizes_of(x)
    everything = loops(len(sizes))

    def body(value: SSAValue, extreme: SSAValue) -> SSAValue:
        return pick(extreme, s.to_float(value))

    return generic([read(x, *everything)], everything[:lead], sizes[:lead], f32, body, start=0)


def subtract_zero_point(values: SSAValue, zero_point: SSAValue | None) -> SSAValue:
    """Subtract zero points from i8 integers, in i32; without them, return the integers."""
    if zero_point is None:
        return values
    zero_point = as_tensor(zero_point)
    runs = runs_of(values, shape_of(zero_point.type))
    sizes = sizes_of(runs.tensor)
    index = loops(len(sizes))

    def body(value: SSAValue, zero: SSAValue) -> SSAValue:
        return s.sub(s.to_integer(value, i32), s.to_integer(zero, i32))

    inputs = [read(runs.tensor, *index), read_leading(zero_point, index)]
    return runs.restore(elementwise(inputs, sizes, i32, body))


def count_from_zero(values: SSAValue, width: Width) -> SSAValue:
    """Return i8 integers less the least one of their width, in i32."""
    sizes = sizes_of(values)
    index = loops(len(sizes))

    def body(value: SSAValue) -> SSAValue:
        return s.sub(s.to_integer(value, i32), s.constant(width.qmin, i32))

    return elementwise([read(values, *index)], sizes, i32, body)


def dequantize(
    values: SSAValue,
    scale: SSAValue,
    zero_point: SSAValue | None,
    element: Attribute = f32,
    offset: SSAValue | None = None,
) -> SSAValue:
    """Return (u - z) · s + m, computed in f32; with an offset, integers count from 0 already."""
    values = subtract_zero_point(values, zero_point)
    scale = as_tensor(scale)
    runs = runs_of(values, shape_of(scale.type))
    sizes = sizes_of(runs.tensor)
    index = loops(len(sizes))

    def body(value: SSAValue, scale: SSAValue, *offset: SSAValue) -> SSAValue:
        scaled = s.mul(s.to_float(value), scale)
        return s.to_float(s.add(scaled, offset[0]) if offset else scaled, element)

    inputs = [read(runs.tensor, *index), read_leading(scale, index)]
    if offset is not None:
        inputs.append(read_leading(as_tensor(offset), index))
    return runs.restore(elementwise(inputs, sizes, element, body))


def rounding_shift(x: SSAValue, shift: SSAValue) -> SSAValue:
    """Return x / 2^shift, rounded half to even: floor, then up by the remainder."""
    one = s.constant(1, i64)
    floor = arith.ShRSIOp(x, shift).result
    remainder = s.sub(x, arith.ShLIOp(floor, shift).result)
    twice = arith.ShLIOp(remainder, one).result
    unit = arith.ShLIOp(one, shift).result
    odd = s.compare(arith.AndIOp(floor, one).result, "eq", one)
    tie = arith.AndIOp(s.compare(twice, "eq", unit), odd).result
    up = arith.OrIOp(s.compare(twice, "gt", unit), tie).result
    return s.add(floor, arith.ExtUIOp(up, i64).result)
