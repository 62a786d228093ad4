"""Symbols of a module, looked up in constant time.

xDSL finds a symbol by scanning the module, which makes verifying a module with thousands of
weights quadratic. A `SymbolTable` is built once; while it is in use (`using`), `lookup` answers
from it, and outside of that it scans.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Operation
from xdsl.traits import SymbolTable as SymbolTableTrait

_current: ContextVar[SymbolTable | None] = ContextVar("symbol_table", default=None)


class SymbolTable(Mapping[str, Operation]):
    """The symbols that the regions of one op define, by name; the first definition counts."""

    def __init__(self, module: Operation) -> None:
        self.module = module
        self._ops: dict[str, Operation] = {}
        self.duplicates: list[tuple[str, Operation]] = []
        for region in module.regions:
            for block in region.blocks:
                for op in block.ops:
                    self.add(op)

    def add(self, op: Operation) -> None:
        """Note a symbol that was just inserted, if the op is one."""
        name = symbol_name(op)
        if name is None:
            return
        if name in self._ops:
            self.duplicates.append((name, op))
            return
        self._ops[name] = op

    def __getitem__(self, name: str) -> Operation:
        return self._ops[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ops)

    def __len__(self) -> int:
        return len(self._ops)


def symbol_name(op: Operation) -> str | None:
    name = op.get_attr_or_prop("sym_name")
    return name.data if isinstance(name, StringAttr) else None


@contextmanager
def using(table: SymbolTable) -> Generator[SymbolTable]:
    """Answer lookups from `table` within the block; the caller adds symbols that it creates."""
    token = _current.set(table)
    try:
        yield table
    finally:
        _current.reset(token)


def lookup(op: Operation, name: str | SymbolRefAttr) -> Operation | None:
    """Return the op that defines `name`, seen from `op`; None where nothing does."""
    if isinstance(name, SymbolRefAttr):
        if name.nested_references.data:
            return SymbolTableTrait.lookup_symbol(op, name)
        name = name.root_reference.data
    anchor = _nearest_table(op)
    if anchor is None:
        return None
    table = _current.get()
    if table is not None and table.module is anchor:
        return table.get(name)
    return next((o for o in anchor.regions[0].block.ops if symbol_name(o) == name), None)


def _nearest_table(op: Operation) -> Operation | None:
    anchor: Operation | None = op
    while anchor is not None and not anchor.has_trait(SymbolTableTrait):
        anchor = anchor.parent_op()
    return anchor


def value_name(symbol: str) -> str:
    """Return a name for the value of a symbol: the last part of its name that is no number.

    xDSL takes a number at the end of a name, `_0`, for one that its printer added, and cuts it off
    whenever the value is copied. So it is cut off here, and what is left must be a name.
    """
    for part in reversed(symbol.split(".")):
        word = re.sub(r"[^A-Za-z0-9_$]", "_", part)
        word = re.sub(r"(_\d+)+$", "", f"_{word}" if word[:1].isdigit() else word)
        if word:
            return word
    return "value"
