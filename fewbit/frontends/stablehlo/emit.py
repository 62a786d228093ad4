"""Ops of a module as ops of a program.

A value of the source is bound to what is known of it: a constant, a tensor of the program that may
be transposed, or a layer that is still gathering its bias. What a value
needs is written when something asks for it. An op becomes an op of ours where `convert` or `layers`
know one, regions become `scf`, and all else is a call of a function that `islands` lowers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    LocationAttr,
)
from xdsl.dialects.func import CallOp
from xdsl.ir import Block as OutputBlock
from xdsl.ir import Operation, SSAValue

from fewbit.dialects import mico
from fewbit.errors import UnsupportedError
from fewbit.frontends.stablehlo.constants import Constant, fold
from fewbit.frontends.stablehlo.dense import Array, dense_array
from fewbit.frontends.stablehlo.islands import Islands, unsupported_error
from fewbit.frontends.stablehlo.names import Names, layer_of_scope, name_hint
from fewbit.frontends.stablehlo.ops import Block, Module, Op, Value, captured_values
from fewbit.ir.locations import file_location, named_location
from fewbit.passes.graph.fold_constants import make_constant
from fewbit.program.store import WeightStore, sha256_of_tensor

INLINE = 16
"""Elements up to which a constant stands in the text; larger ones are in the store."""


@dataclass(frozen=True)
class Transposed:
    """A tensor of the program: dimension i of the value is dimension order[i] of `tensor`."""

    tensor: SSAValue
    order: tuple[int, ...]

    @staticmethod
    def plain(tensor: SSAValue, rank: int) -> Transposed:
        return Transposed(tensor, tuple(range(rank)))

    @property
    def is_plain(self) -> bool:
        return self.order == tuple(range(len(self.order)))

    def then(self, order: Sequence[int]) -> Transposed:
        return Transposed(self.tensor, tuple(self.order[d] for d in order))


class Pending:
    """A layer that is written once nothing more can be taken into it."""

    def finish(self, emitter: Emitter) -> Transposed:
        raise NotImplementedError


Bound = Constant | Transposed | Pending
"""What is known of a value."""


@dataclass
class Output:
    """What all blocks of one import write to."""

    module: Module
    islands: Islands = field(default_factory=Islands)
    store: WeightStore = field(default_factory=WeightStore)
    constants: list[mico.ConstantOp] = field(default_factory=list[mico.ConstantOp])
    names: Names = field(default_factory=Names)
    stored: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    calls: list[str] = field(default_factory=list[str])
    """Functions that are being written, the innermost last."""


class Emitter:
    """Writes one block."""

    def __init__(self, output: Output, block: OutputBlock, around: Emitter | None = None) -> None:
        self.output = output
        self.block = block
        self.around = around
        self.op: Op | None = None
        self._bound: dict[Value, Bound] = {}
        self._read: dict[str, SSAValue] = {}
        self._plain: dict[Transposed, SSAValue] = {}

    def within(self, block: OutputBlock) -> Emitter:
        """Writes a block of a region in this one."""
        return Emitter(self.output, block, self)

    def bind(self, value: Value, bound: Bound) -> None:
        self._bound[value] = bound

    def bound(self, value: Value) -> Bound:
        if value in self._bound:
            return self._bound[value]
        assert self.around is not None
        outer = self.around.bound(value)
        # What the block around has not written yet must not be written again and again in here.
        return self.around.transposed(value) if isinstance(outer, Pending) else outer

    def constant(self, value: Value) -> Constant | None:
        bound = self.bound(value)
        return bound if isinstance(bound, Constant) else None

    def transposed(self, value: Value) -> Transposed:
        """The value as a tensor in some order of dimensions."""
        bound = self.bound(value)
        if isinstance(bound, Constant):
            return Transposed.plain(self.write_constant(bound), value.tensor.rank)
        if isinstance(bound, Pending):
            bound = bound.finish(self)
            self._bound[value] = bound
        return bound

    def value(self, value: Value, order: Sequence[int] | None = None) -> SSAValue:
        """The value as a tensor, its dimensions in the order that is asked for."""
        bound = self.bound(value)
        if isinstance(bound, Constant):
            return self.write_constant(bound if order is None else bound.transpose(order))
        if value not in self._bound and self.around is not None:
            return self.around.value(value, order)
        transposed = self.transposed(value)
        return self.plain(transposed if order is None else transposed.then(order))

    def plain(self, transposed: Transposed) -> SSAValue:
        if transposed.is_plain:
            return transposed.tensor
        if transposed not in self._plain:
            transpose = mico.TransposeOp.of(transposed.tensor, permutation=transposed.order)
            self._plain[transposed] = self.add(transpose).results[0]
        return self._plain[transposed]

    def add(self, op: Operation) -> Operation:
        if self.op is not None:
            op.location = location_of(self.op)
        self.block.add_op(op)
        return op

    def write_constant(self, constant: Constant, name: str | None = None) -> SSAValue:
        """A constant as a value: in the text where it is small or a splat, else in the store."""
        type = constant.type.signless()
        splat = constant.splat
        if name is None and (splat is not None or constant.type.size <= INLINE):
            data = make_constant(_signed(constant.array), type)
            return self.add(arith.ConstantOp(data)).results[0]
        symbol = self._store_constant(constant, name or constant.name or "constant")
        if symbol not in self._read:
            read = mico.GetConstantOp(symbol, type)
            read.result.name_hint = name_hint(symbol.rpartition(".")[2])
            self._read[symbol] = self.add(read).results[0]
        return self._read[symbol]

    def _store_constant(self, constant: Constant, wanted: str) -> str:
        array = np.ascontiguousarray(_signed(constant.array)).reshape(constant.type.shape)
        key = (wanted, sha256_of_tensor(array))
        if key not in self.output.stored:
            name = self.output.names.take(wanted)
            ref = self.output.store.add(name, array, copy=False)
            type = constant.type.signless()
            constant_op = mico.ConstantOp(name, type, mico.RefAttr(ref.key, ref.sha256))
            self.output.constants.append(constant_op)
            self.output.stored[key] = name
        return self.output.stored[key]

    def emit_block(self, block: Block) -> list[Bound]:
        """Write the ops of a block; what it returns."""
        for op in block.ops[:-1]:
            self.emit(op)
        return [self.bound(value) for value in block.returned]

    def emit(self, op: Op) -> None:
        self.op = op
        for result, bound in zip(op.results, self._emit_op(op), strict=True):
            self.bind(result, bound)
            if isinstance(bound, Transposed) and bound.tensor.name_hint is None:
                bound.tensor.name_hint = op.kind

    def _emit_op(self, op: Op) -> Sequence[Bound]:
        from fewbit.frontends.stablehlo.control_flow import emit_control_flow
        from fewbit.frontends.stablehlo.convert import convert
        from fewbit.frontends.stablehlo.expand import expand

        if op.kind == "constant":
            return [Constant.of(dense_array(op.attributes["value"], self.output.module.resources))]
        if op.kind in ("call", "composite"):
            return self._inline_call(op)
        if op.results and all(_is_empty(result) for result in op.results):
            types = [result.tensor for result in op.results]
            return [Constant.of(np.zeros(type.shape, type.dtype)) for type in types]
        constants = [self.constant(operand) for operand in op.operands]
        known = [constant for constant in constants if constant is not None]
        folded = fold(op, known) if len(known) == len(constants) else None
        if folded is not None:
            return [folded]
        for way in (emit_control_flow, convert, expand):
            bound = way(self, op)
            if bound is not None:
                return bound
        return self.island(op)

    def _inline_call(self, op: Op) -> list[Bound]:
        name = op.symbol("callee" if op.kind == "call" else "decomposition")
        function = self.output.module.functions.get(name)
        if function is None:
            raise UnsupportedError(f"the function '{name}' is called, but not defined")
        if name in self.output.calls:
            raise UnsupportedError(f"the function '{name}' calls itself")
        self.output.calls.append(name)
        # A body may be written several times: each time its values are bound anew.
        for argument, operand in zip(function.body.arguments, op.operands, strict=True):
            bound = self.bound(operand)
            alone = operand.uses == 1 and argument.uses == 1
            self.bind(
                argument,
                bound if alone or not isinstance(bound, Pending) else self.transposed(operand),
            )
        results = self.emit_block(function.body)
        self.output.calls.pop()
        return results

    def island(self, op: Op) -> Sequence[Transposed]:
        """A call of a function that computes the op."""
        given = list(dict.fromkeys([*op.operands, *captured_values(op)]))
        if any(isinstance(value.type, str) for value in (*given, *op.results)):
            raise unsupported_error([op])
        constants = [self._inline(operand) for operand in given]
        name = self.output.islands.name_of(op, list(zip(given, constants, strict=True)))
        arguments = [
            self.value(operand)
            for operand, constant in zip(given, constants, strict=True)
            if constant is None
        ]
        types = [result.tensor.signless() for result in op.results]
        call = self.add(CallOp(name, arguments, types))
        return [
            Transposed.plain(tensor, result.tensor.rank)
            for tensor, result in zip(call.results, op.results, strict=True)
        ]

    def _inline(self, operand: Value) -> Constant | None:
        """A constant that stands in the island."""
        constant = self.constant(operand)
        if constant is None or (constant.splat is None and constant.type.size > INLINE):
            return None
        return constant


def _signed(array: Array) -> Array:
    """The same bits as integers with a sign, which programs have."""
    if array.dtype.kind != "u":
        return array
    return np.ascontiguousarray(array).reshape(array.shape).view(f"i{array.dtype.itemsize}")


def _is_empty(value: Value) -> bool:
    return not isinstance(value.type, str) and value.type.size == 0


def location_of(op: Op) -> LocationAttr:
    """The scope around the line of the user's code."""
    file, line = op.source.file, op.source.line
    inner: LocationAttr = UNKNOWN_LOC
    if file is not None and line is not None:
        inner = file_location(file, line, 1)
    scope = layer_of_scope(op.source.path)
    return named_location(scope, inner) if scope else inner
