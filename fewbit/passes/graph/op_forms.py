"""What an op does, as a number: equal for ops that differ in nothing but the values they are given.

Operands count by their types, and by their numbers where they are constants of the text; weights,
which the module names, count by their types alone. Regions count with all that is in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from fewbit.dialects.mico import GetConstantOp


def is_leaf(op: Operation | Block) -> bool:
    """Return whether an op is a constant, which has no place of its own among others."""
    return isinstance(op, arith.ConstantOp | GetConstantOp)


class FormTable:
    """Numbers of forms, and what ops read of what is around them."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._outside: dict[Operation, list[SSAValue]] = {}

    def number(self, op: Operation) -> int:
        outside: list[SSAValue] = []
        form = _form(op, {}, outside)
        self._outside[op] = outside
        return self._numbers.setdefault(form, len(self._numbers))

    def outside(self, op: Operation) -> Sequence[SSAValue]:
        """Return what an op reads, in its regions too, that is not made in it."""
        return self._outside[op]


def _form(op: Operation, inside: dict[SSAValue, int], outside: list[SSAValue]) -> Any:
    operands: list[Any] = []
    for value in op.operands:
        if value in inside:
            operands.append(inside[value])
            continue
        outside.append(value)
        number = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
        operands.append((value.type, number))
    regions = tuple(
        tuple(_block_form(block, inside, outside) for block in region.blocks)
        for region in op.regions
    )
    properties = tuple(sorted(op.properties.items(), key=_name))
    attributes = tuple(sorted(op.attributes.items(), key=_name))
    return op.name, tuple(operands), tuple(op.result_types), properties, attributes, regions


def _block_form(block: Block, inside: dict[SSAValue, int], outside: list[SSAValue]) -> Any:
    ops: list[Any] = []
    for argument in block.args:
        inside[argument] = len(inside)
    for op in block.ops:
        ops.append(_form(op, inside, outside))
        for result in op.results:
            inside[result] = len(inside)
    return tuple(a.type for a in block.args), tuple(ops)


def _name(item: tuple[str, Any]) -> str:
    return item[0]
