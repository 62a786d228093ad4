"""The graph dialect: what it accepts, and what it refuses."""

from __future__ import annotations

import pytest

from fewbit.errors import ParseError, SymbolError, VerifyError
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify

T = "tensor<1x?x256xf32>"
LEAF = f"graph.subgraph @a(%x: {T}) -> {T} {{\n  graph.return %x : {T}\n}}\n"


def caller(body: str, name: str = "m") -> str:
    return f"graph.subgraph @{name}(%x: {T}) -> {T} {{\n  {body}\n  graph.return %y : {T}\n}}\n"


def test_dotted_symbols_and_devices_print_as_written() -> None:
    text = f"""builtin.module {{
  graph.subgraph @model.layers.0.mlp on <npu:1>(%x: {T}) -> {T} {{
    graph.return %x : {T}
  }}
  graph.subgraph @model(%x: {T}) -> {T} {{
    %y = graph.call @model.layers.0.mlp(%x) : ({T}) -> {T}
    %z = graph.transfer %y from <npu:1> to <cpu> : {T}
    graph.return %z : {T}
  }}
}}
"""
    module = parse_module(text)
    verify(module)
    assert print_module(module) == text


@pytest.mark.parametrize(
    "device", ["npu", "iree-cpu", "cpu:x86-64-v3", "iree-cuda:sm_90", "gemmini:8x8"]
)
def test_devices_are_named_as_targets_are(device: str) -> None:
    text = f"""builtin.module {{
  graph.subgraph @a on <{device}>(%x: {T}) -> {T} {{
    graph.return %x : {T}
  }}
}}
"""
    module = parse_module(text)
    verify(module)
    assert print_module(module) == text


@pytest.mark.parametrize("device", ["7", "", "a b", "a:", "a::b", "a:b:c", "n p u"])
def test_what_is_no_device_is_refused(device: str) -> None:
    with pytest.raises(ParseError):
        parse_module(f"graph.subgraph @a on <{device}>(%x: {T}) {{\n}}")


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        pytest.param(LEAF + LEAF, "a", 4, id="duplicate symbol"),
        pytest.param(
            caller(f"%y = graph.call @b(%x) : ({T}) -> {T}"),
            "no graph.subgraph is named @b",
            2,
            id="dangling call",
        ),
        pytest.param(
            LEAF + caller(f"%y = graph.call @a(%x, %x) : ({T}, {T}) -> {T}"),
            "@a has the signature",
            5,
            id="operands differ from the signature",
        ),
        pytest.param(
            LEAF + caller(f"%y, %z = graph.call @a(%x) : ({T}) -> ({T}, {T})"),
            "@a has the signature",
            5,
            id="results differ from the signature",
        ),
        pytest.param(
            "mico.constant @a : tensor<1xf32> = dense<1.0>\n"
            + caller(f"%y = graph.call @a(%x) : ({T}) -> {T}"),
            "@a is a mico.constant, not a graph.subgraph",
            3,
            id="not a subgraph",
        ),
        pytest.param(caller(f"%y = graph.call @m(%x) : ({T}) -> {T}"), "@m", 1, id="calls itself"),
        pytest.param(
            caller(f"%y = graph.call @q(%x) : ({T}) -> {T}", "p")
            + caller(f"%y = graph.call @p(%x) : ({T}) -> {T}", "q"),
            "@p",
            1,
            id="call each other",
        ),
        pytest.param(
            caller(f"%y = graph.transfer %x from <cpu> to <cpu> : {T}"),
            "transfers from <cpu> to itself",
            2,
            id="transfer to itself",
        ),
        pytest.param(
            f"graph.subgraph @a(%x: {T}) -> tensor<2xf32> {{\n  graph.return %x : {T}\n}}",
            "whose signature says (tensor<2xf32>)",
            2,
            id="return of another type",
        ),
        pytest.param(
            f'"graph.subgraph"() <{{sym_name = "a", function_type = ({T}) -> (), '
            'device = "not a name"}> ({\n^bb0(%x: ' + T + '):\n  "graph.return"() : () -> ()\n'
            "}) : () -> ()",
            "'not a name' is not a device name",
            1,
            id="device name",
        ),
        pytest.param(
            "%0 = arith.constant 1 : i32\ngraph.subgraph @a() -> i32 {\n  graph.return %0 : i32\n}",
            "",
            3,
            id="value from outside",
        ),
    ],
)
def test_is_refused_at_its_line(text: str, message: str, line: int) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(parse_module(text, "bad.mlir"))
    assert message in caught.value.what
    assert caught.value.place.line == line


def test_duplicates_and_recursion_are_symbol_errors() -> None:
    for text in (LEAF + LEAF, caller(f"%y = graph.call @m(%x) : ({T}) -> {T}")):
        with pytest.raises(SymbolError):
            verify(parse_module(text))


def test_device_syntax_is_located() -> None:
    with pytest.raises(ParseError) as caught:
        parse_module(f"graph.subgraph @a on <7>(%x: {T}) {{\n}}")
    assert (caught.value.place.line, caught.value.place.column) == (1, 23)
