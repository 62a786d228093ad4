"""The scf dialect. Loops run in order, `scf.parallel` too: its first index varies slowest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from xdsl.dialects import scf

from fewbit.errors import InterpretError
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import Leave, register
from fewbit.interpreter.values import Value, dtype_of, index_value


@register(scf.YieldOp, scf.ConditionOp, scf.ReduceReturnOp)
def leave(
    frame: Frame, op: scf.YieldOp | scf.ConditionOp | scf.ReduceReturnOp, operands: Sequence[Value]
) -> Leave:
    return Leave(tuple(operands))


@register(scf.IfOp)
def if_(frame: Frame, op: scf.IfOp, operands: Sequence[Value]) -> Sequence[Value]:
    region = op.true_region if operands[0] else op.false_region
    return frame.run(region) if region.blocks else ()


@register(scf.ForOp)
def for_(frame: Frame, op: scf.ForOp, operands: Sequence[Value]) -> Sequence[Value]:
    low, high, step = (int(bound) for bound in operands[:3])
    if step <= 0:
        raise InterpretError(f"the step of a loop must be positive, it is {step}")
    index = dtype_of(op.lb.type).type
    carried = tuple(operands[3:])
    for i in range(low, high, step):
        carried = frame.run(op.body, (index(i), *carried))
    return carried


@register(scf.WhileOp)
def while_(frame: Frame, op: scf.WhileOp, operands: Sequence[Value]) -> Sequence[Value]:
    carried = tuple(operands)
    while True:
        condition, *passed = frame.run(op.before_region, carried)
        if not condition:
            return passed
        carried = frame.run(op.after_region, passed)


@register(scf.ExecuteRegionOp)
def execute_region(
    frame: Frame, op: scf.ExecuteRegionOp, operands: Sequence[Value]
) -> Sequence[Value]:
    return frame.run(op.region)


@register(scf.IndexSwitchOp)
def index_switch(frame: Frame, op: scf.IndexSwitchOp, operands: Sequence[Value]) -> Sequence[Value]:
    for case, region in zip(op.cases.get_values(), op.case_regions, strict=True):
        if int(operands[0]) == case:
            return frame.run(region)
    return frame.run(op.default_region)


@register(scf.ParallelOp)
def parallel(frame: Frame, op: scf.ParallelOp, operands: Sequence[Value]) -> Sequence[Value]:
    rank = len(op.lowerBound)
    bounds = [int(bound) for bound in operands[: 3 * rank]]
    lows, highs, steps = bounds[:rank], bounds[rank : 2 * rank], bounds[2 * rank :]
    if any(step <= 0 for step in steps):
        raise InterpretError("the steps of a loop must be positive")
    results = tuple(operands[3 * rank :])
    for point in product(*map(range, lows, highs, steps)):
        contributions = frame.run(op.body, [index_value(i) for i in point])
        results = _reduce(frame, op, results, contributions)
    return results


def _reduce(
    frame: Frame, op: scf.ParallelOp, results: tuple[Value, ...], given: tuple[Value, ...]
) -> tuple[Value, ...]:
    reduce = op.body.block.last_op
    if not isinstance(reduce, scf.ReduceOp):
        return results
    return tuple(
        frame.run(region, (result, contribution))[0]
        for region, result, contribution in zip(reduce.reductions, results, given, strict=True)
    )


@register(scf.ReduceOp)
def reduce(frame: Frame, op: scf.ReduceOp, operands: Sequence[Value]) -> Leave:
    """Return the contributions of one iteration; `scf.parallel` combines them."""
    return Leave(tuple(operands))
