"""Reductions of linalg ops, and the order in which they add.

A body that combines each output with something that no output enters, `out = op(out, f(inputs))`,
is a reduction, and f is computed for all points at once. Sums and products of floats are
accumulated in float64, starting from the output's initial value, and rounded once at the end;
products that are summed are not rounded in between. The result is the true sum but for one
rounding, in all but degenerate cases, and so does not depend on an order that targets would have
to share: each of them is compared with the truth. Integers wrap as the IR says, in any order;
minima, maxima and bitwise ops are combined pairwise with the op's own semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from fewbit.errors import InterpretError
from fewbit.interpreter import floats
from fewbit.interpreter.body import Body, Scope
from fewbit.interpreter.contraction import contract
from fewbit.interpreter.integers import signed, wrap
from fewbit.interpreter.interpreter import Frame, entry_of
from fewbit.interpreter.registry import Jump, Leave
from fewbit.interpreter.values import Value, bit_width, dtype_of

_SUMS = (arith.AddfOp, arith.AddiOp)
_PRODUCTS = (arith.MulfOp, arith.MuliOp)
_SELECTIONS = (
    arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp,
    arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp,
    arith.AndIOp, arith.OrIOp, arith.XOrIOp,
)  # fmt: skip


@dataclass(frozen=True)
class Reduction:
    """`out = combiner(out, term)`; where the term is a product that is summed, its factors."""

    combiner: Operation
    term: SSAValue
    factors: tuple[SSAValue, SSAValue] | None

    @property
    def skipped(self) -> set[Operation]:
        """The ops of the body that are not evaluated, because the reduction replaces them."""
        product = {self.term.owner} if self.factors is not None else set[Any]()
        return {self.combiner, *cast(set[Operation], product)}


def find_reductions(body: Body, outputs: Sequence[BlockArgument]) -> list[Reduction] | None:
    """Return the reductions that a body consists of, one per output, or None."""
    reductions = [find_reduction(*pair) for pair in zip(outputs, body.yielded, strict=True)]
    return None if None in reductions else cast(list[Reduction], reductions)


def find_reduction(output: BlockArgument, yielded: SSAValue) -> Reduction | None:
    """Return the reduction of an output; None if it is not combined with what no output enters."""
    combiner = yielded.owner
    if not isinstance(combiner, (*_SUMS, *_PRODUCTS, *_SELECTIONS)):
        return None
    if not (output.has_one_use() and yielded.has_one_use() and output in combiner.operands):
        return None
    term = combiner.rhs if combiner.lhs is output else combiner.lhs
    return Reduction(combiner, term, _factors(combiner, term))


def _factors(combiner: Operation, term: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    if not isinstance(combiner, _SUMS) or not isinstance(term, OpResult):
        return None
    product = term.op
    if not isinstance(product, _PRODUCTS) or not term.has_one_use():
        return None
    return (product.lhs, product.rhs) if product.parent is combiner.parent else None


def start(reduction: Reduction, initial: Value) -> Value:
    """Return the accumulator of an output's initial values."""
    if isinstance(reduction.combiner, _SELECTIONS):
        return initial
    return _wide(initial, reduction)


def accumulate(
    frame: Frame,
    reduction: Reduction,
    accumulator: Value,
    scope: Scope,
    sizes: Sequence[int],
    summed: Sequence[int],
) -> Value:
    """Return the accumulator after a part of the space, which `scope` was computed for."""
    combiner = reduction.combiner
    if reduction.factors is not None:
        lhs, rhs = (_wide(scope[factor], reduction) for factor in reduction.factors)
        return accumulator + contract(lhs, rhs, sizes, summed)
    term = _over(scope[reduction.term], sizes, summed)
    if isinstance(combiner, _SELECTIONS):
        return _combine(frame, combiner, accumulator, _pairwise(frame, combiner, term, summed))
    reduce = np.add.reduce if isinstance(combiner, _SUMS) else np.multiply.reduce
    total = reduce(_wide(term, reduction), axis=tuple(summed), keepdims=True)
    return accumulator + total if isinstance(combiner, _SUMS) else accumulator * total


def finish(reduction: Reduction, accumulator: Value) -> Value:
    """Round the accumulator to the output's final values."""
    if isinstance(reduction.combiner, _SELECTIONS):
        return accumulator
    type = reduction.combiner.results[0].type
    dtype = dtype_of(type)
    if dtype.kind in "ib":
        return wrap(accumulator, bit_width(type))
    return floats.narrow(accumulator, dtype)


def _wide(value: Value, reduction: Reduction) -> Value:
    type = reduction.combiner.results[0].type
    if dtype_of(type).kind in "ib":
        return signed(value, bit_width(type)).astype(np.int64)
    return floats.widen(value)


def _over(term: Value, sizes: Sequence[int], summed: Sequence[int]) -> Value:
    """Repeat the term along the summed loops that it does not depend on."""
    shape = [1] * (len(sizes) - np.ndim(term)) + list(np.shape(term))
    for loop in summed:
        shape[loop] = sizes[loop]
    return np.broadcast_to(term, shape)


def _combine(frame: Frame, combiner: Operation, lhs: Value, rhs: Value) -> Value:
    outcome = frame.evaluate(combiner, entry_of(combiner), (lhs, rhs))
    if isinstance(outcome, Leave | Jump):
        raise InterpretError("a reduction must not branch")
    return outcome[0]


def _pairwise(frame: Frame, combiner: Operation, term: Value, summed: Sequence[int]) -> Value:
    """Combine halves until one is left; for ops whose order does not matter."""
    kept = [1 if loop in summed else size for loop, size in enumerate(term.shape)]
    outer = [size for loop, size in enumerate(term.shape) if loop not in summed]
    items = np.moveaxis(term, summed, range(len(summed))).reshape([-1, *outer])
    while len(items) > 1:
        half = len(items) // 2
        combined = _combine(frame, combiner, items[:half], items[half : 2 * half])
        items = np.concatenate([combined, items[2 * half :]])
    return items[0].reshape(kept)
