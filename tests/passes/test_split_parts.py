"""Placed programs, split: they compute what they did, and parts are as few as they can be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.dialects.graph import CallOp, SubgraphOp, TransferOp
from fewbit.errors import UnsupportedError, UsageError
from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from fewbit.ir.verify import verify
from fewbit.passes.graph.place_devices import PlaceDevices
from fewbit.pipeline.compilation import run_passes
from fewbit.pipeline.entry import entry_of
from fewbit.program.program import Program

RunPasses = Callable[[str, str], str]
T = "tensor<4xf32>"
DEVICES = ("cpu", "npu", "gpu:1")


def split(text: str, *rules: str) -> Program:
    spec = f"rules={','.join(map(json.dumps, rules))} " if rules else ""
    return run_passes(Program.parse(text), f"place-devices{{{spec}default=cpu}}", "split-parts")


def parts(program: Program) -> list[SubgraphOp]:
    """The parts, in the order of their calls."""
    symbols = {op.sym_name.data: op for op in program.module.ops if isinstance(op, SubgraphOp)}
    calls = [op for op in entry_of(program.module).body.block.ops if isinstance(op, CallOp)]
    return [symbols[call.callee.root_reference.data] for call in calls]


def list_moves(program: Program) -> list[tuple[str, str]]:
    transfers = [op for op in program.module.walk() if isinstance(op, TransferOp)]
    return [(op.from_device.data, op.to_device.data) for op in transfers]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A program of ops in any order of reading, some in subgraphs, and a device for each."""
    count = draw(st.integers(1, 9))
    lines, subgraphs, rules = list[str](), list[str](), list[str]()
    values = ["%x", "%w"]
    for i in range(count):
        a, b = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        rules.append(f"m{i}={draw(st.sampled_from(DEVICES))}")
        if draw(st.booleans()):
            body = f"  %r = mico.add(%a, %b) : ({T}, {T}) -> {T}\n  graph.return %r : {T}\n"
            subgraphs.append(f"graph.subgraph @m{i}(%a: {T}, %b: {T}) -> {T} {{\n{body}}}")
            lines.append(f"  %v{i} = graph.call @m{i}({a}, {b}) : ({T}, {T}) -> {T}")
        else:
            lines.append(f'  %v{i} = mico.add({a}, {b}) : ({T}, {T}) -> {T} loc("m{i}")')
        values.append(f"%v{i}")
    returned = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    types = ", ".join([T] * len(returned))
    text = "\n".join(
        [
            f"mico.constant @w : {T} = dense<[1.0, -2.0, 3.0, 0.5]>",
            *subgraphs,
            f"func.func @main(%x: {T}) -> ({types}) {{",
            f"  %w = mico.get_constant @w : {T}",
            *lines,
            f"  func.return {', '.join(returned)} : {types}",
            "}",
        ]
    )
    return text, rules


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_any_placement_computes_the_same(drawn: tuple[str, list[str]]) -> None:
    text, rules = drawn
    program = split(text, *rules)
    x = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    expected = interpret(parse_module(text), x)
    for actual, wanted in zip(interpret(program.module, x), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)
    verify(program.module)
    placed = [part.device_name for part in parts(program)]
    assert all(a != b for a, b in pairwise(placed)) or len(set(placed)) > 2
    calls = [op for op in program.module.walk() if isinstance(op, CallOp)]
    devices = {
        op.sym_name.data: op.device_name for op in program.module.ops if isinstance(op, SubgraphOp)
    }
    for call in calls:
        around = call.parent_op()
        if isinstance(around, SubgraphOp):
            assert devices[call.callee.root_reference.data] == around.device_name


def subgraph(name: str) -> str:
    return f"""graph.subgraph @{name}(%x: {T}) -> {T} {{
      %y = mico.relu(%x) : ({T}) -> {T}
      graph.return %y : {T}
    }}
    """


def chain(*names: str) -> str:
    lines, value = list[str](), "%x"
    for name in names:
        lines.append(f"%{name} = graph.call @{name}({value}) : ({T}) -> {T}")
        value = f"%{name}"
    body = "\n".join(lines)
    head = "".join(map(subgraph, dict.fromkeys(names)))
    return f"{head}func.func @main(%x: {T}) -> {T} {{\n{body}\nfunc.return {value} : {T}\n}}"


def test_neighbours_of_one_device_are_one_part() -> None:
    program = split(chain("a", "b", "c", "d"), "re:[bc]=npu")
    assert [part.device_name for part in parts(program)] == ["cpu", "npu", "cpu"]
    assert list_moves(program) == [("cpu", "npu"), ("npu", "cpu")]


def test_all_on_one_device_is_one_part_without_transfers() -> None:
    program = split(chain("a", "b"))
    assert len(parts(program)) == 1
    assert list_moves(program) == []


def test_branches_of_a_device_are_one_part() -> None:
    """Two branches that do not need each other are computed in one call."""
    text = f"""{subgraph("a")}{subgraph("b")}
    func.func @main(%x: {T}) -> {T} {{
      %p = graph.call @a(%x) : ({T}) -> {T}
      %q = graph.call @b(%x) : ({T}) -> {T}
      %r = mico.add(%p, %q) : ({T}, {T}) -> {T}
      func.return %r : {T}
    }}"""
    program = split(text, "a=npu", "b=npu")
    assert [part.device_name for part in parts(program)] == ["npu", "cpu"]
    assert len(list_moves(program)) == 3


def test_sizes_and_masks_pass_from_no_part_to_another() -> None:
    """Both parts compute what follows of the position alone."""
    t = "tensor<?xf32>"
    text = f"""graph.subgraph @far(%x: {t}, %p: tensor<1xi64>, %m: tensor<?xi64>) -> {t} {{
      %y = mico.relu(%x) : ({t}) -> {t}
      graph.return %y : {t}
    }}
    func.func @main(%x: {t}, %position: tensor<1xi64>) -> {t} {{
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : {t}
      %p = tensor.extract %position[%c0] : tensor<1xi64>
      %i = arith.index_cast %p : i64 to index
      %size = arith.addi %n, %i : index
      %empty = tensor.empty(%size) : tensor<?xi64>
      %mask = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}} outs(%empty : tensor<?xi64>) {{
      ^bb0(%o: i64):
        linalg.yield %p : i64
      }} -> tensor<?xi64>
      %near = mico.relu(%x) : ({t}) -> {t}
      %y = graph.call @far(%near, %position, %mask) : ({t}, tensor<1xi64>, tensor<?xi64>) -> {t}
      func.return %y : {t}
    }}"""
    program = split(text, "far=npu")
    values = [op.source.name_hint for op in program.module.walk() if isinstance(op, TransferOp)]
    assert "mask" not in values
    x = np.array([1, -2, 3], np.float32)
    (y,) = interpret(program.module, x, np.array([2]))
    np.testing.assert_array_equal(y, [1, 0, 3])


def test_a_number_passes_as_a_tensor() -> None:
    text = f"""graph.subgraph @far(%x: {T}, %k: f32) -> {T} {{
      %e = tensor.splat %k : {T}
      %y = mico.add(%x, %e) : ({T}, {T}) -> {T}
      graph.return %y : {T}
    }}
    func.func @main(%x: {T}) -> {T} {{
      %c1 = arith.constant 1 : index
      %r = mico.relu(%x) : ({T}) -> {T}
      %k = tensor.extract %r[%c1] : {T}
      %y = graph.call @far(%x, %k) : ({T}, f32) -> {T}
      func.return %y : {T}
    }}"""
    program = split(text, "far=npu")
    types = [str(op.source.type) for op in program.module.walk() if isinstance(op, TransferOp)]
    assert "tensor<f32>" in types
    x = np.array([1, 2, 3, 4], np.float32)
    (y,) = interpret(program.module, x)
    np.testing.assert_array_equal(y, x + 2)


def test_an_output_that_is_a_number_is_refused() -> None:
    text = f"""func.func @main(%x: {T}) -> f32 {{
      %c1 = arith.constant 1 : index
      %r = mico.relu(%x) : ({T}) -> {T}
      %k = tensor.extract %r[%c1] : {T}
      func.return %k : f32
    }}"""
    with pytest.raises(UnsupportedError, match="output 0 is a number"):
        split(text)


def test_nested_rules_inline_what_is_on_several_devices() -> None:
    text = f"""{subgraph("net.a")}{subgraph("net.b")}
    graph.subgraph @net(%x: {T}) -> {T} {{
      %p = graph.call @net.a(%x) : ({T}) -> {T}
      %q = graph.call @net.b(%p) : ({T}) -> {T}
      graph.return %q : {T}
    }}
    func.func @main(%x: {T}) -> {T} {{
      %y = graph.call @net(%x) : ({T}) -> {T}
      func.return %y : {T}
    }}"""
    program = split(text, "net.b=gpu:1", "net=npu")
    assert [part.device_name for part in parts(program)] == ["npu", "gpu:1"]
    names = {op.sym_name.data for op in program.module.ops if isinstance(op, SubgraphOp)}
    assert names == {"net.a", "net.b", "part0", "part1"}


def test_control_flow_that_calls_two_devices_is_refused() -> None:
    text = f"""{subgraph("a")}{subgraph("b")}
    func.func @main(%c: i1, %x: {T}) -> {T} {{
      %r = scf.if %c -> ({T}) {{
        %p = graph.call @a(%x) : ({T}) -> {T}
        scf.yield %p : {T}
      }} else {{
        %q = graph.call @b(%x) : ({T}) -> {T}
        scf.yield %q : {T}
      }}
      func.return %r : {T}
    }}"""
    with pytest.raises(UsageError, match=r"what is in one 'scf\.if' is on cpu and npu"):
        split(text, "a=npu")
    assert [part.device_name for part in parts(split(text, "a=npu", "b=npu"))] == ["npu"]


def test_the_name_of_a_part_is_free() -> None:
    program = split(chain("part0", "a"), "a=npu")
    assert [part.sym_name.data for part in parts(program)] == ["part_0", "part_1"]


def test_no_mark_is_left() -> None:
    text = split(chain("a", "b"), "a=npu").text()
    assert not re.search(r"graph\.(device|outline)", text)
    assert PlaceDevices.name not in text
