import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from xdsl.ir import Operation

from fewbit.errors import PassError, UsageError
from fewbit.ir.context import make_context
from fewbit.ir.locations import named_location, place_of
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify
from fewbit.ir.walk import nested_ops
from fewbit.passes.graph.outline_subgraph import OutlineSubgraph

RunPasses = Callable[[str, str], str]


def function(*body: str, returns: str, argument: str = "%x: i32") -> str:
    lines = "\n".join(body)
    return f"func.func @main({argument}) -> i32 {{\n{lines}\nfunc.return {returns} : i32\n}}\n"


def add(result: str, a: str, b: str, outline: str | None = None) -> str:
    mark = f' {{graph.outline = "{outline}"}}' if outline else ""
    return f"{result} = arith.addi {a}, {b}{mark} : i32"


def body(text: str, symbol: str) -> list[str]:
    """Return the lines of a subgraph or function, without its header."""
    match = re.search(rf"@{re.escape(symbol)}\(.*?\{{\n(.*?)\n  \}}", text, re.DOTALL)
    assert match is not None
    return [line.strip() for line in match.group(1).splitlines()]


def header(text: str, symbol: str) -> str:
    match = re.search(rf"graph\.subgraph @{re.escape(symbol)}(.*) \{{", text)
    assert match is not None
    return match.group(1)


def test_marked_ops_become_a_subgraph(run_passes: RunPasses):
    text = run_passes(
        function(
            add("%a", "%x", "%x"),
            add("%b", "%a", "%x", "net.fc"),
            add("%c", "%b", "%a", "net.fc"),
            add("%d", "%c", "%x"),
            returns="%d",
        ),
        "outline-subgraph",
    )
    assert body(text, "main") == [
        "%a = arith.addi %x, %x : i32",
        "%c = graph.call @net.fc(%a, %x) : (i32, i32) -> i32",
        "%d = arith.addi %c, %x : i32",
        "func.return %d : i32",
    ]
    assert header(text, "net.fc") == "(%a: i32, %x: i32) -> i32"
    assert body(text, "net.fc") == [
        "%b = arith.addi %a, %x : i32",
        "%c = arith.addi %b, %a : i32",
        "graph.return %c : i32",
    ]


def test_several_results_and_no_argument(run_passes: RunPasses):
    text = run_passes(
        """
        func.func @main() -> (i32, i32) {
          %0, %1 = "test.pureop"() {graph.outline = "s"} : () -> (i32, i32)
          func.return %1, %0 : i32, i32
        }""",
        "outline-subgraph",
    )
    assert header(text, "s") == "() -> (i32, i32)"
    assert body(text, "main")[0].endswith("graph.call @s() : () -> (i32, i32)")


def test_several_groups(run_passes: RunPasses):
    text = run_passes(
        function(add("%a", "%x", "%x", "f"), add("%b", "%a", "%x", "g"), returns="%b"),
        "outline-subgraph",
    )
    assert [line.split("@")[1][0] for line in body(text, "main")[:2]] == ["f", "g"]


def test_ops_between_stay_before_or_move_behind(run_passes: RunPasses):
    """%p is needed by the set, %q needs it, %r has nothing to do with it."""
    text = run_passes(
        function(
            add("%a", "%x", "%x", "s"),
            add("%q", "%a", "%x"),
            add("%p", "%x", "%x"),
            add("%r", "%p", "%x"),
            add("%b", "%a", "%p", "s"),
            add("%c", "%q", "%b"),
            add("%d", "%c", "%r"),
            returns="%d",
        ),
        "outline-subgraph",
    )
    assert [line.split(" ")[0] for line in body(text, "main")] == [
        "%p",
        "%r",
        "%a,",
        "%q",
        "%c",
        "%d",
        "func.return",
    ]


def test_set_that_is_not_convex_names_the_op_between():
    module = parse_module(
        function(
            add("%a", "%x", "%x", "s"),
            add("%between", "%a", "%x"),
            add("%b", "%between", "%x", "s"),
            returns="%b",
        )
    )
    with pytest.raises(PassError, match="cannot outline @s") as caught:
        OutlineSubgraph().apply(make_context(), module)
    assert caught.value.place.line == 3
    assert caught.value.place.stage == "outline-subgraph"


def test_path_through_a_region_between_counts(run_passes: RunPasses):
    text = function(
        add("%a", "%x", "%x", "s"),
        "%between = scf.if %c -> (i32) {\n scf.yield %a : i32\n} else {\n scf.yield %x : i32\n}",
        add("%b", "%between", "%x", "s"),
        returns="%b",
        argument="%c: i1, %x: i32",
    )
    with pytest.raises(PassError, match="cannot outline"):
        run_passes(text, "outline-subgraph")


def test_effects_are_not_reordered(run_passes: RunPasses):
    effect = '"test.op"({}) {mark} : (i32) -> ()'
    marked = '{graph.outline = "s"}'
    text = function(
        add("%a", "%x", "%x", "s"),
        effect.format("%x", mark=""),
        effect.format("%a", mark=marked),
        returns="%x",
    )
    with pytest.raises(PassError, match="effects stand between"):
        run_passes(text, "outline-subgraph")


def test_effects_in_a_contiguous_set_are_moved(run_passes: RunPasses):
    text = run_passes(
        function('"test.op"(%x) {graph.outline = "s"} : (i32) -> ()', returns="%x"),
        "outline-subgraph",
    )
    assert body(text, "main")[0] == "graph.call @s(%x) : (i32) -> ()"


def test_constants_are_copied_in(run_passes: RunPasses):
    text = function(
        "%k = arith.constant 1 : i32",
        "%own = arith.constant 2 : i32",
        add("%a", "%x", "%k", "s"),
        add("%b", "%a", "%own", "s"),
        add("%c", "%b", "%k"),
        returns="%c",
    )
    copied = run_passes(text, "outline-subgraph")
    assert header(copied, "s") == "(%x: i32) -> i32"
    assert body(copied, "main")[0] == "%k = arith.constant 1 : i32"
    assert "%own" not in "".join(body(copied, "main"))
    passed = run_passes(text, "outline-subgraph{pass-constants=true}")
    assert header(passed, "s") == "(%x: i32, %k: i32, %own: i32) -> i32"


def test_values_used_in_regions_are_arguments(run_passes: RunPasses):
    text = run_passes(
        function(
            add("%a", "%x", "%x"),
            '%r = scf.if %c -> (i32) {\n %b = arith.addi %a, %x : i32\n scf.yield %b : i32\n} else '
            '{\n scf.yield %x : i32\n} {graph.outline = "s"}',
            returns="%r",
            argument="%c: i1, %x: i32",
        ),
        "outline-subgraph",
    )  # fmt: skip
    assert header(text, "s") == "(%c: i1, %a: i32, %x: i32) -> i32"


def test_set_inside_a_region(run_passes: RunPasses):
    text = run_passes(
        """
        func.func @main(%c: i1, %x: i32) -> i32 {
          %r = scf.if %c -> (i32) {
            %a = arith.addi %x, %x {graph.outline = "s"} : i32
            scf.yield %a : i32
          } else {
            scf.yield %x : i32
          }
          func.return %r : i32
        }""",
        "outline-subgraph",
    )
    assert "graph.call @s(%x)" in text


def test_new_subgraph_is_on_the_device_of_the_old(run_passes: RunPasses):
    text = run_passes(
        """
        graph.subgraph @m on <npu>(%x: i32) -> i32 {
          %a = arith.addi %x, %x {graph.outline = "m.a"} : i32
          graph.return %a : i32
        }""",
        "outline-subgraph",
    )
    assert header(text, "m.a").startswith(" on <npu>")


def test_symbol_that_exists(run_passes: RunPasses):
    with pytest.raises(PassError, match="defines it already"):
        run_passes(function(add("%a", "%x", "%x", "main"), returns="%a"), "outline-subgraph")


def test_marks_in_two_blocks(run_passes: RunPasses):
    text = """
    func.func @main(%x: i32) -> i32 {
      %a = arith.addi %x, %x {graph.outline = "s"} : i32
      cf.br ^next
    ^next:
      %b = arith.addi %a, %x {graph.outline = "s"} : i32
      func.return %b : i32
    }"""
    with pytest.raises(PassError, match="one block"):
        run_passes(text, "outline-subgraph")


def test_marked_terminator(run_passes: RunPasses):
    text = """
    func.func @main(%x: i32) -> i32 {
      "func.return"(%x) {graph.outline = "s"} : (i32) -> ()
    }"""
    with pytest.raises(PassError, match="terminator"):
        run_passes(text, "outline-subgraph")


def test_mark_that_is_no_name(run_passes: RunPasses):
    text = function("%a = arith.addi %x, %x {graph.outline = 3 : i32} : i32", returns="%a")
    with pytest.raises(PassError, match="is not a name"):
        run_passes(text, "outline-subgraph")


def test_nothing_to_outline(run_passes: RunPasses):
    text = function(add("%a", "%x", "%x"), returns="%a")
    assert run_passes(text, "outline-subgraph") == run_passes(text, "canonicalize")


LAYERS = ["model.layers.0.attn", "model.layers.0.mlp", "model.layers.1.attn", "model.layers.1.mlp"]


def outlined(*scopes: str, times: int = 1) -> str:
    """Return a chain of adds, one for each of LAYERS, outlined by scope."""
    names = ["%x", "%a", "%b", "%c", "%d"]
    ops = [add(new, old, "%x") for old, new in pairwise(names)]
    module = parse_module(function(*ops, returns="%d"))
    adds = [op for op in nested_ops(module) if op.name == "arith.addi"]
    for op, layer in zip(adds, LAYERS, strict=True):
        op.location = named_location(layer, op.location)
    for _ in range(times):
        OutlineSubgraph(scopes=scopes).apply(make_context(), module)
        verify(module)
    return print_module(module)


def symbols(text: str) -> list[str]:
    return re.findall(r"graph\.subgraph @([\w.]+)", text)


def test_scope_takes_everything_below_it():
    text = outlined("model.layers.0")
    assert symbols(text) == ["model.layers.0"]
    assert len(body(text, "model.layers.0")) == 3


def test_pattern_makes_a_subgraph_for_each_module():
    assert symbols(outlined(r"re:model\.layers\.\d+")) == ["model.layers.0", "model.layers.1"]
    assert symbols(outlined("re:.*mlp")) == ["model.layers.0.mlp", "model.layers.1.mlp"]


@pytest.mark.parametrize(
    "scopes", [("re:.*attn", "model.layers.0"), ("model.layers.0", "re:.*attn")]
)
def test_inner_and_outer_scopes_nest_in_either_order(scopes: tuple[str, str]):
    text = outlined(*scopes)
    assert set(symbols(text)) == {"model.layers.0", "model.layers.0.attn", "model.layers.1.attn"}
    assert "@model.layers.0.attn" in body(text, "model.layers.0")[0]


def test_idempotent():
    scopes = ("re:.*attn", "model.layers.0")
    assert outlined(*scopes, times=2) == outlined(*scopes)


def test_scope_that_matches_nothing():
    with pytest.raises(UsageError, match="matches no name"):
        outlined("model.layers.2")


def test_inline_then_outline_restores_the_hierarchy(run_passes: RunPasses):
    text = """
    graph.subgraph @m.fc(%x: i32) -> i32 {
      %y = arith.addi %x, %x : i32
      graph.return %y : i32
    }
    func.func @main(%x: i32) -> i32 {
      %y = graph.call @m.fc(%x) : (i32) -> i32
      func.return %y : i32
    }"""
    assert run_passes(text, 'inline,outline-subgraph{scopes="m.fc"}') == run_passes(text, "cse")


def test_call_and_subgraph_carry_the_name():
    module = parse_module(function(add("%a", "%x", "%x", "net.fc"), returns="%a"))
    OutlineSubgraph().apply(make_context(), module)
    named: list[Operation] = [op for op in nested_ops(module) if place_of(op).layer == "net.fc"]
    assert [op.name for op in named] == ["graph.subgraph", "graph.call"]
    assert {place_of(op).line for op in named} == {2}
