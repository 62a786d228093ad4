"""What passes ask about calls, callees and effects, alike for `graph` and `func`."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import TypeAlias

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, MemRefType, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute
from xdsl.traits import is_side_effect_free

from fewbit.dialects import graph
from fewbit.ir.symbols import lookup
from fewbit.ir.walk import nested_ops

Call: TypeAlias = graph.CallOp | func.CallOp
Callable: TypeAlias = graph.SubgraphOp | func.FuncOp


def callee_of(call: Call) -> Callable | None:
    callee = lookup(call, call.callee)
    return callee if isinstance(callee, Callable) else None


def callable_around(op: Operation) -> Callable | None:
    """Return the subgraph or function that `op` stands in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, Callable):
        parent = parent.parent_op()
    return parent


def only_block(callee: Callable) -> Block | None:
    """Return the body, where it is a single block."""
    first = callee.body.first_block
    return first if first is callee.body.last_block else None


def symbols_used(
    op: Operation, but: type[Operation] | UnionType | None = None
) -> Iterator[SymbolRefAttr]:
    """Yield the references to symbols by `op` and the ops below it, but for ops of a kind.

    Ops share most of their attributes, types above all: each is looked into once.
    """
    seen: set[int] = set()
    for user in nested_ops(op):
        if but is not None and isinstance(user, but):
            continue
        stack: list[Attribute] = [*user.properties.values(), *user.attributes.values()]
        while stack:
            attribute = stack.pop()
            if id(attribute) in seen:
                continue
            seen.add(id(attribute))
            if isinstance(attribute, SymbolRefAttr):
                yield attribute
            elif isinstance(attribute, ArrayAttr):
                stack.extend(attribute.data)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            elif isinstance(attribute, DictionaryAttr):
                stack.extend(attribute.data.values())
            elif isinstance(attribute, ParametrizedAttribute):
                stack.extend(attribute.parameters)


def is_effect_free(op: Operation) -> bool:
    """Return whether `op` only computes its results; a call does what its callee does."""
    visited: set[Operation] = set()
    stack = [op]
    while stack:
        current = stack.pop()
        if is_side_effect_free(current):
            continue
        if isinstance(current, Call):
            callee = callee_of(current)
            if callee is None or (block := only_block(callee)) is None:
                return False
            if callee not in visited:
                visited.add(callee)
                stack.extend(o for o in block.ops if o is not block.last_op)
        elif _is_linalg_on_tensors(current):
            stack.extend(o for region in current.regions for b in region.blocks for o in b.ops)
        else:
            return False
    return True


def _is_linalg_on_tensors(op: Operation) -> bool:
    """Return whether an op has the effects of its body only, of which xDSL says nothing."""
    if op.dialect_name() != "linalg":
        return False
    return not any(isinstance(operand.type, MemRefType) for operand in op.operands)
