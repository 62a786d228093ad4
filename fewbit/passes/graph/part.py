"""A part of a split program, its body, and the transfers around it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IndexType, ShapedType, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from fewbit.dialects.graph import ReturnOp, SubgraphOp, TransferOp
from fewbit.dialects.mico import element_type
from fewbit.ir.locations import named_location
from fewbit.ir.walk import nested_ops
from fewbit.passes.graph.rematerialize import outside_operands

DEVICE = "graph.device"
"""The attribute of an op that was inlined from a subgraph on this device."""


@dataclass
class Part:
    """Ops of one device, what they take from outside, and what of theirs is used there."""

    device: str
    ops: list[Operation] = field(default_factory=list[Operation])
    inputs: list[SSAValue] = field(default_factory=list[SSAValue])
    outputs: list[SSAValue] = field(default_factory=list[SSAValue])

    def body(self, remade: Collection[Operation]) -> Block:
        """Move the ops into a block of their own, with copies of constants and sizes."""
        return _Body(self, remade).build()


def make_subgraph(name: str, part: Part, body: Block) -> SubgraphOp:
    last = body.last_op
    assert last is not None
    types = (list(body.arg_types), [value.type for value in last.operands])
    subgraph = SubgraphOp(name, types, Region(body), part.device)
    subgraph.location = named_location(name)
    return subgraph


class _Body:
    def __init__(self, part: Part, remade: Collection[Operation]) -> None:
        self.part, self.remade = part, remade
        self.block = Block(arg_types=list(map(_port_type, part.inputs)))
        self.values: dict[SSAValue, SSAValue] = {}

    def build(self) -> Block:
        for outer, argument in zip(self.part.inputs, self.block.args, strict=True):
            argument.name_hint = outer.name_hint
            self.values[outer] = self._unbox(argument, outer.type)
        for op in self.part.ops:
            for value in outside_operands(op):
                self._fetch(value)
            op.detach()
            self.block.add_op(op)
            for user in nested_ops(op):
                user.operands = [self.values.get(value, value) for value in user.operands]
        for op in self.block.ops:
            op.attributes.pop(DEVICE, None)
        self.block.add_op(ReturnOp(*map(self._box, self.part.outputs)))
        return self.block

    def _fetch(self, value: SSAValue) -> None:
        """Copy the constant or size that a value is, if it is one, with what it is made of."""
        owner = value.owner
        if value in self.values or not isinstance(owner, Operation) or owner not in self.remade:
            return
        for needed in outside_operands(owner):
            self._fetch(needed)
        self.block.add_op(owner.clone(self.values))

    def _box(self, value: SSAValue) -> SSAValue:
        """Return a scalar as a tensor, as it passes from part to part."""
        if isinstance(value.type, ShapedType):
            return value
        if isinstance(value.type, IndexType):
            value = self._add(arith.IndexCastOp(value, i64))
        return self._add(
            tensor.FromElementsOp.build(
                operands=[[value]], result_types=[TensorType(value.type, [])]
            )
        )

    def _unbox(self, argument: SSAValue, type: Attribute) -> SSAValue:
        if argument.type == type:
            return argument
        scalar = self._add(tensor.ExtractOp(argument, [], element_type(argument.type)))
        return self._add(arith.IndexCastOp(scalar, type)) if scalar.type != type else scalar

    def _add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]


def _port_type(value: SSAValue) -> Attribute:
    """Return as what a value passes: scalars that a part gives are tensors outside of it."""
    type = value.type
    if isinstance(type, ShapedType) or isinstance(value.owner, Block):
        return type
    return TensorType(i64 if isinstance(type, IndexType) else type, [])


@dataclass
class Transfers:
    """Transfers in a block, each made once, right behind what it transfers."""

    block: Block
    known: dict[tuple[SSAValue, str], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, str], SSAValue]
    )
    last: dict[Operation | Block, Operation] = field(
        default_factory=dict[Operation | Block, Operation]
    )
    """By definition, the last transfer behind it."""

    def to(self, device: str, value: SSAValue, home: str) -> SSAValue:
        """Return a value as it is on a device."""
        if home == device:
            return value
        if (value, device) not in self.known:
            transfer = TransferOp(value, home, device)
            transfer.result.name_hint = value.name_hint
            self._insert(transfer, value.owner)
            self.known[value, device] = transfer.result
        return self.known[value, device]

    def _insert(self, transfer: TransferOp, definition: Operation | Block) -> None:
        before = self.last.get(definition, definition)
        self.last[definition] = transfer
        if isinstance(before, Operation):
            self.block.insert_op_after(transfer, before)
            return
        assert self.block.first_op is not None
        self.block.insert_op_before(transfer, self.block.first_op)
