import re
from collections.abc import Callable

import pytest

from fewbit.errors import UsageError
from fewbit.ir.context import make_context
from fewbit.ir.locations import place_of
from fewbit.ir.parse import parse_module
from fewbit.ir.walk import nested_ops
from fewbit.passes.graph.inline import Inline

RunPasses = Callable[[str, str], str]

T = "tensor<4xf32>"
CALL = f"({T}) -> {T}"


def subgraph(name: str, *calls: str, device: str = "") -> str:
    on = f" on <{device}>" if device else ""
    lines = ["%0 = arith.negf %x : tensor<4xf32>"]
    lines += [f"%{i} = graph.call @{c}(%{i - 1}) : {CALL}" for i, c in enumerate(calls, 1)]
    lines.append(f"graph.return %{len(calls)} : {T}")
    return "\n".join([f"graph.subgraph @{name}{on}(%x: {T}) -> {T} {{", *lines, "}\n"])


def main(callee: str, call: str = "graph.call") -> str:
    return f"""
    func.func @main(%x: {T}) -> {T} {{
      %y = {call} @{callee}(%x) : {CALL}
      func.return %y : {T}
    }}"""


def symbols(text: str) -> list[str]:
    return re.findall(r"(?:graph\.subgraph|func\.func(?: private)?) @([\w.]+)", text)


def calls(text: str) -> list[str]:
    return re.findall(r"call @([\w.]+)", text)


def test_nested_calls_vanish_with_their_callees(run_passes: RunPasses):
    text = run_passes(
        subgraph("model", "model.a", "model.b")
        + subgraph("model.a", "model.a.fc")
        + subgraph("model.a.fc")
        + subgraph("model.b")
        + main("model"),
        "inline",
    )
    assert symbols(text) == ["main"]
    assert text.count("arith.negf") == 4


def test_callee_of_two_calls_is_copied_twice(run_passes: RunPasses):
    text = run_passes(subgraph("m", "s", "s") + subgraph("s") + main("m"), "inline")
    assert text.count("arith.negf") == 3


def test_results_are_connected_in_order(run_passes: RunPasses):
    text = run_passes(
        """
        graph.subgraph @swap(%a: i32, %b: i32) -> (i32, i32) {
          graph.return %b, %a : i32, i32
        }
        func.func @main(%a: i32, %b: i32) -> (i32, i32) {
          %c, %d = graph.call @swap(%a, %b) : (i32, i32) -> (i32, i32)
          func.return %c, %d : i32, i32
        }""",
        "inline",
    )
    assert "func.return %b, %a : i32, i32" in text


def test_calls_inside_regions(run_passes: RunPasses):
    text = run_passes(
        subgraph("s")
        + f"""
        func.func @main(%c: i1, %x: {T}) -> {T} {{
          %r = scf.if %c -> ({T}) {{
            %y = graph.call @s(%x) : {CALL}
            scf.yield %y : {T}
          }} else {{
            scf.yield %x : {T}
          }}
          func.return %r : {T}
        }}""",
        "inline",
    )
    assert calls(text) == []
    assert re.search(r"scf\.if.*\n\s+%\S+ = arith\.negf", text)


def test_bodies_with_regions_are_copied_whole(run_passes: RunPasses):
    text = run_passes(
        """
        graph.subgraph @s(%c: i1, %a: i32) -> i32 {
          %r = scf.if %c -> (i32) {
            %b = arith.addi %a, %a : i32
            scf.yield %b : i32
          } else {
            scf.yield %a : i32
          }
          graph.return %r : i32
        }
        func.func @main(%c: i1, %a: i32) -> i32 {
          %0 = graph.call @s(%c, %a) : (i1, i32) -> i32
          %1 = graph.call @s(%c, %0) : (i1, i32) -> i32
          func.return %1 : i32
        }""",
        "inline",
    )
    assert text.count("scf.if") == 2


def test_only(run_passes: RunPasses):
    text = run_passes(
        subgraph("model", "model.a", "model.b") + subgraph("model.a") + subgraph("model.b")
        + main("model"),
        'inline{only="re:.*b"}',
    )  # fmt: skip
    assert symbols(text) == ["model", "model.a", "main"]
    assert calls(text) == ["model.a", "model"]


def test_only_that_matches_nothing(run_passes: RunPasses):
    with pytest.raises(UsageError, match="matches no name"):
        run_passes(subgraph("s") + main("s"), 'inline{only="t"}')


def test_other_device_stays_a_call(run_passes: RunPasses):
    text = subgraph("model", "model.a", device="npu") + subgraph("model.a", device="npu")
    text += main("model")
    assert calls(run_passes(text, "inline")) == ["model"]
    assert calls(run_passes(text, "inline{across-devices=true}")) == []


def test_subgraph_without_a_device_belongs_to_its_caller(run_passes: RunPasses):
    """`b` is on `a`'s device, and calls `c`, which is so once `b` is gone."""
    text = (
        subgraph("a", "b", device="npu") + subgraph("b", "c") + subgraph("c", device="npu")
        + main("a")
    )  # fmt: skip
    assert calls(run_passes(text, "inline")) == ["a"]


def test_functions_are_the_host(run_passes: RunPasses):
    text = f"""
    func.func private @host(%x: {T}) -> {T} {{ func.return %x : {T} }}
    graph.subgraph @s on <npu>(%x: {T}) -> {T} {{
      %y = func.call @host(%x) : {CALL}
      graph.return %y : {T}
    }}"""
    assert calls(run_passes(text, "inline")) == ["host"]


def test_private_functions_go_and_public_ones_stay(run_passes: RunPasses):
    function = f"func.func {{}} @f(%x: {T}) -> {T} {{{{ func.return %x : {T} }}}}\n"
    private = run_passes(function.format("private") + main("f", "func.call"), "inline")
    public = run_passes(function.format("") + main("f", "func.call"), "inline")
    assert symbols(private) == ["main"]
    assert symbols(public) == ["f", "main"]
    assert calls(private + public) == []


def test_declarations_and_branching_callees_stay(run_passes: RunPasses):
    text = f"""
    func.func private @kernel({T}) -> {T}
    func.func private @branches(%x: {T}) -> {T} {{
      cf.br ^next
    ^next:
      func.return %x : {T}
    }}
    func.func @main(%x: {T}) -> {T} {{
      %y = func.call @kernel(%x) : {CALL}
      %z = func.call @branches(%y) : {CALL}
      func.return %z : {T}
    }}"""
    assert calls(run_passes(text, "inline")) == ["kernel", "branches"]


def test_recursion_stays_a_call(run_passes: RunPasses):
    text = f"""
    func.func private @forever(%x: {T}) -> {T} {{
      %a = arith.negf %x : {T}
      %y = func.call @forever(%a) : {CALL}
      func.return %y : {T}
    }}"""
    inlined = run_passes(text + main("forever", "func.call"), "inline")
    assert calls(inlined) == ["forever", "forever"]
    assert inlined.count("arith.negf") == 2


def test_mutual_recursion_ends(run_passes: RunPasses):
    text = f"""
    func.func private @even(%x: {T}) -> {T} {{
      %y = func.call @odd(%x) : {CALL}
      func.return %y : {T}
    }}
    func.func private @odd(%x: {T}) -> {T} {{
      %y = func.call @even(%x) : {CALL}
      func.return %y : {T}
    }}"""
    inlined = run_passes(text + main("even", "func.call"), "inline")
    assert symbols(inlined) == ["even", "main"]


def test_ops_remember_the_layer_that_they_came_from():
    module = parse_module(subgraph("model", "model.fc") + subgraph("model.fc") + main("model"))
    Inline().apply(make_context(), module)
    layers = [place_of(op).layer for op in nested_ops(module) if op.name == "arith.negf"]
    lines = [place_of(op).line for op in nested_ops(module) if op.name == "arith.negf"]
    assert layers == ["model", "model.fc"]
    assert lines == [2, 7]


def test_idempotent(run_passes: RunPasses):
    once = run_passes(
        subgraph("model", "model.a") + subgraph("model.a", device="npu") + main("model"), "inline"
    )
    assert run_passes(once, "inline") == once


def test_functions_are_on_the_default_device(run_passes: RunPasses):
    placed = run_passes(subgraph("near") + main("near"), "place-devices,inline")
    assert calls(placed) == []
    elsewhere = subgraph("s", device="dsp") + main("s")
    assert calls(run_passes(elsewhere, "inline")) == ["s"]
    assert calls(run_passes(elsewhere, "inline{default=dsp}")) == []


def test_function_called_from_another_device_stays(run_passes: RunPasses):
    host = f"func.func private @host(%x: {T}) -> {T} {{ func.return %x : {T} }}\n"
    caller = f"""
    graph.subgraph @s on <{{}}>(%x: {T}) -> {T} {{{{
      %y = func.call @host(%x) : {CALL}
      graph.return %y : {T}
    }}}}"""
    assert calls(run_passes(host + caller.format("npu"), "inline")) == ["host"]
    assert calls(run_passes(host + caller.format("cpu"), "inline")) == []
