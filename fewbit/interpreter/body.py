"""Bodies that compute one element: of a linalg op, a padding, a generated tensor.

Where every op in a body is elementwise, the body runs once, on arrays in the place of scalars:
each value is an array that broadcasts over the iteration space, and has size 1 along the loops
that it does not depend on. Otherwise (control flow in the body, say) it runs point by point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from xdsl.dialects.linalg.ops import IndexOp
from xdsl.ir import Block, Operation, SSAValue

from fewbit.errors import InterpretError
from fewbit.interpreter.interpreter import Frame, entry_of
from fewbit.interpreter.registry import Entry, Jump, Leave
from fewbit.interpreter.values import Value, index_value


@dataclass(frozen=True)
class Body:
    """The ops of a body that compute, in order, and the values that it yields."""

    block: Block
    ops: tuple[tuple[Operation, Entry], ...]
    indices: tuple[IndexOp, ...]
    yielded: tuple[SSAValue, ...]
    elementwise: bool


def body_of(frame: Frame, block: Block) -> Body:
    bodies = frame.interpreter.bodies
    if block not in bodies:
        bodies[block] = _plan(block)
    return bodies[block]


def _plan(block: Block) -> Body:
    last = block.last_op
    if last is None or block.next_block is not None:
        raise InterpretError("the body of an op must be one block with a terminator")
    ops = [(op, entry_of(op)) for op in block.ops if op is not last]
    computing = tuple((op, entry) for op, entry in ops if not isinstance(op, IndexOp))
    return Body(
        block,
        computing,
        tuple(op for op, _ in ops if isinstance(op, IndexOp)),
        tuple(last.operands),
        all(entry.elementwise and not op.regions for op, entry in computing),
    )


class Scope:
    """The values inside a body; values around it are the frame's."""

    def __init__(self, frame: Frame, values: Mapping[SSAValue, Value]) -> None:
        self.frame = frame
        self.inner = dict(values)

    def __getitem__(self, value: SSAValue) -> Value:
        return self.inner[value] if value in self.inner else self.frame[value]


def evaluate(
    frame: Frame,
    body: Body,
    values: Mapping[SSAValue, Value],
    skipped: frozenset[Operation] = frozenset(),
) -> Scope:
    """Run an elementwise body on arrays; ops in `skipped` and what they need are left out."""
    scope = Scope(frame, values)
    for op, entry in body.ops:
        if op in skipped:
            continue
        outcome = frame.evaluate(op, entry, [scope[operand] for operand in op.operands])
        if isinstance(outcome, Leave | Jump):
            raise InterpretError("a body must not branch")
        scope.inner.update(zip(op.results, outcome, strict=True))
    return scope


def loop_indices(ranges: Sequence[int]) -> list[Value]:
    """Return the index of each loop, as an array along that loop."""
    rank = len(ranges)
    return [
        np.arange(size, dtype=np.int64).reshape([-1 if d == loop else 1 for d in range(rank)])
        for loop, size in enumerate(ranges)
    ]


def over_indices(frame: Frame, block: Block, shape: Sequence[int]) -> Value:
    """Return what a body yields for every index, whose coordinates are the body's arguments."""
    body = body_of(frame, block)
    if body.elementwise:
        scope = evaluate(frame, body, dict(zip(block.args, loop_indices(shape), strict=True)))
        return np.broadcast_to(scope[body.yielded[0]], tuple(shape))
    region = block.parent
    if region is None:
        raise InterpretError("a body must be in a region")
    points = [
        frame.run(region, [index_value(i) for i in point])[0]
        for point in product(*map(range, shape))
    ]
    return np.array(points).reshape(tuple(shape))
