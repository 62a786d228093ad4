"""Every cut of an ONNX model is a smaller model that ONNX takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, helper

from fewbit.reduce.onnx_graph import cuts_of, size_of
from fewbit.reduce.search import search
from tests.fuzz.onnx_models import random_onnx


def check(model: ModelProto) -> None:
    checker: Any = onnx.checker
    checker.check_model(model)


def kinds_of(model: ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def measure(model: ModelProto) -> tuple[int, int]:
    return size_of(model), len(model.graph.output)


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_cuts_are_smaller_and_valid(seed: int) -> None:
    model = random_onnx(seed, most_nodes=6)
    for cut in cuts_of(model):
        assert measure(cut) < measure(model)
        check(cut)


@pytest.mark.parametrize("seed", [247, 417, 428])
def test_a_node_of_which_a_second_result_is_read_is_not_left_out(seed: int) -> None:
    for cut in cuts_of(random_onnx(seed, most_nodes=6)):
        check(cut)


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_one_node_is_left_of_a_fault_in_one(seed: int) -> None:
    model = random_onnx(seed, most_nodes=8)
    for kind in set(kinds_of(model)):
        smallest = search(model, cuts_of, lambda part, kind=kind: kind in kinds_of(part))
        assert kinds_of(smallest) == [kind]


def test_two_nodes_are_left_of_a_fault_in_two() -> None:
    names = ["Relu", "Exp", "Tanh", "Neg", "Abs"]
    nodes = [helper.make_node(kind, [f"x{i}"], [f"x{i + 1}"]) for i, kind in enumerate(names)]
    ends = [helper.make_tensor_value_info(f"x{i}", 1, [2]) for i in (0, 5)]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]))

    def fails(part: ModelProto) -> bool:
        return {"Exp", "Neg"} <= set(kinds_of(part))

    assert kinds_of(search(model, cuts_of, fails)) == ["Exp", "Neg"]


def test_graphs_within_nodes_keep_what_they_read() -> None:
    def branch(kind: str) -> onnx.GraphProto:
        result = helper.make_tensor_value_info(f"{kind}.y", 1, [2])
        return helper.make_graph([helper.make_node(kind, ["t"], [f"{kind}.y"])], kind, [], [result])

    nodes = [
        helper.make_node("Abs", ["x"], ["t"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("Relu"), else_branch=branch("Neg")),
        helper.make_node("Exp", ["y"], ["z"]),
    ]
    x = helper.make_tensor_value_info("x", 1, [2])
    c = helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])
    z = helper.make_tensor_value_info("z", 1, [2])
    model = helper.make_model(helper.make_graph(nodes, "g", [x, c], [z]))

    def both(parts: Iterable[str]) -> bool:
        return {"Abs", "If"} <= set(parts)

    smallest = search(model, cuts_of, lambda part: both(kinds_of(part)))
    assert kinds_of(smallest) == ["Abs", "If"]
    check(smallest)
