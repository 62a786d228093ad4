"""`while`, `if` and `case` as `scf.while` and `scf.if`.

What a loop hands on unchanged, such as the weights of a recurrent network, is no variable of it: it
stays what it is outside, so layers in loops have constant weights.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i1
from xdsl.ir import Block as OutputBlock
from xdsl.ir import Region, SSAValue

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


def _while(emitter: Emitter, op: Op) -> Sequence[Bound]:
    condition, body = op.regions
    carried = [
        i for i, value in enumerate(body.returned) if value is not body.arguments[i]
    ]  # fmt: skip
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


def _inner(
    emitter: Emitter, op: Op, block: Block, carried: Sequence[int], written: OutputBlock
) -> Emitter:
    inner = emitter.within(written)
    for i, argument in enumerate(block.arguments):
        if i not in carried:
            inner.bind(argument, _outside(emitter, op.operands[i]))
    for i, value in zip(carried, written.args, strict=True):
        inner.bind(block.arguments[i], Transposed.plain(value, block.arguments[i].tensor.rank))
    return inner


def _outside(emitter: Emitter, value: Value) -> Bound:
    """What a loop sees of a value from outside: written there, once."""
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
