import re
from collections.abc import Callable

import pytest

from fewbit.errors import UsageError

RunPasses = Callable[[str, str], str]


def symbols(text: str) -> list[str]:
    return re.findall(r"(?:subgraph|func\.func(?: private)?|mico\.constant) @([\w.]+)", text)


def subgraph(name: str, callee: str | None = None) -> str:
    call = f"%y = graph.call @{callee}(%x) : (i32) -> i32" if callee else ""
    returned = "%y" if callee else "%x"
    return f"graph.subgraph @{name}(%x: i32) -> i32 {{\n{call}\ngraph.return {returned} : i32\n}}\n"


MAIN = """
func.func @main(%x: i32) -> i32 {
  %y = graph.call @used(%x) : (i32) -> i32
  func.return %y : i32
}
"""


def test_dead_chain_of_subgraphs_goes(run_passes: RunPasses):
    text = subgraph("dead", "deader") + subgraph("deader") + subgraph("used") + MAIN
    assert symbols(run_passes(text, "symbol-dce")) == ["used", "main"]


def test_what_is_reached_through_others_stays(run_passes: RunPasses):
    text = subgraph("used", "inner") + subgraph("inner") + MAIN
    assert symbols(run_passes(text, "symbol-dce")) == ["used", "inner", "main"]


def test_public_functions_stay_and_unused_private_ones_go(run_passes: RunPasses):
    text = """
    func.func private @gone() -> ()
    func.func private @called() -> ()
    func.func @main() {
      func.call @called() : () -> ()
      func.return
    }"""
    assert symbols(run_passes(text, "symbol-dce")) == ["called", "main"]


def test_without_functions_the_subgraphs_that_none_calls_are_the_entry(run_passes: RunPasses):
    text = subgraph("model", "model.fc") + subgraph("model.fc")
    assert symbols(run_passes(text, "symbol-dce")) == ["model", "model.fc"]


def test_unused_constants_go_and_scales_of_used_ones_stay(run_passes: RunPasses):
    text = """
    mico.constant @s : tensor<2xf32> = dense<1.0>
    mico.constant @w : tensor<2x4x!mico.int<4>> = dense<"0x01234567"> scale @s
    mico.constant @s2 : tensor<2xf32> = dense<1.0>
    mico.constant @w2 : tensor<2x4x!mico.int<4>> = dense<"0x01234567"> scale @s2
    func.func @main() -> tensor<2x4x!mico.int<4>> {
      %w = mico.get_constant @w : tensor<2x4x!mico.int<4>>
      func.return %w : tensor<2x4x!mico.int<4>>
    }"""
    assert symbols(run_passes(text, "symbol-dce")) == ["s", "w", "main"]


def test_calls_whose_results_nobody_uses_go_with_their_callees(run_passes: RunPasses):
    text = (
        subgraph("a")
        + subgraph("b")
        + """
    func.func @main(%x: i32) -> i32 {
      %a = graph.call @a(%x) : (i32) -> i32
      %b = graph.call @b(%a) : (i32) -> i32
      func.return %x : i32
    }"""
    )
    assert symbols(run_passes(text, "symbol-dce")) == ["main"]


def test_calls_with_an_effect_stay(run_passes: RunPasses):
    text = """
    func.func private @log(i32) -> ()
    graph.subgraph @noisy(%x: i32) -> i32 {
      func.call @log(%x) : (i32) -> ()
      graph.return %x : i32
    }
    func.func @main(%x: i32) -> i32 {
      %a = graph.call @noisy(%x) : (i32) -> i32
      func.return %x : i32
    }"""
    assert symbols(run_passes(text, "symbol-dce")) == ["log", "noisy", "main"]


def test_keep(run_passes: RunPasses):
    text = subgraph("dead", "deader") + subgraph("deader") + subgraph("used") + MAIN
    kept = symbols(run_passes(text, 'symbol-dce{keep="dead"}'))
    assert kept == ["dead", "deader", "used", "main"]


def test_keep_that_matches_nothing(run_passes: RunPasses):
    with pytest.raises(UsageError, match="matches no name"):
        run_passes(subgraph("used") + MAIN, 'symbol-dce{keep="ded"}')


def test_idempotent(run_passes: RunPasses):
    text = subgraph("dead", "deader") + subgraph("deader") + subgraph("used") + MAIN
    once = run_passes(text, "symbol-dce")
    assert run_passes(once, "symbol-dce") == once
