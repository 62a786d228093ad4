"""The linalg dialect: every structured op, named or generic, through its maps and its body.

The body runs on whole tensors (see `body`). Loops that every output depends on are independent of
each other and run at once; over the others a reduction is recognised (see `reduction`), and any
other body runs through them in order, row by row, on all independent points at once, which is
exactly what the loops would do. Large spaces are cut along their loops to bound memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from fewbit.errors import InterpretError
from fewbit.interpreter.body import Body, body_of, evaluate, loop_indices
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.loop_nest import (
    Box,
    boxes,
    is_projection,
    loop_ranges,
    part,
    used_loops,
    view,
)
from fewbit.interpreter.reduction import (
    Reduction,
    accumulate,
    find_reductions,
    finish,
    start,
)
from fewbit.interpreter.registry import Leave, register
from fewbit.interpreter.values import Value, index_value

LARGEST_MAP = 1 << 22
LARGEST_REDUCTION = 1 << 24
"""Elements of one intermediate array; a part of the space needs a handful of them."""


@register(LinalgStructuredOperation)
def structured(
    frame: Frame, op: LinalgStructuredOperation, operands: Sequence[Value]
) -> Sequence[Value]:
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    count = len(op.inputs)
    return run_nest(frame, maps, op.body.block, operands[:count], operands[count:])


@register(linalg.ReduceOp)
def reduce(frame: Frame, op: linalg.ReduceOp, operands: Sequence[Value]) -> Sequence[Value]:
    source, initial = operands
    reduced = op.dimensions.get_values()
    kept = [AffineDimExpr(loop) for loop in range(source.ndim) if loop not in reduced]
    maps = [AffineMap.identity(source.ndim), AffineMap(source.ndim, 0, tuple(kept))]
    return run_nest(frame, maps, op.region.block, [source], [initial])


@register(linalg.FillOp)
def fill(frame: Frame, op: linalg.FillOp, operands: Sequence[Value]) -> Sequence[Value]:
    scalar, target = operands
    return (np.broadcast_to(scalar.astype(target.dtype), target.shape),)


@register(linalg.TransposeOp)
def transpose(frame: Frame, op: linalg.TransposeOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (operands[0].transpose(op.permutation.get_values()),)


@register(linalg.BroadcastOp)
def broadcast(frame: Frame, op: linalg.BroadcastOp, operands: Sequence[Value]) -> Sequence[Value]:
    source, target = operands
    return (np.broadcast_to(np.expand_dims(source, op.dimensions.get_values()), target.shape),)


@register(linalg.YieldOp)
def yield_(frame: Frame, op: linalg.YieldOp, operands: Sequence[Value]) -> Leave:
    return Leave(tuple(operands))


@register(linalg.IndexOp)
def index(frame: Frame, op: linalg.IndexOp, operands: Sequence[Value]) -> Sequence[Value]:
    """Return the current index of a loop, in a body that runs point by point."""
    return (index_value(frame.points[-1][op.dim.value.data]),)


def run_nest(
    frame: Frame,
    maps: Sequence[AffineMap],
    block: Block,
    inputs: Sequence[Value],
    initials: Sequence[Value],
) -> list[Value]:
    """Run a body over the loops that the maps give, into copies of the initial outputs."""
    ranges = loop_ranges(maps, [np.shape(x) for x in (*inputs, *initials)])
    body = body_of(frame, block)
    if 0 in ranges:
        return [np.array(initial) for initial in initials]
    output_maps = list(maps[len(inputs) :])
    results = [
        np.array(initial) if argument.uses or not _covers(map, initial) else np.empty_like(initial)
        for argument, map, initial in zip(
            block.args[len(inputs) :], output_maps, initials, strict=True
        )
    ]
    nest = Nest(frame, body, ranges, maps, (*inputs, *initials), results)
    if not body.elementwise or not all(is_projection(map) for map in output_maps):
        nest.run_points()
        return results
    shared = set(range(len(ranges))).intersection(*map(used_loops, output_maps))
    ordered = [loop for loop in range(len(ranges)) if loop not in shared]
    reductions = find_reductions(body, block.args[len(inputs) :])
    if not ordered:
        nest.run_at_once()
    elif reductions is not None and all(used_loops(map) == shared for map in output_maps):
        nest.run_reductions(reductions, ordered)
    else:
        nest.run_in_order(ordered)
    return results


def _covers(map: AffineMap, tensor: Value) -> bool:
    """Return whether an output map that is a projection reaches every element."""
    return is_projection(map) and all(
        size == 1
        for expr, size in zip(map.results, tensor.shape, strict=True)
        if isinstance(expr, AffineConstantExpr)
    )


@dataclass
class Nest:
    """One linalg op under way."""

    frame: Frame
    body: Body
    ranges: list[int]
    maps: Sequence[AffineMap]
    operands: Sequence[Value]
    results: list[Value]

    def __post_init__(self) -> None:
        arguments = self.body.block.args
        self.outputs = arguments[len(arguments) - len(self.results) :]
        self.views = {
            argument: view(operand, map, self.ranges)
            for argument, operand, map in zip(arguments, self.operands, self.maps, strict=True)
            if argument.uses
        }
        indices = loop_indices(self.ranges)
        self.views |= {op.result: indices[op.dim.value.data] for op in self.body.indices}

    def write_views(self) -> list[Value]:
        maps = self.maps[len(self.maps) - len(self.results) :]
        return [
            view(result, map, self.ranges, write=True)
            for result, map in zip(self.results, maps, strict=True)
        ]

    def parts(self, box: Box) -> dict[SSAValue, Value]:
        return {value: part(array, box) for value, array in self.views.items()}

    def run_at_once(self) -> None:
        """Run a nest whose points are independent."""
        written = self.write_views()
        for box in boxes(self.ranges, range(len(self.ranges)), math.prod, LARGEST_MAP):
            scope = evaluate(self.frame, self.body, self.parts(box))
            for target, value in zip(written, self.body.yielded, strict=True):
                part(target, box)[...] = scope[value]

    def run_reductions(self, reductions: Sequence[Reduction], summed: Sequence[int]) -> None:
        """Reduce each output over the loops `summed`."""
        skipped = frozenset(op for reduction in reductions for op in reduction.skipped)
        initials = [
            view(operand, map, self.ranges)
            for operand, map in list(zip(self.operands, self.maps, strict=True))[
                -len(self.results) :
            ]
        ]
        written = self.write_views()
        outer = [loop for loop in range(len(self.ranges)) if loop not in summed]
        for box in boxes(self.ranges, outer, self._cost(skipped), LARGEST_REDUCTION):
            totals = self._reduce(reductions, skipped, initials, box, summed)
            for target, total in zip(written, totals, strict=True):
                part(target, box)[...] = total

    def _reduce(
        self,
        reductions: Sequence[Reduction],
        skipped: frozenset[Operation],
        initials: Sequence[Value],
        box: Box,
        summed: Sequence[int],
    ) -> list[Value]:
        totals = [start(r, part(i, box)) for r, i in zip(reductions, initials, strict=True)]
        inner_ranges = [s.stop - s.start for s in box]
        for inner in boxes(inner_ranges, summed, self._cost(skipped), LARGEST_REDUCTION):
            part_box = tuple(
                slice(o.start + i.start, o.start + i.stop) for o, i in zip(box, inner, strict=True)
            )
            scope = evaluate(self.frame, self.body, self.parts(part_box), skipped)
            sizes = [s.stop - s.start for s in part_box]
            totals = [
                accumulate(self.frame, reduction, total, scope, sizes, summed)
                for reduction, total in zip(reductions, totals, strict=True)
            ]
        return [finish(r, total) for r, total in zip(reductions, totals, strict=True)]

    def _cost(self, skipped: frozenset[Operation]) -> Cost:
        """Return the number of elements of the largest array for a part of the space."""
        loops: dict[SSAValue, frozenset[int]] = {
            value: frozenset(loop for loop, size in enumerate(array.shape) if size > 1)
            for value, array in self.views.items()
        }
        for op, _ in self.body.ops:
            if op in skipped:
                continue
            used = frozenset[int]().union(*(loops.get(o, frozenset()) for o in op.operands))
            loops |= dict.fromkeys(op.results, used)
        return Cost(frozenset(loops.values()))

    def run_in_order(self, ordered: Sequence[int]) -> None:
        """Run points that differ in the loops `ordered` one after the other."""
        written = self.write_views()
        outputs = dict(zip(self.outputs, written, strict=True))
        self.views |= {value: array for value, array in outputs.items() if value in self.views}
        box = [slice(0, size) for size in self.ranges]
        for point in product(*(range(self.ranges[loop]) for loop in ordered)):
            for loop, i in zip(ordered, point, strict=True):
                box[loop] = slice(i, i + 1)
            scope = evaluate(self.frame, self.body, self.parts(tuple(box)))
            values = [np.array(scope[value]) for value in self.body.yielded]
            for target, value in zip(written, values, strict=True):
                part(target, tuple(box))[...] = value

    def run_points(self) -> None:
        """Run one point after the other, on scalars."""
        region = self.body.block.parent
        if region is None or any(not target.flags.writeable for target in self.write_views()):
            raise InterpretError("an output map with divisions is not interpreted")
        arrays = [
            view(operand, map, self.ranges)
            for operand, map in zip(self.operands, self.maps, strict=True)
        ]
        written = self.write_views()
        arrays[-len(written) :] = written
        for point in product(*map(range, self.ranges)):
            self.frame.points.append(point)
            values = self.frame.run(region, [array[_at(array, point)] for array in arrays])
            self.frame.points.pop()
            for target, value in zip(written, values, strict=True):
                target[_at(target, point)] = value


def _at(array: Value, point: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i if size > 1 else 0 for i, size in zip(point, array.shape, strict=True))


@dataclass(frozen=True)
class Cost:
    loops: frozenset[frozenset[int]]

    def __call__(self, sizes: list[int]) -> int:
        return max((math.prod(sizes[i] for i in used) for used in self.loops), default=1)
