"""Symbol tables and lookups."""

from __future__ import annotations

from fewbit.ir.parse import parse_module
from fewbit.ir.symbols import SymbolTable, lookup, using

TEXT = """
func.func private @a() -> ()
func.func @b() {
  func.return
}
module @inner {
  func.func private @a() -> ()
}
"""


def test_table_holds_the_symbols_of_one_level() -> None:
    table = SymbolTable(parse_module(TEXT))
    assert list(table) == ["a", "b", "inner"]
    assert not table.duplicates


def test_first_definition_counts() -> None:
    module = parse_module("func.func private @a() -> ()\nfunc.func private @a() -> ()")
    table = SymbolTable(module)
    first, second = module.body.block.ops
    assert table["a"] is first
    assert table.duplicates == [("a", second)]


def test_lookup_starts_at_the_nearest_table() -> None:
    module = parse_module(TEXT)
    table = SymbolTable(module)
    (inner_a,) = table["inner"].regions[0].block.ops
    assert lookup(inner_a, "a") is inner_a
    assert lookup(inner_a, "b") is None
    inside = next(iter(table["b"].regions[0].block.ops))
    assert lookup(inside, "a") is table["a"]


def test_lookup_answers_from_the_table_in_use() -> None:
    module = parse_module(TEXT)
    table = SymbolTable(module)
    table["a"].detach()
    assert lookup(module, "a") is None
    with using(table):
        assert lookup(module, "a") is table["a"]
    assert lookup(module, "a") is None
