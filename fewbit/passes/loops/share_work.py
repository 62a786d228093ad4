"""Threads: every one runs the whole entry function, and its own part of each loop nest in it.

The split is over iterations that are independent, never over a sum, so results have the same bits
whatever the number of threads. After each loop nest all threads wait for one another. What is no
loop nest and writes, the first thread does alone, and so it does small loop nests, without a wait
between those that follow one another; what decides on a branch or loop, all read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fewbit.ir.bindings import (
    add_operands,
    find_function,
    index_constant,
    mlir_context,
    update_type,
    walk,
)
from fewbit.passes.loops.outline_loops import ThreadArguments, outlined_of
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import function_names
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Block, Module, OpView, Value

BARRIER = "threads.barrier"
READS = "memref.load"
EFFECTS = ("func.call", READS, "memref.store", "memref.copy")


@dataclass(frozen=True)
class ShareWork(BindingsPass):
    """Split loop nests over threads."""

    name = "share-work"

    wait_always: bool = False
    """Whether threads wait for one another after every nest, as a profile needs it."""

    def apply(self, ctx: CompileContext, module: Module) -> None:
        share_work(module, *function_names(module), wait_always=self.wait_always)


def share_work(module: Module, *names: str, wait_always: bool = False) -> None:
    """Add to functions `thread`, `threads` and what the barrier needs; split loops in place.

    All threads run what these functions do, and call each other with. `wait_always` is for a
    profile, which counts from wait to wait.
    """
    from torch_mlir import ir
    from torch_mlir.dialects import func

    with mlir_context(), ir.Location.unknown():
        outlined = outlined_of(module)
        for each in outlined:
            function = find_function(module, each.name)
            if each.split is None:
                _only_first_thread(function)
            else:
                _split(function, each.split)
        alone = set[str]() if wait_always else {e.name for e in outlined if e.split is None}
        index = ir.IndexType.get()
        with ir.InsertionPoint(module.body):
            type = ir.FunctionType.get([ir.Type.parse("!llvm.ptr"), index], [])
            func.FuncOp(BARRIER, type, visibility="private")
        for name in names:
            _pass_threads(find_function(module, name), alone, names)


def _split(function: Any, depth: int) -> None:
    from torch_mlir import ir
    from torch_mlir.dialects import arith

    thread, threads = ThreadArguments.of(function.entry_block)
    loop = _loop_at(function.entry_block, depth)
    with ir.InsertionPoint(loop):
        low, high = loop.operation.operands[0], loop.operation.operands[1]
        length = arith.SubIOp(high, low).result

        def bound(number: Value) -> Value:
            part = arith.DivUIOp(arith.MulIOp(length, number).result, threads).result
            return arith.AddIOp(low, part).result

        begin, end = bound(thread), bound(arith.AddIOp(thread, index_constant(1)).result)
    loop.operation.operands[0] = begin
    loop.operation.operands[1] = end


def _loop_at(block: Block, depth: int) -> OpView:
    loop = next(op for op in block.operations if op.operation.name == "scf.for")
    return loop if depth == 0 else _loop_at(loop.body, depth - 1)


def _only_first_thread(function: Any) -> None:
    block = function.entry_block
    ops = list(block.operations)
    _guard(ops[:-1], ThreadArguments.of(block).thread)


def _guard(ops: Sequence[OpView], thread: Value) -> Any:
    """Put ops into the branch that the first thread takes."""
    from torch_mlir import ir
    from torch_mlir.dialects import arith, scf

    with ir.InsertionPoint(ops[0]):
        first = arith.CmpIOp(arith.CmpIPredicate.eq, thread, index_constant(0)).result
        branch = scf.IfOp(first)
        with ir.InsertionPoint(branch.then_block):
            end = scf.YieldOp([])
    for op in ops:
        op.operation.move_before(end.operation)
    return branch


def _pass_threads(function: Any, alone: Collection[str], together: Collection[str]) -> None:
    from torch_mlir import ir
    from torch_mlir.dialects import func

    block = function.entry_block
    index = ir.IndexType.get()
    pointer = ir.Type.parse("!llvm.ptr")
    thread, threads, state = (
        block.add_argument(type, ir.Location.unknown()) for type in (index, index, pointer)
    )
    update_type(function)

    def wait_after(op: Any) -> None:
        with ir.InsertionPoint(op), op.operation.location:
            call = func.CallOp([], ir.FlatSymbolRefAttr.get(BARRIER), [state, threads])
        op.operation.move_before(call.operation)

    effects = [op for op in walk(function) if op.operation.name in EFFECTS]
    if not effects:
        return
    goes_on = [
        _is_alone(op, alone) and _is_alone(then, alone) and _block_of(op) == _block_of(then)
        for op, then in pairwise(effects)
    ]
    for op, is_followed in zip(effects, [*goes_on, False], strict=True):
        if op.operation.name == READS:
            # Nobody may overwrite it before all have read it.
            wait_after(op)
        elif op.operation.name == "func.call" and op.callee.value in together:
            # All threads take part in it, and wait where it ends.
            add_operands(op, [thread, threads, state])
        elif op.operation.name == "func.call":
            ThreadArguments(thread, threads).give_to(op)
            if not is_followed:
                wait_after(op)
        else:
            wait_after(_guard([op], thread))


def _is_alone(op: Any, alone: Collection[str]) -> bool:
    """Return whether it calls a loop nest that the first thread does alone."""
    return op.operation.name == "func.call" and op.callee.value in alone


def _block_of(op: Any) -> Any:
    return op.operation.block
