"""The iteration space of a linalg op, and tensors seen from it.

A tensor that is read through an affine map is a strided view over the loops: the stride of a loop
is the sum of its coefficients times the tensor's strides. So transposes, broadcasts, diagonals and
the windows of a convolution cost nothing to read. A view has one dimension per loop, of size 1
where the tensor does not depend on the loop. Maps with `mod` and divisions are read with index
arrays instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from fewbit.errors import InterpretError
from fewbit.interpreter.body import loop_indices
from fewbit.interpreter.values import Value

Box: TypeAlias = tuple[slice, ...]
"""A part of the iteration space: a range of each loop."""

Linear: TypeAlias = tuple[dict[int, int], int]
"""Coefficients by loop, and a constant."""


def linear_form(expr: AffineExpr) -> Linear | None:
    """Return the coefficients of a linear expression; None if it divides or takes a remainder."""
    match expr:
        case AffineConstantExpr():
            return {}, expr.value
        case AffineDimExpr():
            return {expr.position: 1}, 0
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add):
            lhs, rhs = linear_form(expr.lhs), linear_form(expr.rhs)
            return None if lhs is None or rhs is None else _sum(lhs, rhs)
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul):
            lhs, rhs = linear_form(expr.lhs), linear_form(expr.rhs)
            if lhs is None or rhs is None or rhs[0]:
                return None
            return {d: c * rhs[1] for d, c in lhs[0].items()}, lhs[1] * rhs[1]
        case _:
            return None


def _sum(lhs: Linear, rhs: Linear) -> Linear:
    coefficients = dict(lhs[0])
    for loop, coefficient in rhs[0].items():
        coefficients[loop] = coefficients.get(loop, 0) + coefficient
    return coefficients, lhs[1] + rhs[1]


def loop_ranges(maps: Sequence[AffineMap], shapes: Sequence[Sequence[int]]) -> list[int]:
    """Return the range of each loop: the size of a dimension that it indexes alone."""
    ranges: dict[int, int] = {}
    for map, shape in zip(maps, shapes, strict=True):
        for expr, size in zip(map.results, shape, strict=True):
            if not isinstance(expr, AffineDimExpr):
                continue
            known = ranges.setdefault(expr.position, size)
            if known != size:
                raise InterpretError(
                    f"loop d{expr.position} has two ranges, {known} and {size}: "
                    f"the operands' shapes {[list(s) for s in shapes]} do not go together"
                )
    count = maps[0].num_dims
    missing = [f"d{loop}" for loop in range(count) if loop not in ranges]
    if missing:
        raise InterpretError(f"no operand gives the range of {', '.join(missing)}")
    return [ranges[loop] for loop in range(count)]


def view(tensor: Value, map: AffineMap, ranges: Sequence[int], *, write: bool = False) -> Value:
    """Return `tensor` over the loops, as the map indexes it."""
    tensor = np.asarray(tensor)
    forms = [linear_form(expr) for expr in map.results]
    if any(form is None for form in forms):
        return _gather(tensor, map, ranges)
    strides, used = [0] * len(ranges), [False] * len(ranges)
    for axis, (coefficients, constant) in enumerate(cast(list[Linear], forms)):
        _check_bounds(coefficients, constant, ranges, tensor.shape[axis], axis)
        for loop, coefficient in coefficients.items():
            strides[loop] += coefficient * tensor.strides[axis]
            used[loop] = True
    origin = tensor[(*(slice(cast(Linear, form)[1], None) for form in forms), ...)]
    shape = [size if use else 1 for size, use in zip(ranges, used, strict=True)]
    return as_strided(origin, shape, strides, writeable=write)


def _check_bounds(
    coefficients: dict[int, int], constant: int, ranges: Sequence[int], size: int, axis: int
) -> None:
    ends = [c * (ranges[loop] - 1) for loop, c in coefficients.items()]
    low = constant + sum(min(0, end) for end in ends)
    high = constant + sum(max(0, end) for end in ends)
    if low < 0 or high >= size:
        raise InterpretError(
            f"the loops reach {low} to {high} in dimension {axis}, whose size is {size}"
        )


def _gather(tensor: Value, map: AffineMap, ranges: Sequence[int]) -> Value:
    loops = cast(Any, loop_indices(ranges))
    ones = np.zeros([1] * len(ranges), np.int64)
    indices = [cast(Any, expr.eval(loops, [])) + ones for expr in map.results]
    for axis, index in enumerate(indices):
        if index.min() < 0 or index.max() >= tensor.shape[axis]:
            raise InterpretError(f"the loops leave dimension {axis} of size {tensor.shape[axis]}")
    return tensor[tuple(np.broadcast_arrays(*indices))]


def is_projection(map: AffineMap) -> bool:
    """Return whether each result is a loop of its own, or a constant."""
    loops = [expr.position for expr in map.results if isinstance(expr, AffineDimExpr)]
    simple = all(isinstance(expr, AffineDimExpr | AffineConstantExpr) for expr in map.results)
    return simple and len(set(loops)) == len(loops)


def used_loops(map: AffineMap) -> set[int]:
    return {expr.position for result in map.results for expr in _dims(result)}


def _dims(expr: AffineExpr) -> Iterator[AffineDimExpr]:
    return (e for e in expr.dfs() if isinstance(e, AffineDimExpr))


def part(view: Value, box: Box) -> Value:
    """Return the part of a view over the loops that lies in `box`."""
    slices = (s if n > 1 else slice(None) for s, n in zip(box, view.shape, strict=True))
    return view[(*slices, ...)]


def boxes(
    ranges: Sequence[int], loops: Sequence[int], cost: Callable[[list[int]], int], limit: int
) -> Iterator[Box]:
    """Cut the space along `loops`, the longest first, until each part costs at most `limit`."""
    yield from _cut([slice(0, size) for size in ranges], loops, cost, limit)


def _cut(
    box: list[slice], loops: Sequence[int], cost: Callable[[list[int]], int], limit: int
) -> Iterator[Box]:
    sizes = [s.stop - s.start for s in box]
    longest = max(loops, key=lambda loop: sizes[loop], default=None)
    if longest is None or sizes[longest] <= 1 or cost(sizes) <= limit:
        yield tuple(box)
        return
    start, stop = box[longest].start, box[longest].stop
    middle = (start + stop) // 2
    for half in (slice(start, middle), slice(middle, stop)):
        yield from _cut([*box[:longest], half, *box[longest + 1 :]], loops, cost, limit)
