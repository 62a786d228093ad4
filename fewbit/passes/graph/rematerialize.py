"""Which values are computed again where they are needed: constants, sizes, what follows of them.

A scalar that is read from an argument counts as a size, such as the position of a token.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import tensor
from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from fewbit.ir.walk import nested_ops
from fewbit.passes.graph.calls import Call, is_effect_free


class Rematerialized:
    """Tells whether an op is computed again in each part, and remembers it.

    Arguments decide, too: ask another one after ops were inlined.
    """

    def __init__(self) -> None:
        self._known: dict[Operation, bool] = {}

    def __contains__(self, op: Operation) -> bool:
        if op not in self._known:
            self._known[op] = self._decide(op)
        return self._known[op]

    def _decide(self, op: Operation) -> bool:
        if isinstance(op, tensor.DimOp | tensor.EmptyOp):
            return True
        is_end = op.has_trait(IsTerminator, value_if_unregistered=False)
        if is_end or isinstance(op, Call) or not is_effect_free(op):
            return False
        if isinstance(op, tensor.ExtractOp):
            return isinstance(op.tensor.owner, Block)
        if not op.regions and not touches_tensors(op):
            return True
        owners = [value.owner for value in outside_operands(op)]
        return all(isinstance(owner, Operation) and owner in self for owner in owners)


def touches_tensors(op: Operation) -> bool:
    return any(isinstance(value.type, ShapedType) for value in (*op.operands, *op.results))


def outside_operands(root: Operation) -> Iterator[SSAValue]:
    """Yield what an op uses, itself or in its regions, that is defined outside of it."""
    if not root.regions:
        yield from root.operands
        return
    for op in nested_ops(root):
        for value in op.operands:
            around = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
            if around is None or not root.is_ancestor(around):
                yield value
