"""SSA dominance: a value is used only where it has been defined.

xDSL does not check this. Every op gets its pre-order number, so that the ops in which a value
is visible are an interval: from after its definition to the end of its block. That answers
nearly every use with two comparisons. Only a use that fails them in a region of several blocks
asks the dominator tree. As in MLIR, nothing is asked of code that cannot be reached, and a value
from outside an `IsolatedFromAbove` op is not visible inside it.
"""

from __future__ import annotations

from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.ir.post_order import PostOrderIterator
from xdsl.traits import IsolatedFromAbove

from fewbit.errors import VerifyError
from fewbit.ir.locations import place_of
from fewbit.ir.walk import nested_ops


def immediate_dominators(region: Region) -> dict[Block, Block]:
    """Return the immediate dominator of every reachable block; the entry block is its own.

    Walks up the tree by reverse post-order numbers until nothing changes (Cooper, Harvey and
    Kennedy, "A Simple, Fast Dominance Algorithm").
    """
    entry = region.first_block
    if entry is None:
        return {}
    blocks = list(PostOrderIterator(entry))
    blocks.reverse()
    number = {block: i for i, block in enumerate(blocks)}
    predecessors = [[number[p] for p in block.predecessors() if p in number] for block in blocks]
    unknown = len(blocks)
    idom = [0] + [unknown] * (len(blocks) - 1)

    def meet(a: int, b: int) -> int:
        while a != b:
            if a > b:
                a = idom[a]
            else:
                b = idom[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in range(1, len(blocks)):
            nearest = unknown
            for predecessor in predecessors[block]:
                if idom[predecessor] == unknown:
                    continue
                nearest = predecessor if nearest == unknown else meet(predecessor, nearest)
            if nearest != idom[block]:
                idom[block] = nearest
                changed = True
    return {block: blocks[idom[i]] for i, block in enumerate(blocks)}


class _Visibility:
    """Where values are visible below a root, by pre-order number."""

    def __init__(self, root: Operation) -> None:
        self.ops = list(nested_ops(root))
        self._number = {op: i for i, op in enumerate(self.ops)}
        self._end = list(range(len(self.ops)))
        """By op, the number of the last op below it."""
        self._scope = [-1] * len(self.ops)
        """By op, the number of the innermost isolated op around it."""
        self._idoms: dict[Region, dict[Block, Block]] = {}

        parents = [-1] + [self._number_of_parent(op) for op in self.ops[1:]]
        for i, parent in enumerate(parents):
            self._scope[i] = self._scope_inside(parent) if parent >= 0 else -1
        for i in range(len(self.ops) - 1, 0, -1):
            self._end[parents[i]] = max(self._end[parents[i]], self._end[i])

    def _number_of_parent(self, op: Operation) -> int:
        parent = op.parent_op()
        assert parent is not None
        return self._number[parent]

    def _scope_inside(self, number: int) -> int:
        op = self.ops[number]
        isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
        return number if isolated else self._scope[number]

    def complaint(self, user: Operation, value: SSAValue) -> str | None:
        """Return what is wrong with this use, if anything is."""
        at = self._number[user]
        if isinstance(value, OpResult):
            definition = self._number.get(value.op)
            if definition is None:
                return "is defined by an op that is not in the module"
            block = value.op.parent
            scope = self._scope[definition]
            start = self._end[definition] + 1
        else:
            assert isinstance(value, BlockArgument)
            block = value.block
            parent = block.parent_op()
            if parent is None or parent not in self._number:
                return "is an argument of a block that is not in the module"
            scope = self._scope_inside(self._number[parent])
            start = self._number[block.first_op] if block.first_op is not None else len(self.ops)

        if block is None:
            return "is a result of the root itself"
        if scope != self._scope[at]:
            isolated = self.ops[self._scope[at]].name
            return f"is defined outside of the '{isolated}' around this op, which is isolated"
        last = block.last_op
        if last is not None and start <= at <= self._end[self._number[last]]:
            return None
        return self._complaint_across_blocks(user, block)

    def _complaint_across_blocks(self, user: Operation, block: Block) -> str | None:
        region = block.parent
        assert region is not None
        user_block = user.parent
        while user_block is not None and user_block.parent is not region:
            user_block = user_block.parent_block()
        if user_block is None:
            return "is defined in a region that does not contain this op"
        if region.first_block is region.last_block:
            return "is used before it is defined"

        idoms = self._idoms.get(region)
        if idoms is None:
            idoms = self._idoms[region] = immediate_dominators(region)
        if user_block not in idoms:
            return None
        if user_block is block:
            return "is used before it is defined"
        while (dominator := idoms[user_block]) is not user_block:
            if dominator is block:
                return None
            user_block = dominator
        return "is defined in a block that does not dominate this one"


def _describe(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "a value"


def _where(value: SSAValue) -> str | None:
    if not isinstance(value, OpResult):
        return None
    place = place_of(value.op)
    return f"it is defined by {place}" if place else None


def check_dominance(root: Operation) -> None:
    """Raise `VerifyError` at the first op below `root` that uses a value it cannot see."""
    visibility = _Visibility(root)
    for user in visibility.ops:
        for index, value in enumerate(user.operands):
            complaint = visibility.complaint(user, value)
            if complaint is None:
                continue
            raise VerifyError(
                f"operand {index}: {_describe(value)} {complaint}",
                place=place_of(user),
                hint=_where(value),
            )
