"""Evaluate what depends on weights alone, and keep the outcome as a weight.

`fold-constants` works on the text of a module and keeps it small; here the weights themselves take
part, so this is a function of a program and not a pass of a module. Transposed weights, folded
batch norms and unpacked integers are made once, when a program is compiled, instead of at each run.
Only what other ops still read is kept. A result much larger than what it is made of, such as a
weight that is broadcast, is left to be computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import cast

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.dialects.mico import ConstantOp, GetConstantOp, RefAttr, element_width
from fewbit.interpreter import evaluate_op
from fewbit.interpreter.constants import read_constant
from fewbit.interpreter.mico.constants import constant_value
from fewbit.interpreter.values import Value, dtype_of, shape_of
from fewbit.ir.symbols import SymbolTable, using
from fewbit.ir.walk import nested_ops
from fewbit.program import Program
from fewbit.store import WeightStore
from fewbit.transforms.calls import is_effect_free, symbols_used

GROWTH = 8
"""How many times larger than what it is made of a result may be: one bit becomes a byte."""
SMALL = 4096
"""Bytes of a result that is kept whatever it is made of."""


def fold_weights(program: Program) -> Program:
    """The program with all that depends on weights alone computed."""
    module = program.module.clone()
    store = WeightStore()
    store.merge(program.store)
    folded = Program(module, store, program.recipe)
    with using(SymbolTable(module)):
        _Folding(folded).run()
    return folded


class _Folding:
    def __init__(self, program: Program) -> None:
        self.module = program.module
        self.store = program.store
        self.names = set(SymbolTable(program.module))
        self.known: set[SSAValue] = set()
        """Values that depend on constants alone."""
        self.weights: set[SSAValue] = set()
        """Those of them in which a weight takes part."""
        self.values: dict[SSAValue, Value] = {}

    def run(self) -> None:
        ops = list(self.module.walk())
        for op in ops:
            if isinstance(op, GetConstantOp | arith.ConstantOp) or self._is_foldable(op):
                self._note(op)
        for op in ops:
            for result in op.results:
                if self._is_outcome(result):
                    self._keep(result)
            self._forget(op)
        self._sweep(ops)

    def _note(self, op: Operation) -> None:
        self.known.update(op.results)
        if isinstance(op, GetConstantOp) or any(v in self.weights for v in op.operands):
            self.weights.update(op.results)

    def _is_foldable(self, op: Operation) -> bool:
        if not op.results or not op.operands or not is_effect_free(op):
            return False
        if any(True for _ in symbols_used(op)) or not _is_closed(op):
            return False
        if not all(v in self.known or _is_blank(v, op) for v in op.operands):
            return False
        made, used = _bytes(op.results), _bytes(op.operands)
        return made is not None and used is not None and made <= max(SMALL, GROWTH * used)

    def _is_outcome(self, value: SSAValue) -> bool:
        """Whether a value was computed of weights, and something else than a fold reads it."""
        if value not in self.weights or isinstance(value.owner, GetConstantOp):
            return False
        if element_width(value.type) is not None:
            # A constant of few-bit integers would need a scale; they fold once they are bytes.
            return False
        readers = [use.operation for use in value.uses]
        return isinstance(value.type, TensorType) and any(
            not reader.results or reader.results[0] not in self.known for reader in readers
        )

    def _keep(self, value: SSAValue) -> None:
        op = cast(Operation, value.owner)
        name = self._fresh_name(value)
        reference = self.store.add(name, self._evaluate(value))
        type = cast("TensorType[Attribute]", value.type)
        constant = ConstantOp(name, type, RefAttr(reference.key, reference.sha256))
        read = GetConstantOp(name, type)
        constant.location = read.location = op.location
        Rewriter.insert_op(constant, InsertPoint.at_start(self.module.body.block))
        Rewriter.insert_op(read, InsertPoint.after(op))
        read.result.name_hint = value.name_hint
        value.replace_all_uses_with(read.result)
        self.known.add(read.result)

    def _fresh_name(self, value: SSAValue) -> str:
        base = next(self._sources(value), "folded")
        number = 0
        while (name := f"{base}.folded{number}") in self.names:
            number += 1
        self.names.add(name)
        return name

    def _sources(self, value: SSAValue) -> Iterator[str]:
        owner = value.owner
        if isinstance(owner, GetConstantOp):
            yield owner.symbol.root_reference.data
        elif isinstance(owner, Operation):
            for operand in owner.operands:
                if operand in self.weights:
                    yield from self._sources(operand)

    def _evaluate(self, value: SSAValue) -> Value:
        if value in self.values:
            return self.values[value]
        op = cast(Operation, value.owner)
        if isinstance(op, GetConstantOp):
            made = [constant_value(op.constant, self.store)]
        elif isinstance(op, arith.ConstantOp):
            made = [read_constant(op.value, op.result.type)]
        else:
            made = list(evaluate_op(op, [self._evaluate(v) for v in op.operands]))
        self.values.update(zip(op.results, made, strict=True))
        return self.values[value]

    def _forget(self, op: Operation) -> None:
        """What no later fold reads need not stay in memory."""
        for operand in op.operands:
            self.values.pop(operand, None)

    def _sweep(self, ops: list[Operation]) -> None:
        """Remove what was folded, users first, then constants that nothing reads any more."""
        for op in reversed(ops):
            if op.results and op.results[0] in self.known and not any(r.uses for r in op.results):
                Rewriter.erase_op(op)
        read = {
            op.symbol.root_reference.data
            for op in self.module.walk()
            if isinstance(op, GetConstantOp)
        }
        constants = [op for op in self.module.body.block.ops if isinstance(op, ConstantOp)]
        # A constant of few-bit integers names its scale, which is then kept with it.
        for op in constants:
            if op.sym_name.data in read:
                named = (name for name in (op.scale, op.zero_point) if name is not None)
                read |= {name.root_reference.data for name in named}
        for op in constants:
            if op.sym_name.data not in read:
                Rewriter.erase_op(op)


def _is_closed(op: Operation) -> bool:
    """Whether the op's regions use only what is defined in them."""
    inner = [user for user in nested_ops(op) if user is not op]
    return all(
        op.is_ancestor(value.owner) and value.owner is not op
        for user in inner
        for value in user.operands
    )


def _is_blank(value: SSAValue, op: Operation) -> bool:
    return isinstance(value.owner, tensor.EmptyOp) and op.dialect_name() == "linalg"


def _bytes(values: object) -> int | None:
    """Bytes of values in memory; None where a size is known only at run time."""
    total = 0
    for value in cast("tuple[SSAValue, ...]", values):
        shape = shape_of(value.type)
        if shape is None or None in shape:
            return None
        total += prod(cast("tuple[int, ...]", shape)) * dtype_of(value.type).itemsize
    return total
