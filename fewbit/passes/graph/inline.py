"""Put the bodies of subgraphs and functions in place of calls to them.

Callees come first, so each body is final when it is copied and nested calls vanish with it. The
body of a callee with one call and no other use is moved, not copied: of a network's modules most
are such, and each level of them would be a copy more.
Where the callee runs on another device the call stays, unless asked otherwise. Ops from a
subgraph keep its name in their locations: errors still name the layer, and `outline-subgraph`
can restore the hierarchy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable as Function
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import graph
from fewbit.ir.locations import is_known, named_location, place_of
from fewbit.ir.symbols import SymbolTable, using
from fewbit.ir.walk import nested_ops
from fewbit.passes.graph.calls import Call, Callable, callee_of, only_block, symbols_used
from fewbit.passes.graph.names import NamePattern

Wanted: TypeAlias = Function[[Callable, Callable], bool]


@dataclass(frozen=True)
class Inline(ModulePass):
    """Put the bodies of subgraphs and functions in place of calls to them."""

    name = "inline"

    only: tuple[str, ...] = ()
    """Names, or patterns after `re:`, of the callees to inline; all when empty."""
    across_devices: bool = False
    """Inline callees that are placed on another device than their caller, too."""
    default: str = "cpu"
    """The device of functions, as in `place-devices`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        only = [NamePattern.parse(text) for text in self.only]
        if only:
            names = [each.sym_name.data for each in op.ops if isinstance(each, Callable)]
            for pattern in only:
                pattern.require_match(names, self.name)
        inline_calls(op, lambda caller, callee: self._is_wanted(caller, callee, only))

    def _is_wanted(self, caller: Callable, callee: Callable, only: list[NamePattern]) -> bool:
        if only and not any(p.selects(callee.sym_name.data) for p in only):
            return False
        return self.across_devices or self._share_device(caller, callee)

    def _share_device(self, caller: Callable, callee: Callable) -> bool:
        """Return whether both run on one device; without one, a subgraph follows its caller."""
        here = self.default if isinstance(caller, func.FuncOp) else caller.device_name
        if isinstance(callee, func.FuncOp):
            return here in (None, self.default)
        return callee.device_name in (None, here)


def inline_calls(module: ModuleOp, is_wanted: Wanted) -> None:
    """Inline the calls that are wanted, given caller and callee, and erase what nothing calls."""
    with using(SymbolTable(module)):
        order = callees_first(module)
        inlined = _inline_all(order, is_wanted, _called_once(module, order))
    _erase_unused(module, inlined)


def _inline_all(order: list[Callable], is_wanted: Wanted, once: set[Callable]) -> set[Callable]:
    inlined: set[Callable] = set()
    finish: set[Callable] = set()
    for caller in order:
        pending = list(_calls_in(caller))
        while pending:
            call = pending.pop()
            callee = callee_of(call)
            if callee is None or callee not in finish:
                continue
            block = only_block(callee)
            if block is None or not is_wanted(caller, callee):
                continue
            pending += _inline(call, callee, block, move=callee in once)
            inlined.add(callee)
        finish.add(caller)
    return inlined


def _calls_in(caller: Callable) -> Iterator[Call]:
    return (op for op in nested_ops(caller) if isinstance(op, Call))


def callees_first(module: ModuleOp) -> list[Callable]:
    """Return every callable after those that it calls; a cycle is entered somewhere."""
    order: list[Callable] = []
    seen: set[Operation] = set()
    for root in module.ops:
        stack = [(root, False)] if isinstance(root, Callable) else []
        while stack:
            caller, done = stack.pop()
            if done:
                order.append(caller)
            elif caller not in seen:
                seen.add(caller)
                stack.append((caller, True))
                callees = [callee_of(call) for call in _calls_in(caller)]
                stack.extend((callee, False) for callee in callees if callee is not None)
    return order


def _called_once(module: ModuleOp, order: list[Callable]) -> set[Callable]:
    """Return the callables that one call refers to, and nothing else."""
    calls = Counter(callee_of(call) for caller in order for call in _calls_in(caller))
    others = {reference.root_reference.data for reference in symbols_used(module, but=Call)}
    return {
        callee
        for callee in order
        if calls[callee] == 1 and callee.sym_name.data not in others and not _is_public(callee)
    }


def _inline(call: Call, callee: Callable, body: Block, *, move: bool) -> list[graph.CallOp]:
    """Inline one call; return the calls of subgraphs in the body, which may be inlined next."""
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, call.operands, strict=True))
    calls: list[graph.CallOp] = []
    last = body.last_op
    assert call.parent is not None
    assert last is not None
    if move:
        for argument, operand in values.items():
            argument.replace_all_uses_with(operand)
    for op in list(body.ops)[:-1]:
        if move:
            op.detach()
        new = op if move else op.clone(values)
        _locate(new, call, callee)
        call.parent.insert_op_before(new, call)
        calls += (o for o in nested_ops(new) if isinstance(o, graph.CallOp))
    for old, returned in zip(call.results, last.operands, strict=True):
        old.replace_all_uses_with(values.get(returned, returned))
    call.parent.erase_op(call)
    return calls


def _locate(root: Operation, call: Call, callee: Callable) -> None:
    for op in nested_ops(root):
        if not is_known(op.location):
            op.location = call.location
        if isinstance(callee, graph.SubgraphOp) and place_of(op).layer is None:
            op.location = named_location(callee.sym_name.data, op.location)


def _erase_unused(module: ModuleOp, inlined: set[Callable]) -> None:
    used = {reference.root_reference.data for reference in symbols_used(module)}
    for callee in inlined:
        if callee.sym_name.data in used or _is_public(callee):
            continue
        assert callee.parent is not None
        callee.parent.erase_op(callee)


def _is_public(callee: Callable) -> bool:
    return isinstance(callee, func.FuncOp) and callee.sym_visibility != StringAttr("private")
