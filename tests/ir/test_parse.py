"""Parsing: locations, excerpts, and errors instead of tracebacks."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

from fewbit.errors import ParseError
from fewbit.interpreter.constants import read_constant
from fewbit.ir.locations import named_location, place_of
from fewbit.ir.parse import MAX_NESTING, parse_file, parse_module
from fewbit.ir.text import print_module


def test_ops_know_their_line() -> None:
    module = parse_module("func.func @f() {\n\n  func.return\n}", "a.mlir")
    places = [(place_of(op).line, place_of(op).column) for op in module.walk()]
    assert places[1:] == [(1, 1), (3, 3)]
    assert str(place_of(list(module.walk())[2])) == "a.mlir:3:3, op 'func.return'"


def test_given_locations_are_kept() -> None:
    module = parse_module('func.func private @f() -> () loc("model.py":7:3)', "a.mlir")
    (op,) = module.body.block.ops
    assert (place_of(op).file, place_of(op).line) == ("model.py", 7)


def test_module_path_of_a_location_is_the_layer() -> None:
    (op,) = parse_module("func.func private @f() -> ()", "a.mlir").body.block.ops
    op.location = named_location("layers.0.mlp", op.location)
    assert str(place_of(op)) == "a.mlir:1:1, layer 'layers.0.mlp', op 'func.func'"
    again = parse_module(print_module(op.parent_op(), locations=True))  # pyright: ignore[reportArgumentType]
    assert place_of(next(iter(again.body.block.ops))).layer == "layers.0.mlp"


def test_an_op_with_another_location_is_within_one_of_the_file() -> None:
    text = 'func.func @f() {\n  func.return loc("layers.0.mlp")\n}\n'
    module = parse_module(text, "a.mlir")
    assert str(place_of(list(module.walk())[2])).startswith("a.mlir:1:1, layer 'layers.0.mlp'")


def test_first_line_shifts_places() -> None:
    with pytest.raises(ParseError) as caught:
        parse_module("module {\n  nonsense\n}", "a.mlir", first_line=11)
    assert caught.value.place.line == 12


def test_unknown_op_names_a_close_one() -> None:
    with pytest.raises(ParseError, match=r"did you mean arith\.constant") as caught:
        parse_module("%0 = arith.constnat 1 : i32")
    assert caught.value.place.column == 6


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "module {",
        "%0 = ",
        "func.func @f(",
        '"a"',
        "module { %0 = arith.constant 1 : }",
        "\0",
        "func.func @f() { func.return %x : i32 }",
        "!a = !a",
        "#a = #b",
        "module attributes {a = ",
        "func.func @f() { arith.addi }",
        "unknown.op",
        '"unknown.op"() : () -> ()',
    ],
)
def test_malformed_text_is_a_parse_error(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_module(text, "bad.mlir")
    assert caught.value.place.file == "bad.mlir"
    assert caught.value.what


def test_text_without_ops_is_an_empty_module() -> None:
    for text in ("", "\n", "// nothing\n"):
        assert print_module(parse_module(text)) == "builtin.module {\n}\n"


def test_excerpt_points_at_the_token() -> None:
    with pytest.raises(ParseError) as caught:
        parse_module("module {\n  %x = arith.constant ? : i32\n}")
    assert caught.value.excerpt == "    %x = arith.constant ? : i32\n" + " " * 24 + "^"


def test_excerpt_of_a_long_line_is_short() -> None:
    with pytest.raises(ParseError) as caught:
        parse_module(f'"{"a" * 5000}" ? ')
    assert caught.value.excerpt is not None
    assert max(map(len, caught.value.excerpt.splitlines())) < 120


def test_deep_nesting_is_refused() -> None:
    deep = "module {" * (MAX_NESTING + 1) + "}" * (MAX_NESTING + 1)
    with pytest.raises(ParseError, match="nest"):
        parse_module(deep)
    with pytest.raises(ParseError):
        parse_module("func.func private @f(" + "tuple<" * 50000 + ">" * 50000 + ") -> ()")


def test_floats_by_their_bits() -> None:
    text = "%0 = arith.constant dense<[0x7F800000, 0xFF800000, 0x3F800000]> : tensor<3xf32>"
    (op,) = parse_module(text).body.block.ops
    assert isinstance(op, arith.ConstantOp)
    assert isinstance(op.value, DenseIntOrFPElementsAttr)
    assert list(op.value.get_values()) == [np.inf, -np.inf, 1.0]
    ints = parse_module("%0 = arith.constant dense<[0x10, 2]> : tensor<2xi32>").body.block.first_op
    assert isinstance(ints, arith.ConstantOp)
    assert isinstance(ints.value, DenseIntOrFPElementsAttr)
    assert list(ints.value.get_values()) == [16, 2]
    with pytest.raises(ParseError, match="bits"):
        parse_module("%0 = arith.constant dense<0x1FFFFFFFFF> : tensor<3xf32>")


SPLATS = [
    ("dense<1.5>", "f32", 1.5), ("dense<-3>", "i8", -3), ('dense<"0x0000C03F">', "f32", 1.5),
    ("dense<0xFF800000>", "f32", -np.inf), ("dense<true>", "i1", True), ("dense<-0.0>", "f64", -0.0),
]  # fmt: skip


@pytest.mark.parametrize(("splat", "element", "value"), SPLATS, ids=str)
@pytest.mark.parametrize("rows", [3, 20000])
def test_a_splat_takes_the_memory_of_one_element(
    splat: str, element: str, value: float, rows: int
) -> None:
    text = f"%0 = arith.constant {splat} : tensor<{rows}x20000x{element}>"
    tracemalloc.start()
    module = parse_module(text)
    printed = print_module(module)
    again = print_module(parse_module(printed))
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()
    assert again == printed
    small = text.replace(f"{rows}x20000", "3x4")
    for shape, kept in (((rows, 20000), text), ((3, 4), small)):
        (op,) = parse_module(kept).body.block.ops
        assert isinstance(op, arith.ConstantOp)
        found = read_constant(op.value, op.result.type)
        assert found.shape == shape
        assert found[-1, -1] == value
        assert np.signbit(found[-1, -1]) == np.signbit(value) or element == "i1"


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text("module {\n}")
    assert print_module(parse_file(path)) == "builtin.module {\n}\n"
    with pytest.raises(ParseError, match="cannot read"):
        parse_file(tmp_path / "missing.mlir")
    with pytest.raises(ParseError, match="cannot read"):
        parse_file(tmp_path)
    path.write_bytes(b"ML\xefR\x00\xff\xfe")
    with pytest.raises(ParseError, match="not text"):
        parse_file(path)
