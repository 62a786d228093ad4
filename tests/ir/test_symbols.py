"""Symbol tables and lookups."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import i32
from xdsl.utils.test_value import create_ssa_value

from fewbit.ir.parse import parse_module
from fewbit.ir.symbols import SymbolTable, lookup, using, value_name
from fewbit.ir.text import print_module

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


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("layer.weight", "weight"),
        ("conv1", "conv1"),
        ("parameters.0", "parameters"),
        ("blocks.0.1", "blocks"),
        ("w._0_1", "w"),
        ("w_0", "w"),
        ("3d", "_3d"),
        ("onnx::MatMul_7", "onnx__MatMul"),
        ("1", "value"),
        ("", "value"),
    ],
)
def test_value_names_survive_copies(symbol: str, name: str) -> None:
    """xDSL cuts a number off the end of a name whenever it copies the value."""
    assert value_name(symbol) == name
    value = create_ssa_value(i32)
    for _ in range(3):
        value.name_hint = value.name_hint or value_name(symbol)
        value.name_hint = value.name_hint
    assert value.name_hint == name


def test_constants_named_by_numbers_as_operands() -> None:
    module = parse_module("""
mico.constant @"0" : tensor<2x3xf32> = dense<1.0>
func.func @main(%x: tensor<1x3xf32>) -> tensor<1x2xf32> {
  %y = mico.bitlinear(%x, @"0") : (tensor<1x3xf32>) -> tensor<1x2xf32>
  func.return %y : tensor<1x2xf32>
}""")
    assert parse_module(print_module(module.clone().clone())).is_structurally_equivalent(module)
