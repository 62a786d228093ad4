"""Smaller programs of a program: other results, values as arguments, ops left out.

This is what `onnx_graph` does, on the ops of the entry: front ends other than ONNX come here, and
so do programs. Calls of subgraphs are inlined first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.transforms.dead_code_elimination import dce

from fewbit.interpreter.signature import Function, choose_function
from fewbit.ir.symbols import SymbolTable
from fewbit.passes.graph.inline import Inline
from fewbit.pipeline.compilation import run_passes
from fewbit.program.program import Program
from fewbit.reduce.search import halves_first

Change = Callable[[Block], None]


def flat(program: Program) -> Program:
    """Return the program without calls."""
    return run_passes(program, Inline(across_devices=True))


def size_of(program: Program) -> int:
    return len(_candidates(_entry(program).body.block))


def cuts_of(program: Program) -> Iterator[Program]:
    """Return smaller programs, the largest cuts first."""
    block = _entry(program).body.block
    ops = _candidates(block)
    results = len(_end(block).operands)
    if results > 1:
        for number in range(results):
            yield _change(program, lambda b, n=number: _return(b, [_end(b).operands[n]]))
    for number in halves_first(len(ops)):
        yield from _smaller(program, lambda b, n=number: _return(b, _candidates(b)[n].results))
    for number in halves_first(len(ops)):
        if all(isinstance(result.type, TensorType) for result in ops[number].results):
            yield from _smaller(program, lambda b, n=number: _give(b, _candidates(b)[n]))
    for number, op in enumerate(ops):
        for at, operand in enumerate(op.operands):
            if len(op.results) == 1 and operand.type == op.results[0].type:
                yield from _smaller(
                    program, lambda b, n=number, i=at: _leave_out(_candidates(b)[n], i)
                )


def _smaller(program: Program, change: Change) -> Iterator[Program]:
    smaller = _change(program, change)
    if size_of(smaller) < size_of(program):
        yield smaller


def _change(program: Program, change: Change) -> Program:
    """Return a copy with the change, without what nothing needs any more."""
    copy = program.copy()
    entry = _entry(copy)
    block = entry.body.block
    change(block)
    dce(copy.module)
    for argument in [a for a in block.args if not a.uses]:
        block.erase_arg(argument)
    types = [argument.type for argument in block.args]
    entry.properties["function_type"] = FunctionType.from_lists(
        types, [value.type for value in _end(block).operands]
    )
    for name in ("arg_attrs", "res_attrs"):
        entry.properties.pop(name, None)
    return copy


def _entry(program: Program) -> Function:
    return choose_function(SymbolTable(program.module), None)


def _candidates(block: Block) -> list[Operation]:
    """Return the ops that compute something of other values."""
    return [op for op in block.ops if op.operands and op.results]


def _end(block: Block) -> Operation:
    last = block.last_op
    assert last is not None
    return last


def _return(block: Block, values: list[SSAValue] | tuple[SSAValue, ...]) -> None:
    old = _end(block)
    block.add_op(func.ReturnOp(*values))
    old.detach()
    old.erase()


def _give(block: Block, op: Operation) -> None:
    """Make the results of an op arguments."""
    for result in op.results:
        argument = block.insert_arg(result.type, len(block.args))
        argument.name_hint = result.name_hint
        result.replace_all_uses_with(argument)


def _leave_out(op: Operation, operand: int) -> None:
    op.results[0].replace_all_uses_with(op.operands[operand])
