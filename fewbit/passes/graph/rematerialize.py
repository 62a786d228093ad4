"""Which values are computed again where they are needed, and pass from no part to another.

These are constants, sizes, single integers that are given, such as the position of a token, and all
that is computed from these alone, but for layers: masks, and rows of tables. They are cheap, and a
size that depends on a given number can be known where it is computed only.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType, IntegerType, ShapedType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from fewbit.dialects.mico import element_type, shape_of
from fewbit.ir.layers import Layer
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
        if is_end or isinstance(op, Call | Layer) or not is_effect_free(op):
            return False
        if isinstance(op, tensor.ExtractOp) and isinstance(op.tensor.owner, Block):
            return True
        if not op.regions and not touches_tensors(op):
            return True
        return all(map(self._is_cheap, outside_operands(op)))

    def _is_cheap(self, value: SSAValue) -> bool:
        owner = value.owner
        return owner in self if isinstance(owner, Operation) else _is_integer(value)


def _is_integer(value: SSAValue) -> bool:
    """Return whether a value is one integer, by itself or in a tensor."""
    is_one = all(size == 1 for size in shape_of(value.type))
    return is_one and isinstance(element_type(value.type), IntegerType | IndexType)


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
