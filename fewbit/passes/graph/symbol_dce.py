"""Remove symbols that nothing reaches: weights, subgraphs and private functions.

A module's roots are its public functions; in a module without any, the subgraphs that no other
subgraph calls. Everything that the roots reach through calls and references stays. A call
whose results nothing uses keeps its callee alive no longer than the call itself has an effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from fewbit.dialects import graph
from fewbit.ir.symbols import SymbolTable, symbol_name, using
from fewbit.ir.walk import nested_ops
from fewbit.passes.graph.calls import is_effect_free, symbols_used
from fewbit.passes.graph.names import NamePattern


@dataclass(frozen=True)
class SymbolDce(ModulePass):
    """Remove weights, subgraphs and private functions that nothing reaches."""

    name = "symbol-dce"

    keep: tuple[str, ...] = ()
    """Names, or patterns after `re:`, of symbols to keep though nothing uses them."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        keep = [NamePattern.parse(text) for text in self.keep]
        table = SymbolTable(op)
        for pattern in keep:
            pattern.require_match(table, self.name)
        _erase_dead_calls(op, table)
        live = _reachable(op, table, keep)
        for symbol in table.values():
            if symbol not in live:
                assert symbol.parent is not None
                symbol.parent.erase_op(symbol)


def _erase_dead_calls(module: ModuleOp, table: SymbolTable) -> None:
    """Erase unused calls, last to first, so that a call goes after the calls that used it."""
    with using(table):
        for call in reversed(list(nested_ops(module))):
            if not isinstance(call, graph.CallOp) or not is_effect_free(call):
                continue
            if all(result.first_use is None for result in call.results):
                assert call.parent is not None
                call.parent.erase_op(call)


def _reachable(module: ModuleOp, table: SymbolTable, keep: list[NamePattern]) -> set[Operation]:
    uses = {op: list(_definitions(op, table)) for op in module.ops}
    live = set(_roots(uses, keep))
    stack = list(live)
    while stack:
        for used in uses[stack.pop()]:
            if used not in live:
                live.add(used)
                stack.append(used)
    return live


def _definitions(op: Operation, table: SymbolTable) -> Iterator[Operation]:
    for reference in symbols_used(op):
        definition = table.get(reference.root_reference.data)
        if definition is not None:
            yield definition


def _roots(uses: dict[Operation, list[Operation]], keep: list[NamePattern]) -> Iterator[Operation]:
    has_entry = any(
        isinstance(op, func.FuncOp) and not _is_private(op) and not op.is_declaration for op in uses
    )
    called = {used for op, all_used in uses.items() for used in all_used if used is not op}
    for op in uses:
        is_entry = not has_entry and isinstance(op, graph.SubgraphOp) and op not in called
        is_kept = any(pattern.selects(symbol_name(op) or "") for pattern in keep)
        if is_entry or is_kept or not _may_go(op):
            yield op


def _may_go(op: Operation) -> bool:
    """Return whether an unused symbol may be erased; of functions, only private ones may."""
    if isinstance(op, graph.SubgraphOp) or op.name == "mico.constant":
        return True
    return symbol_name(op) is not None and _is_private(op)


def _is_private(op: Operation) -> bool:
    return op.get_attr_or_prop("sym_visibility") == StringAttr("private")
