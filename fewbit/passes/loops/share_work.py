"""Threads: every one runs the whole entry function, and its own part of each loop nest in it.

The split is over iterations that are independent, never over a sum, so results have the same bits
whatever the number of threads. After each loop nest all threads wait for one another. What is no
loop nest and writes, the first thread does alone, and so it does small loop nests, without a wait
between those that follow one another; what decides on a branch or loop, all read. Of nests of
dynamic size, a run decides which are small: a step of a decoder is made of nests that the prompt
before it has shared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fewbit.ir.bindings import (
    add_operands,
    find_function,
    index_constant,
    mlir_context,
    update_type,
    walk,
)
from fewbit.passes.loops.outline_loops import Iterations, ThreadArguments, outlined_of
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import function_names
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Block, Module, OpView, Value

Users: TypeAlias = "Literal[1] | Value | None"
Shares: TypeAlias = Mapping[str, Literal[1] | Iterations]

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
        shared: Shares = {} if wait_always else _users_of_functions(module)
        index = ir.IndexType.get()
        with ir.InsertionPoint(module.body):
            type = ir.FunctionType.get([ir.Type.parse("!llvm.ptr"), index], [])
            func.FuncOp(BARRIER, type, visibility="private")
        for name in names:
            _pass_threads(find_function(module, name), shared, names)


def _users_of_functions(module: Module) -> Shares:
    """Return functions that not all threads share: what one does alone, or what a run decides."""
    users: dict[str, Literal[1] | Iterations] = {}
    for function in module.body.operations:
        if (iterations := Iterations.of(function)) is not None:
            users[function.name.value] = iterations
    for each in outlined_of(module):
        if each.split is None:
            users[each.name] = 1
    return users


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


def _pass_threads(function: Any, shared: Shares, together: Collection[str]) -> None:
    effects = [op for op in walk(function) if op.operation.name in EFFECTS]
    if not effects:
        _add_threads(function)
        return
    sharing = _Sharing(*_add_threads(function), shared)
    users: list[Users] = [*map(sharing.users_of, effects), None]
    following = [*effects[1:], None]
    for number, (op, then) in enumerate(zip(effects, following, strict=True)):
        if op.operation.name == READS:
            # Nobody may overwrite it before all have read it.
            sharing.wait_after(op)
        elif op.operation.name != "func.call":
            sharing.wait_after(_guard([op], sharing.thread))
        elif op.callee.value in together:
            # All threads take part in it, and wait where it ends.
            add_operands(op, [sharing.thread, sharing.threads, sharing.state])
        else:
            goes_on = then is not None and _block_of(op) == _block_of(then)
            done = sharing.give_threads(op, users[number])
            sharing.wait_between(done, users[number], then, users[number + 1] if goes_on else None)


def _add_threads(function: Any) -> tuple[Value, Value, Value]:
    """Add what a function has to know of threads to its arguments."""
    from torch_mlir import ir

    index, pointer = ir.IndexType.get(), ir.Type.parse("!llvm.ptr")
    block = function.entry_block
    thread, threads, state = (
        block.add_argument(type, ir.Location.unknown()) for type in (index, index, pointer)
    )
    update_type(function)
    return thread, threads, state


@dataclass(frozen=True)
class _Sharing:
    """How threads share the calls of a function.

    The users of a call are None where they are all threads, 1 where the first makes it alone, and a
    value where a run decides that.
    """

    thread: Value
    threads: Value
    state: Value
    shared: Shares

    def users_of(self, op: Any) -> Users:
        from torch_mlir import ir
        from torch_mlir.dialects import arith, memref

        users = self.shared.get(op.callee.value) if op.operation.name == "func.call" else None
        if not isinstance(users, Iterations):
            return users
        with ir.InsertionPoint(op), op.operation.location:
            total = index_constant(users.known)
            for argument, axis in users.dims:
                size = memref.DimOp(op.operation.operands[argument], index_constant(axis)).result
                total = arith.MulIOp(total, size).result
            less = arith.CmpIPredicate.ult
            is_small = arith.CmpIOp(less, total, index_constant(users.worth)).result
            return arith.SelectOp(is_small, index_constant(1), self.threads).result

    def give_threads(self, op: Any, users: Users) -> Any:
        """Pass threads to a call; return what it is then within."""
        from torch_mlir import ir
        from torch_mlir.dialects import arith, scf

        if users is None or users == 1:
            ThreadArguments(self.thread, self.threads).give_to(op)
            return op
        ThreadArguments(self.thread, users).give_to(op)
        with ir.InsertionPoint(op), op.operation.location:
            takes_part = arith.CmpIOp(arith.CmpIPredicate.ult, self.thread, users).result
            branch = scf.IfOp(takes_part)
            with ir.InsertionPoint(branch.then_block):
                end = scf.YieldOp([])
        op.operation.move_before(end.operation)
        return branch

    def wait_between(self, op: Any, users: Users, then: Any, next_users: Users) -> None:
        """Have all wait for one another, where a call or the next one is not the first's alone."""
        from torch_mlir import ir
        from torch_mlir.dialects import arith

        if users is None or next_users is None:
            self.wait_after(op)
            return
        several = [each for each in (users, next_users) if each != 1]
        if not several:
            return
        with ir.InsertionPoint(then), op.operation.location:
            most = several[0]
            for other in several[1:]:
                most = arith.MaxUIOp(most, other).result
            self._wait(most)

    def wait_after(self, op: Any) -> None:
        from torch_mlir import ir

        with ir.InsertionPoint(op), op.operation.location:
            call = self._wait(self.threads)
        op.operation.move_before(call.operation)

    def _wait(self, threads: Value) -> Any:
        from torch_mlir import ir
        from torch_mlir.dialects import func

        return func.CallOp([], ir.FlatSymbolRefAttr.get(BARRIER), [self.state, threads])


def _block_of(op: Any) -> Any:
    return op.operation.block
