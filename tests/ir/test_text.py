"""Text of modules: strings and attributes, printed fast and as xDSL prints them."""

from __future__ import annotations

from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import test
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, f32, i64
from xdsl.printer import Printer

from fewbit.ir.locations import named_location
from fewbit.ir.text import print_module


def print_by_xdsl(module: ModuleOp) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue() + "\n"


@given(st.text(max_size=20), st.text(max_size=20))
def test_strings_are_as_xdsl_prints_them(a: str, b: str) -> None:
    names = DictionaryAttr({"b": StringAttr(b), "both": ArrayAttr([StringAttr(a), StringAttr(b)])})
    ops = [test.TestOp(attributes={"names": names}, result_types=[f32, i64]) for _ in range(2)]
    module = ModuleOp(list(ops))
    assert print_module(module, generic=True) == print_by_xdsl(module)


def test_locations_within_locations() -> None:
    """One that stands by itself is in `loc()`, and the same within another is not."""
    ops = [test.TestOp(result_types=[f32]) for _ in range(3)]
    for op, location in zip(ops[1:], (named_location("a"), named_location("a")), strict=True):
        op.location = location
    text = print_module(ModuleOp(list(ops)), generic=True, locations=True)
    assert text.count("loc(unknown)") == 2, "the first op's and the module's"
    assert text.count('loc("a"(unknown))') == 2
