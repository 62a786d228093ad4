"""`while`, `if` and `case` as `scf.while`, `scf.for` and `scf.if`.

What a loop hands on unchanged, such as the weights of a recurrent network, is no variable of it: it
stays what it is outside, so layers in loops have constant weights. A loop that only counts from one
constant to another, as frameworks write steps of a sequence, is an `scf.for`: targets that cannot
wait for a condition know its number of rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i1
from xdsl.ir import Block as OutputBlock
from xdsl.ir import Region, SSAValue

from fewbit.frontends.stablehlo.constants import Constant
from fewbit.frontends.stablehlo.dense import dense_array
from fewbit.frontends.stablehlo.emit import Bound, Emitter, Transposed
from fewbit.frontends.stablehlo.ops import Block, Op, Value


def emit_control_flow(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    """The results of a loop or branch; None for any other op."""
    if op.kind == "while":
        return _while(emitter, op)
    if op.kind == "if":
        predicate = _scalar(emitter, emitter.value(op.operands[0]))
        return _branch(emitter, op, predicate, op.regions[0], [op.regions[1]])
    if op.kind == "case":
        return _case(emitter, op, 0)
    return None


@dataclass(frozen=True)
class _Count:
    """A variable that grows by 1 in each round, from the first number until it is the last."""

    variable: int
    first: int
    last: int


def _while(emitter: Emitter, op: Op) -> Sequence[Bound]:
    condition, body = op.regions
    carried = [
        i for i, value in enumerate(body.returned) if value is not body.arguments[i]
    ]  # fmt: skip
    count = _find_count(emitter, op)
    if count is not None:
        return _for(emitter, op, count, [i for i in carried if i != count.variable])
    initial = [emitter.value(op.operands[i]) for i in carried]
    types = [op.results[i].tensor.signless() for i in carried]
    before, after = OutputBlock(arg_types=types), OutputBlock(arg_types=types)
    test = _inner(emitter, op, condition, carried, before)
    (flag,) = _write_branch(test, condition)
    before.add_op(scf.ConditionOp(_scalar(test, flag), *before.args))
    inside = _inner(emitter, op, body, carried, after)
    results = _write_branch(inside, body)
    after.add_op(scf.YieldOp(*(results[i] for i in carried)))
    emitter.op = op
    loop = emitter.add(scf.WhileOp(initial, types, Region(before), Region(after)))
    bound: list[Bound] = [emitter.bound(operand) for operand in op.operands]
    for i, result in zip(carried, loop.results, strict=True):
        bound[i] = Transposed.plain(result, op.results[i].tensor.rank)
    return bound


def _find_count(emitter: Emitter, op: Op) -> _Count | None:
    """The variable that the condition compares with a constant, if that is all it does."""
    condition, body = op.regions
    compared = _definition(condition, condition.returned[0])
    if compared is None or compared.kind != "compare" or not _is_less(compared):
        return None
    counter, limit = compared.operands
    if counter not in condition.arguments:
        return None
    variable = condition.arguments.index(counter)
    step = _definition(body, body.returned[variable])
    if step is None or step.kind != "add":
        return None
    others = [value for value in step.operands if value is not body.arguments[variable]]
    first = _integer(emitter.constant(op.operands[variable]))
    last = _integer(_constant_in(emitter, op, condition, limit))
    if len(others) != 1 or first is None or last is None:
        return None
    if _integer(_constant_in(emitter, op, body, others[0])) != 1:
        return None
    return _Count(variable, first, max(first, last))


def _definition(block: Block, value: Value) -> Op | None:
    return next((op for op in block.ops if value in op.results), None)


def _is_less(compared: Op) -> bool:
    return compared.word("comparison_direction") == "LT"


def _constant_in(emitter: Emitter, op: Op, block: Block, value: Value) -> Constant | None:
    """The constant that a value in a block of a loop is, if it is known without writing it."""
    definition = _definition(block, value)
    if definition is not None and definition.kind != "constant":
        return None
    if definition is not None:
        resources = emitter.output.module.resources
        return Constant.of(dense_array(definition.attributes["value"], resources))
    if value not in block.arguments:
        return emitter.constant(value)
    place = block.arguments.index(value)
    body = op.regions[1]
    is_handed_on = body.returned[place] is body.arguments[place]
    return emitter.constant(op.operands[place]) if is_handed_on else None


def _integer(constant: Constant | None) -> int | None:
    if constant is None or constant.type.shape or constant.type.is_float:
        return None
    return int(constant.array)


def _for(emitter: Emitter, op: Op, count: _Count, carried: Sequence[int]) -> Sequence[Bound]:
    body = op.regions[1]
    types = [op.results[i].tensor.signless() for i in carried]
    initial = [emitter.value(op.operands[i]) for i in carried]
    block = OutputBlock(arg_types=[IndexType(), *types])
    inside = _inner(emitter, op, body, carried, block, block.args[1:])
    inside.op = op
    type = op.results[count.variable].tensor.signless()
    number = inside.add(arith.IndexCastOp(block.args[0], type.element_type)).results[0]
    counter = inside.add(tensor.FromElementsOp.create(operands=[number], result_types=[type]))
    inside.bind(body.arguments[count.variable], Transposed.plain(counter.results[0], 0))
    results = _write_branch(inside, body)
    block.add_op(scf.YieldOp(*(results[i] for i in carried)))
    emitter.op = op
    first, last, one = (
        emitter.add(arith.ConstantOp(IntegerAttr(number, IndexType()))).results[0]
        for number in (count.first, count.last, 1)
    )
    loop = emitter.add(scf.ForOp(first, last, one, initial, block))
    bound: list[Bound] = [emitter.bound(operand) for operand in op.operands]
    counted = np.array(count.last, op.results[count.variable].tensor.dtype)
    bound[count.variable] = Constant.of(counted)
    for i, result in zip(carried, loop.results, strict=True):
        bound[i] = Transposed.plain(result, op.results[i].tensor.rank)
    return bound


def _inner(
    emitter: Emitter,
    op: Op,
    block: Block,
    carried: Sequence[int],
    written: OutputBlock,
    values: Sequence[SSAValue] | None = None,
) -> Emitter:
    """Return a writer of a block of a loop; its variables are these values, or its arguments."""
    inner = emitter.within(written)
    for i, argument in enumerate(block.arguments):
        if i not in carried:
            inner.bind(argument, _outside(emitter, op.operands[i]))
    for i, value in zip(carried, written.args if values is None else values, strict=True):
        inner.bind(block.arguments[i], Transposed.plain(value, block.arguments[i].tensor.rank))
    return inner


def _outside(emitter: Emitter, value: Value) -> Bound:
    """Return what a loop sees of a value from outside: written there, once."""
    constant = emitter.constant(value)
    return constant or Transposed.plain(emitter.value(value), value.tensor.rank)


def _write_branch(inner: Emitter, block: Block) -> list[SSAValue]:
    inner.emit_block(block)
    return [inner.value(value) for value in block.returned]


def _branch(
    emitter: Emitter, op: Op, predicate: SSAValue, then: Block, rest: Sequence[Block]
) -> Sequence[Bound]:
    """`then` where the predicate holds, otherwise what is chosen among the rest."""
    types = [result.tensor.signless() for result in op.results]
    regions: list[Region] = []
    for blocks in ([then], rest):
        written = OutputBlock()
        inner = emitter.within(written)
        inner.op = op
        if len(blocks) == 1:
            results = _write_branch(inner, blocks[0])
        else:
            chosen = _case(inner, op, len(op.regions) - len(blocks))
            results = [inner.plain(each) for each in chosen if isinstance(each, Transposed)]
        written.add_op(scf.YieldOp(*results))
        regions.append(Region(written))
    emitter.op = op
    branch = emitter.add(scf.IfOp(predicate, types, regions[0], regions[1]))
    return [
        Transposed.plain(tensor, result.tensor.rank)
        for tensor, result in zip(branch.results, op.results, strict=True)
    ]


def _case(emitter: Emitter, op: Op, first: int) -> Sequence[Bound]:
    """The branches from `first` on; the last is also taken for an index out of range."""
    if len(op.regions) == 1:
        return emitter.emit_block(op.regions[0])
    index = _scalar(emitter, emitter.value(op.operands[0]), 32)
    number = emitter.add(arith.ConstantOp(IntegerAttr(first, IntegerType(32)))).results[0]
    here = emitter.add(arith.CmpiOp(index, number, "eq")).results[0]
    return _branch(emitter, op, here, op.regions[first], op.regions[first + 1 :])


def _scalar(emitter: Emitter, value: SSAValue, bits: int = 1) -> SSAValue:
    type = i1 if bits == 1 else IntegerType(bits)
    return emitter.add(tensor.ExtractOp(value, [], type)).results[0]
