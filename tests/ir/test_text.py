"""Text of modules: strings and attributes, printed fast and as xDSL prints them."""

from __future__ import annotations

from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import test
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, f32, i64
from xdsl.printer import Printer

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
