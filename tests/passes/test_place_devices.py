import re
from collections.abc import Callable

import pytest

from fewbit.errors import UsageError

RunPasses = Callable[[str, str], str]

T = "tensor<4xf32>"
CALL = f"({T}) -> {T}"


def subgraph(name: str, *body: str, device: str = "", returns: str = "%x") -> str:
    on = f" on <{device}>" if device else ""
    head = f"graph.subgraph @{name}{on}(%x: {T}) -> {T} {{"
    return "\n".join([head, *body, f"graph.return {returns} : {T}", "}\n"])


def main(*body: str, returns: str) -> str:
    lines = "\n".join(body)
    return f"func.func @main(%x: {T}) -> {T} {{\n{lines}\nfunc.return {returns} : {T}\n}}\n"


def call(result: str, callee: str, argument: str) -> str:
    return f"{result} = graph.call @{callee}({argument}) : {CALL}"


CHAIN = (
    subgraph("net.a")
    + subgraph("net.b")
    + subgraph("net.c")
    + main(
        call("%a", "net.a", "%x"),
        call("%b", "net.b", "%a"),
        call("%c", "net.c", "%b"),
        returns="%c",
    )
)


def devices(text: str) -> dict[str, str]:
    return dict(re.findall(r"graph.subgraph @(\S+) on <([^>]+)>", text))


def transfers(text: str) -> list[tuple[str, str]]:
    return re.findall(r"graph.transfer %\w+ from <([^>]+)> to <([^>]+)>", text)


def test_everything_on_the_default_needs_no_transfer(run_passes: RunPasses):
    text = run_passes(CHAIN, "place-devices")
    assert devices(text) == {"net.a": "cpu", "net.b": "cpu", "net.c": "cpu"}
    assert transfers(text) == []


def test_any_number_of_splits(run_passes: RunPasses):
    text = run_passes(CHAIN, 'place-devices{rules="net.a=npu","net.b=gpu","net.c=npu"}')
    assert devices(text) == {"net.a": "npu", "net.b": "gpu", "net.c": "npu"}
    assert transfers(text) == [("cpu", "npu"), ("npu", "gpu"), ("gpu", "npu"), ("npu", "cpu")]


def test_neighbours_on_one_device_need_no_transfer_between_them(run_passes: RunPasses):
    text = run_passes(CHAIN, 'place-devices{rules="re:net.[ab]=npu"}')
    assert transfers(text) == [("cpu", "npu"), ("npu", "cpu")]


def test_first_rule_decides_and_a_name_covers_what_is_below(run_passes: RunPasses):
    text = run_passes(CHAIN, 'place-devices{rules="net.b=gpu:1","net=npu" default=host}')
    assert devices(text) == {"net.a": "npu", "net.b": "gpu:1", "net.c": "npu"}


def test_one_transfer_serves_all_uses_on_a_device(run_passes: RunPasses):
    text = run_passes(
        subgraph("s")
        + main(
            call("%a", "s", "%x"),
            call("%b", "s", "%x"),
            "%c = arith.addf %a, %b : tensor<4xf32>",
            "%d = arith.mulf %a, %c : tensor<4xf32>",
            returns="%d",
        ),
        'place-devices{rules="s=npu"}',
    )
    assert transfers(text) == [("cpu", "npu"), ("npu", "cpu"), ("npu", "cpu")]


def test_transfers_inside_subgraphs(run_passes: RunPasses):
    inner = subgraph("net.inner")
    outer = subgraph("net", call("%y", "net.inner", "%x"), returns="%y")
    text = run_passes(
        inner + outer + main(call("%y", "net", "%x"), returns="%y"),
        'place-devices{rules="net.inner=gpu","net=npu"}',
    )
    assert transfers(text) == [("npu", "gpu"), ("gpu", "npu"), ("cpu", "npu"), ("npu", "cpu")]


def test_use_in_a_region_gets_its_transfer_at_the_definition(run_passes: RunPasses):
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
        'place-devices{rules="s=npu"}',
    )
    assert transfers(text) == [("cpu", "npu"), ("npu", "cpu")]
    assert text.index("to <npu>") < text.index("scf.if")


def test_constants_are_transferred_too(run_passes: RunPasses):
    text = run_passes(
        subgraph("s")
        + main(
            "%k = arith.constant dense<1.0> : tensor<4xf32>",
            call("%y", "s", "%k"),
            returns="%y",
        ),
        'place-devices{rules="s=npu"}',
    )
    assert transfers(text) == [("cpu", "npu"), ("npu", "cpu")]


def test_functions_run_on_the_default_and_declarations_where_they_are_called(
    run_passes: RunPasses,
):
    text = run_passes(
        f"func.func private @kernel({T}) -> {T}\n"
        f"func.func @host(%x: {T}) -> {T} {{ func.return %x : {T} }}\n"
        + subgraph("near", f"%y = func.call @kernel(%x) : {CALL}", returns="%y")
        + subgraph("far", f"%y = func.call @host(%x) : {CALL}", returns="%y"),
        'place-devices{rules="near=npu","far=npu"}',
    )
    near, far = text.split("@far")
    assert transfers(near) == []
    assert transfers(far) == [("npu", "cpu"), ("cpu", "npu")]


def test_idempotent(run_passes: RunPasses):
    rules = 'place-devices{rules="net.a=npu","net.b=gpu","net.c=npu"}'
    once = run_passes(CHAIN, rules)
    assert run_passes(once, rules) == once
    assert run_passes(once, "place-devices") == once


def test_new_rules_replace_old_transfers(run_passes: RunPasses):
    split = run_passes(CHAIN, 'place-devices{rules="net.a=npu","net.b=gpu","net.c=npu"}')
    joined = run_passes(split, 'place-devices{rules="net=dsp"}')
    assert joined == run_passes(CHAIN, 'place-devices{rules="net=dsp"}')
    assert transfers(joined) == [("cpu", "dsp"), ("dsp", "cpu")]


def test_devices_are_named_as_targets_are(run_passes: RunPasses):
    rules = '"net.a=cpu:x86-64-v3","net.b=iree-cuda:sm_90","net.c=gemmini:8x8"'
    text = run_passes(CHAIN, f"place-devices{{rules={rules} default=iree-cpu}}")
    assert devices(text) == {
        "net.a": "cpu:x86-64-v3",
        "net.b": "iree-cuda:sm_90",
        "net.c": "gemmini:8x8",
    }
    assert run_passes(text, "place-devices{default=iree-cpu}") == text


LAYERS = """
graph.subgraph @model(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = mico.relu(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("act1")
  %k = arith.constant dense<1.0> : tensor<4xf32>
  %b = mico.relu(%a) : (tensor<4xf32>) -> tensor<4xf32> loc("act1")
  %c = arith.addf %b, %k : tensor<4xf32>
  %d = mico.relu(%c) : (tensor<4xf32>) -> tensor<4xf32> loc("act1")
  %e = mico.relu(%d) : (tensor<4xf32>) -> tensor<4xf32> loc("act2")
  graph.return %e : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.call @model(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""


def test_a_layer_that_is_an_op_becomes_a_subgraph(run_passes: RunPasses):
    """Ops of a layer in a row are one subgraph; the name of the root may be left out or given."""
    text = run_passes(LAYERS, 'place-devices{rules="act1=npu","model.act2=dsp"}')
    assert devices(text) == {"act1": "npu", "act1.2": "npu", "act2": "dsp", "model": "cpu"}
    assert text.split("@act1 ")[1].split("graph.return")[0].count("mico.relu") == 2
    assert len(transfers(text)) == 5


def test_a_layer_on_the_device_around_it_stays(run_passes: RunPasses):
    text = run_passes(LAYERS, 'place-devices{rules="re:.*=cpu"}')
    assert devices(text) == {"model": "cpu"}
    assert transfers(text) == []


def test_control_flow_is_on_one_device(run_passes: RunPasses):
    loop = f"""func.func @main(%c: i1, %x: {T}) -> {T} {{
      %r = scf.if %c -> ({T}) {{
        %a = mico.relu(%x) : ({T}) -> {T} loc("a")
        %b = mico.relu(%a) : ({T}) -> {T} loc("b")
        scf.yield %b : {T}
      }} else {{
        scf.yield %x : {T}
      }}
      func.return %r : {T}
    }}"""
    with pytest.raises(UsageError, match=r"one 'scf\.if' would be on several devices: dsp, npu"):
        run_passes(loop, 'place-devices{rules="a=npu","b=dsp"}')
    assert devices(run_passes(loop, 'place-devices{rules="re:[ab]=npu"}')) == {"a": "npu"}


def test_device_that_the_text_gives_is_kept(run_passes: RunPasses):
    text = run_passes(
        subgraph("s", device="npu") + main(call("%y", "s", "%x"), returns="%y"), "place-devices"
    )
    assert devices(text) == {"s": "npu"}
    assert len(transfers(text)) == 2


def test_rule_that_matches_nothing(run_passes: RunPasses):
    with pytest.raises(UsageError, match=r"'net\.d' matches no name"):
        run_passes(CHAIN, 'place-devices{rules="net.a=npu","net.d=gpu"}')


@pytest.mark.parametrize("rule", ["net.a", "net.a=", "=npu"])
def test_malformed_rule(run_passes: RunPasses, rule: str):
    with pytest.raises(UsageError):
        run_passes(CHAIN, f'place-devices{{rules="{rule}"}}')


@pytest.mark.parametrize(
    ("options", "source"),
    [
        ('rules="net=n p u"', "the rule 'net=n p u'"),
        ('rules="net.a=npu","net.b=9bad"', "the rule 'net.b=9bad'"),
        ('default=""', "the option default=''"),
        ('rules="net=npu" default="9bad"', "the option default='9bad'"),
    ],
)
def test_device_name_that_is_none(run_passes: RunPasses, options: str, source: str):
    with pytest.raises(UsageError, match=f"is not a device name, in {source}"):
        run_passes(CHAIN, f"place-devices{{{options}}}")
