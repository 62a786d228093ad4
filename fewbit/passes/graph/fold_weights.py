"""Evaluate what depends on weights alone, and keep the outcome as a weight.

`fold-constants` works on the text of a module and keeps it small; here the weights themselves take
part, which the context brings. Transposed weights, folded batch norms and unpacked integers are
computed once, when a program is compiled, instead of at each run. Only what other ops still read is
kept. A result much larger than its operands, such as a broadcast weight, is left to be computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fewbit.dialects.mico import ConstantOp, GetConstantOp, element_width
from fewbit.interpreter import evaluate_op
from fewbit.interpreter.constants import read_constant
from fewbit.interpreter.values import Value, dtype_of
from fewbit.ir.symbols import using
from fewbit.passes.graph.changed_weights import ChangedWeights
from fewbit.passes.graph.fold_constants import (
    bytes_of,
    has_known_size,
    is_blank_output,
    is_function_of_operands,
)
from fewbit.pipeline.context import compile_context
from fewbit.program.derived import Derivation
from fewbit.program.program import Program
from fewbit.program.repeats import count_of

GROWTH = 8
"""How many times larger than its operands a result may be: one bit becomes a byte."""
SMALL = 4096
"""Bytes of a result that is kept whatever the size of its operands."""


@dataclass(frozen=True)
class FoldWeights(ModulePass):
    """Compute what depends on weights alone, and keep the outcome as a weight."""

    name = "fold-weights"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fold_weights(compile_context(ctx).program(op))


def fold_weights(program: Program) -> None:
    """Evaluate all that depends on weights alone, in place."""
    changed = ChangedWeights(program)
    with using(changed.symbols):
        _Folding(changed).run()


class _Folding:
    def __init__(self, changed: ChangedWeights) -> None:
        self.changed = changed
        self.known: set[SSAValue] = set()
        """Values that depend on constants alone."""
        self.weights: set[SSAValue] = set()
        """Those of them in which a weight takes part."""
        self.values: dict[SSAValue, Value] = {}

    def run(self) -> None:
        ops = list(self.changed.program.module.walk())
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
        if not is_function_of_operands(op):
            return False
        sources = [v for v in op.operands if not is_blank_output(v, op)]
        if not all(v in self.known for v in sources):
            return False
        if not all(has_known_size(value.type) for value in (*op.results, *op.operands)):
            return False
        if not any(v in self.weights for v in sources):
            return True  # Nothing is kept of it: the zeros, perhaps, that a sum begins with.
        return bytes_of(op.results) <= max(SMALL, GROWTH * bytes_of(sources))

    def _is_outcome(self, value: SSAValue) -> bool:
        """Return whether a value was computed from weights and is read by more than a fold."""
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
        name = f"{self._source(value)}.folded"
        derivation = _derivation(value)
        read = self.changed.add(name, self._evaluate(value), value.type, op, derivation=derivation)
        read.name_hint = value.name_hint
        value.replace_all_uses_with(read)
        self.known.add(read)
        self.weights.add(read)

    def _source(self, value: SSAValue) -> str:
        """Return the name of the first weight that a value depends on."""
        op = cast(Operation, value.owner)
        if isinstance(op, GetConstantOp):
            return op.symbol.root_reference.data
        return self._source(next(v for v in op.operands if v in self.weights))

    def _evaluate(self, value: SSAValue) -> Value:
        if value in self.values:
            return self.values[value]
        op = cast(Operation, value.owner)
        if isinstance(op, GetConstantOp):
            results = [self.changed.read(value)]
        elif isinstance(op, arith.ConstantOp):
            results = [read_constant(op.value, op.result.type)]
        else:
            results = list(evaluate_op(op, [self._evaluate(v) for v in op.operands]))
        self.values.update(zip(op.results, results, strict=True))
        return self.values[value]

    def _forget(self, op: Operation) -> None:
        """Drop values that no later fold reads."""
        for operand in op.operands:
            self.values.pop(operand, None)

    def _sweep(self, ops: list[Operation]) -> None:
        """Remove what was folded, users first, then constants that nothing reads any more."""
        for op in reversed(ops):
            if op.results and op.results[0] in self.known and not any(r.uses for r in op.results):
                Rewriter.erase_op(op)
        self.changed.sweep()


def _derivation(value: SSAValue) -> Derivation | None:
    """Return how weights become a value, where other calls compute it from weights of their own."""
    if count_of(cast(Operation, value.owner)) == 1:
        return None
    sources: list[ConstantOp] = []
    copies: dict[SSAValue, SSAValue] = {}
    body = Block()

    def copy(each: SSAValue) -> None:
        op = cast(Operation, each.owner)
        if each in copies:
            return
        if isinstance(op, GetConstantOp):
            copies[each] = body.insert_arg(each.type, len(body.args))
            sources.append(op.constant)
            return
        for operand in op.operands:
            copy(operand)
        body.add_op(op.clone(copies))

    copy(value)
    return Derivation.of(lambda *arrays: _run(body, arrays, copies[value]), *sources)


def _run(body: Block, arrays: Sequence[Value], wanted: SSAValue) -> Value:
    """Evaluate the ops of a block for what it is given."""
    values: dict[SSAValue, Value] = dict(zip(body.args, arrays, strict=True))
    for op in body.ops:
        if isinstance(op, arith.ConstantOp):
            results = [read_constant(op.value, op.result.type)]
        else:
            results = evaluate_op(op, [values[operand] for operand in op.operands])
        values.update(zip(op.results, results, strict=True))
    return values[wanted].astype(dtype_of(wanted.type), copy=False)
