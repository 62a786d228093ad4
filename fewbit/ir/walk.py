"""Visiting every op below a root, in a way that is safe to mutate under.

The walk sees the ops that were there when it began. Ops that a callback inserts are not
visited; ops that it erases or detaches, alone or with a parent, are not visited either; ops
that it moves elsewhere below the root still are. So a walk ends whatever its callback does,
and a callback may do anything to the tree. A pass that wants to see its own output again uses
`fewbit.ir.rewrite`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any, TypeVar, overload

from xdsl.ir import Operation

OpT = TypeVar("OpT", bound=Operation)


class Walk(Enum):
    """What a callback asks for; returning nothing is `ADVANCE`."""

    ADVANCE = auto()
    """Go on."""
    SKIP = auto()
    """Leave out the ops below this one. Without effect in post-order: they were visited."""
    STOP = auto()
    """End the walk."""


class Order(Enum):
    PRE = auto()
    """An op before the ops in its regions."""
    POST = auto()
    """An op after the ops in its regions."""


def nested_ops(root: Operation) -> Iterator[Operation]:
    """Yield the root and every op below it in pre-order; iterative, so any depth will do.

    The tree must not change while this runs: to change it, use `walk`.
    """
    stack = [root]
    while stack:
        op = stack.pop()
        yield op
        for region in reversed(op.regions):
            for block in reversed(region.blocks):
                stack.extend(reversed(block.ops))


def _post_order(root: Operation) -> list[Operation]:
    """Return the ops in post-order: the reverse of a pre-order with children last to first."""
    ops: list[Operation] = []
    stack = [root]
    while stack:
        op = stack.pop()
        ops.append(op)
        for region in op.regions:
            for block in region.blocks:
                stack.extend(block.ops)
    ops.reverse()
    return ops


def _is_visible(op: Operation, root: Operation, skipped: set[Operation]) -> bool:
    """Return whether `op` is still below `root`, with no skipped op on the way."""
    ancestor: Operation | None = op
    while ancestor is not root:
        ancestor = ancestor.parent_op()
        if ancestor is None or ancestor in skipped:
            return False
    return True


@overload
def walk(
    root: Operation,
    visit: Callable[[Operation], Walk | None],
    *,
    order: Order = Order.PRE,
) -> Walk: ...


@overload
def walk(
    root: Operation,
    visit: Callable[[OpT], Walk | None],
    *,
    order: Order = Order.PRE,
    of: type[OpT],
) -> Walk: ...


def walk(
    root: Operation,
    visit: Callable[[Any], Walk | None],
    *,
    order: Order = Order.PRE,
    of: type[Operation] | None = None,
) -> Walk:
    """Call `visit` on the root and on every op below it, or on those of class `of`.

    Returns `STOP` when the callback did, else `ADVANCE`.
    """
    ops = list(nested_ops(root)) if order is Order.PRE else _post_order(root)
    skipped: set[Operation] = set()
    for op in ops:
        if of is not None and not isinstance(op, of):
            continue
        if not _is_visible(op, root, skipped):
            continue
        result = visit(op)
        if result is Walk.STOP:
            return Walk.STOP
        if result is Walk.SKIP and order is Order.PRE:
            skipped.add(op)
    return Walk.ADVANCE
