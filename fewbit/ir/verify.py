"""The verification of a module: one call, every rule, and an error that knows its place.

The rules run in an order in which each may trust the ones before it: structure (parents,
terminators, successors), SSA dominance, what every op says of itself, and what symbols say of
each other. xDSL's own `verify` recurses, prints the whole module into its exception and names
no line; so this walks the ops itself and only asks each for its own rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches

from xdsl.dialects.builtin import FunctionType, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import CallOp as FuncCallOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, ErasedSSAValue, Operation
from xdsl.irdl import traits_def
from xdsl.traits import IsTerminator, NoTerminator, SymbolUserOpInterface
from xdsl.traits import SymbolTable as HoldsSymbols
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.graph import CallOp, SubgraphOp
from fewbit.errors import Error, SymbolError, VerifyError
from fewbit.ir.dominance import check_dominance
from fewbit.ir.locations import place_of
from fewbit.ir.symbols import SymbolTable, lookup, symbol_name, using
from fewbit.ir.walk import nested_ops

MAX_MESSAGE = 400
"""Characters of an op's own complaint that are shown; xDSL puts whole ops into some."""


def verify(module: ModuleOp, stage: str | None = None) -> None:
    """Raise `VerifyError` where `module` breaks a rule; `stage` names the pass before."""
    try:
        ops = list(nested_ops(module))
        for op in ops:
            _check_structure(op)
        check_dominance(module)
        scopes = [op for op in ops if op.has_trait(HoldsSymbols, value_if_unregistered=False)]
        for scope in scopes:
            _check_unique_symbols(scope)
        with using(SymbolTable(module)) as table:
            for op in ops:
                _check_own_rules(op, table)
            for scope in scopes:
                _check_recursion(scope)
    except Error as e:
        raise e.at(stage=stage) from e.__cause__


def _check_structure(op: Operation) -> None:
    if any(isinstance(operand, ErasedSSAValue) for operand in op.operands):
        raise VerifyError("uses a value whose definition was erased", place=place_of(op))
    if op.successors:
        _check_successors(op)
    for region in op.regions:
        if region.parent is not op:
            raise VerifyError("holds a region that belongs to another op", place=place_of(op))
        several = region.first_block is not region.last_block
        for block in region.blocks:
            if block.parent is not region:
                raise VerifyError("holds a block of another region", place=place_of(op))
            _check_block(op, block, several)


def _check_successors(op: Operation) -> None:
    block = op.parent
    if block is None or block.last_op is not op:
        raise VerifyError("branches but does not end its block", place=place_of(op))
    if any(successor.parent is not block.parent for successor in op.successors):
        raise VerifyError("branches to a block of a different region", place=place_of(op))


def _check_block(parent: Operation, block: Block, several: bool) -> None:
    for op in block.ops:
        if op.parent is not block:
            raise VerifyError("is listed in a block that is not its parent", place=place_of(op))
    if not several and parent.has_trait(NoTerminator):
        return
    last = block.last_op
    if last is None:
        raise VerifyError(
            "holds an empty block",
            place=place_of(parent),
            hint="every block here ends in a terminator, such as func.return",
        )
    if not last.has_trait(IsTerminator):
        raise VerifyError(
            "ends its block but is not a terminator",
            place=place_of(last),
            hint=f"end the body of '{parent.name}' in a terminator, such as func.return",
        )


def _check_own_rules(op: Operation, table: SymbolTable) -> None:
    try:
        _ask(op)
    except VerifyError as e:
        raise e.at(**vars(place_of(op))) from e.__cause__
    except Error as e:
        raise VerifyError(e.what, place=place_of(op), hint=e.hint) from e
    except Exception as e:
        # An op's verifier may trip over what it did not expect: that too is invalid IR.
        if _is_about_symbols(op):
            raise SymbolError(_message(e), place=place_of(op), hint=_symbol_hint(op, table)) from e
        raise VerifyError(_message(e), place=place_of(op)) from e


def _ask(op: Operation) -> None:
    """Call the op's own verifier, without xDSL's habit of printing the module when it fails."""
    if isinstance(op, FuncCallOp) and _is_good_call(op):
        return
    if type(op).verify is Operation.verify:
        op.verify_()
        return
    op.verify(verify_nested_ops=False)


_CALL_WITHOUT_SYMBOLS = replace(FuncCallOp.get_irdl_definition(), traits=traits_def())


def _is_good_call(op: FuncCallOp) -> bool:
    """Check a func.call in constant time; its own verifier scans the module for the callee."""
    _CALL_WITHOUT_SYMBOLS.verify(op)
    callee = lookup(op, op.callee)
    signature = FunctionType.from_lists(op.operand_types, op.result_types)
    return isinstance(callee, FuncOp) and callee.function_type == signature


def _message(e: Exception) -> str:
    text = " ".join(line.strip() for line in str(e).splitlines() if line.strip())
    if not isinstance(e, VerifyException):
        text = f"cannot be verified: {text or type(e).__name__}"
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


def _is_about_symbols(op: Operation) -> bool:
    try:
        for trait in op.get_traits_of_type(SymbolUserOpInterface):
            trait.verify(op)
    except VerifyException:
        return True
    except Exception:
        return False
    return False


def _symbol_hint(op: Operation, table: SymbolTable) -> str | None:
    for attribute in (*op.properties.values(), *op.attributes.values()):
        if not isinstance(attribute, SymbolRefAttr) or attribute.nested_references.data:
            continue
        name = attribute.root_reference.data
        if lookup(op, name) is not None:
            continue
        similar = get_close_matches(name, table, n=1)
        if similar:
            return f"did you mean @{similar[0]}?"
        return f"define @{name} in the module, or correct the name"
    return None


def _check_unique_symbols(scope: Operation) -> None:
    table = SymbolTable(scope)
    for name, again in table.duplicates:
        raise SymbolError(
            f"defines the symbol @{name} a second time",
            place=place_of(again),
            hint=f"rename one of the two; the first is {place_of(table[name])}",
        )


def _check_recursion(scope: Operation) -> None:
    """Refuse subgraphs that call themselves, directly or through others: they are structure."""
    calls = _call_graph(scope)
    for start in _on_or_between_cycles(calls):
        if not isinstance(start, SubgraphOp):
            continue
        cycle = _path_back(calls, start)
        if cycle is None:
            continue
        names = " → ".join(f"@{symbol_name(op)}" for op in cycle)
        raise SymbolError(
            f"calls itself: {names}",
            place=place_of(start),
            hint="graph.subgraph may not recurse; use func.func, or a loop in scf",
        )


def _call_graph(scope: Operation) -> dict[Operation, list[Operation]]:
    """Return, by op directly in `scope`, the ops directly in `scope` that it calls."""
    members = scope.regions[0].block.ops
    return {
        caller: [callee for callee in _callees(caller) if callee.parent is caller.parent]
        for caller in members
    }


def _callees(caller: Operation) -> Iterator[Operation]:
    for op in nested_ops(caller):
        if isinstance(op, CallOp | FuncCallOp):
            callee = lookup(op, op.callee)
            if callee is not None:
                yield callee


def _on_or_between_cycles(calls: dict[Operation, list[Operation]]) -> Iterable[Operation]:
    """Return what is left after repeatedly removing the ops that nothing left calls."""
    callers = Counter(callee for callees in calls.values() for callee in callees)
    left = dict.fromkeys(calls)
    free = [op for op in calls if not callers[op]]
    while free:
        op = free.pop()
        del left[op]
        for callee in calls[op]:
            callers[callee] -= 1
            if not callers[callee]:
                free.append(callee)
    return left


def _path_back(calls: dict[Operation, list[Operation]], start: Operation) -> list[Operation] | None:
    """Return a path of calls from `start` to itself."""
    came_from: dict[Operation, Operation] = {}
    queue = [start]
    for caller in queue:
        for callee in calls[caller]:
            if callee is start:
                path = [start, caller]
                while path[-1] is not start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if callee not in came_from:
                came_from[callee] = caller
                queue.append(callee)
    return None
