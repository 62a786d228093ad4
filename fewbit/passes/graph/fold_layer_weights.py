"""Make constants of the weights that layers read moved, cut or computed from constants.

A recipe reaches a layer by the constant that is its weight. Where a layer reads a constant through
other ops, these are evaluated, and what comes of them is the constant in its place, under its name.
If layers read parts of one constant (projections of attention, matrices of experts), or something
else reads it too, each gets a number: `experts.up` becomes `experts.up.0`, and `fc.weight` becomes
`fc.0.weight`. Equal weights are one constant, and one that was only moved to and fro is the
constant it was. A weight much larger than what it is computed from is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import prod
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fewbit.dialects.mico import EmbeddingOp, GetConstantOp, QuantizedLayerOp, shape_of
from fewbit.dialects.mico.types import is_float_tensor
from fewbit.interpreter import evaluate_op
from fewbit.interpreter.constants import read_constant
from fewbit.interpreter.values import Value
from fewbit.ir.layers import WEIGHT, Layer
from fewbit.ir.symbols import using
from fewbit.passes.graph.changed_weights import ChangedWeights
from fewbit.passes.graph.constant_values import constant_reads
from fewbit.passes.graph.fold_weights import GROWTH
from fewbit.pipeline.context import compile_context


@dataclass(frozen=True)
class FoldLayerWeights(ModulePass):
    """Make constants of weights that layers read through other ops."""

    name = "fold-layer-weights"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        changed = ChangedWeights(compile_context(ctx).program(op))
        with using(changed.symbols):
            _Folding(changed).run()


@dataclass(frozen=True)
class _Weight:
    """A weight that is not a constant yet."""

    layer: Layer
    read: GetConstantOp
    """The read of the constant that it is named after: the largest behind it."""
    value: Value
    type: Attribute

    @property
    def origin(self) -> str:
        return self.read.symbol.root_reference.data


class _Folding:
    def __init__(self, changed: ChangedWeights) -> None:
        self.changed = changed
        self.values: dict[SSAValue, Value] = {}

    def run(self) -> None:
        ops = list(self.changed.program.module.walk())
        candidates = [
            self._weight(op) for op in ops if isinstance(op, QuantizedLayerOp | EmbeddingOp)
        ]
        weights = [weight for weight in candidates if weight is not None]
        for weight in weights:
            # Until its constant has a name, the read of any is a weight as good.
            weight.layer.operands[1] = weight.read.result
        self._sweep(ops)
        for origin in dict.fromkeys(weight.origin for weight in weights):
            self._replace(origin, [weight for weight in weights if weight.origin == origin])
        self.changed.sweep()

    def _sweep(self, ops: list[Operation]) -> None:
        """Remove what weights were computed by, users first."""
        for op in reversed(ops):
            evaluated = any(result in self.values for result in op.results)
            if evaluated and not any(result.uses for result in op.results):
                Rewriter.erase_op(op)

    def _weight(self, layer: Layer) -> _Weight | None:
        weight = layer.weight
        if isinstance(weight.owner, GetConstantOp) or not is_float_tensor(weight.type):
            return None
        reads = constant_reads(weight)
        if not reads or _elements(weight) > GROWTH * sum(_elements(read.result) for read in reads):
            return None
        read = max(reads, key=lambda each: _elements(each.result))
        return _Weight(layer, read, self._evaluate(weight), weight.type)

    def _evaluate(self, value: SSAValue) -> Value:
        if value not in self.values:
            op = value.owner
            assert isinstance(op, Operation)
            if isinstance(op, GetConstantOp):
                results: list[Any] = [self.changed.read(value)]
            elif isinstance(op, arith.ConstantOp):
                results = [read_constant(op.value, op.result.type)]
            else:
                results = evaluate_op(op, [self._evaluate(operand) for operand in op.operands])
            self.values.update(zip(op.results, results, strict=True))
        return self.values[value]

    def _replace(self, origin: str, weights: list[_Weight]) -> None:
        """Give layers whose weights come of one constant the constants that these are."""
        distinct: list[Value] = []
        for weight in weights:
            if not any(_same(weight.value, value) for value in distinct):
                distinct.append(weight.value)
        layers = {weight.layer for weight in weights}
        is_free = all(use.operation in layers for use in self._uses(origin))
        alone = is_free and len(distinct) == 1
        original, numbers = self.changed.read(weights[0].read.result), count()
        for value in distinct:
            own = [weight for weight in weights if _same(weight.value, value)]
            if _same(value, original):
                continue
            first, *others = [weight.layer for weight in own]
            if alone:
                read = self.changed.redefine(origin, value, own[0].type, first)
            else:
                name = _number(origin, next(numbers))
                read = self.changed.add(name, value, own[0].type, first)
            first.operands[1] = read
            for layer in others:
                layer.operands[1] = self.changed.read_again(read, layer)

    def _uses(self, name: str) -> list[Use]:
        ops = self.changed.program.module.walk()
        reads = [op for op in ops if isinstance(op, GetConstantOp)]
        return [
            use for op in reads if op.symbol.root_reference.data == name for use in op.result.uses
        ]


def _number(name: str, number: int) -> str:
    """Return the name of one of several weights that a constant becomes."""
    stem = name.removesuffix(WEIGHT)
    return f"{stem}.{number}{WEIGHT}" if stem != name else f"{name}.{number}"


def _same(a: Value, b: Value) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _elements(value: SSAValue) -> int:
    return prod(shape_of(value.type))
