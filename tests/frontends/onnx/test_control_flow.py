"""If: chosen where that is known; loops that the program counts; sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fewbit.errors import UnsupportedError
from fewbit.frontends.onnx import import_onnx
from tests.frontends.onnx.graphs import TensorProto, expected, floats, graph, model, node


def branches(extra: list[Any] | None = None) -> list[Any]:
    then = graph([node("MatMul", ["x", "w"], ["a"]), node("Add", ["a", "b"], ["t"])], ["t"])
    inner = graph([node("Mul", ["x", "x"], ["i1"])], ["i1"])
    other = graph([node("Neg", ["x"], ["i2"])], ["i2"])
    otherwise = graph([node("If", ["second"], ["e"], then_branch=inner, else_branch=other)], ["e"])
    return [node("If", ["first"], ["y"], then_branch=then, else_branch=otherwise)]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_branches_in_branches(first: bool, second: bool) -> None:
    kinds = {"first": TensorProto.BOOL, "second": TensorProto.BOOL}
    inputs = {"x": [2, 3], "first": [], "second": []}
    network = model(branches(), inputs, ["y"], {"w": floats(3, 3), "b": floats(3)}, kinds)
    given = floats(2, 3, seed=1), np.array(first), np.array(second)
    program = import_onnx(network)
    assert program.text().count("scf.if") == 2
    wanted = expected(network, *given)[0]
    np.testing.assert_allclose(program.run(*given)[0], wanted, rtol=1e-5, atol=1e-6)
    fixed = import_onnx(network, constants={"first": first, "second": second})
    assert "scf.if" not in fixed.text()
    np.testing.assert_allclose(fixed.run(given[0])[0], wanted, rtol=1e-5, atol=1e-6)


def test_branches_of_different_shapes_are_refused() -> None:
    then = graph([node("Concat", ["x", "x"], ["t"], axis=0)], ["t"])
    otherwise = graph([node("Neg", ["x"], ["e"])], ["e"])
    nodes = [node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)]
    network = model(nodes, {"x": [3], "c": []}, ["y"], kinds={"c": TensorProto.BOOL})
    with pytest.raises(UnsupportedError, match=r"\[6\] and \[3\]"):
        import_onnx(network)


def test_a_branch_reads_dynamic_sizes() -> None:
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node(
            "If", ["c"], ["y"],
            then_branch=graph([node("Expand", ["b", "shape"], ["t"])], ["t"]),
            else_branch=graph([node("Neg", ["x"], ["e"])], ["e"]),
        ),
    ]  # fmt: skip
    network = model(
        nodes, {"x": ["rows", 3], "c": []}, ["y"], {"b": floats(3)}, {"c": TensorProto.BOOL}
    )
    program = import_onnx(network)
    for rows in (1, 4):
        for c in (False, True):
            given = floats(rows, 3), np.array(c)
            np.testing.assert_array_equal(program.run(*given)[0], expected(network, *given)[0])


def counting(scanned: bool) -> Any:
    """x doubles, and the running sum is given, for as long as it is below a limit."""
    nodes = [
        node("Add", ["v", "v"], ["twice"]),
        node("ReduceSum", ["twice"], ["sum"], keepdims=0),
        node("Less", ["sum", "limit"], ["more"]),
        node("Identity", ["twice"], ["seen"]),
    ]
    inputs: list[tuple[str, int, list[int]]] = [
        ("i", TensorProto.INT64, []),
        ("c", TensorProto.BOOL, []),
        ("v", TensorProto.FLOAT, [2]),
    ]
    return graph(nodes, ["more", "twice", *(["seen"] if scanned else [])], inputs)


def test_loop_that_the_program_counts() -> None:
    nodes = [node("Loop", ["n", "go", "x"], ["y"], body=counting(False))]
    kinds = {"n": TensorProto.INT64, "go": TensorProto.BOOL}
    network = model(
        nodes, {"x": [2], "n": [], "go": []}, ["y"], {"limit": np.array(100, np.float32)}, kinds
    )
    program = import_onnx(network)
    assert "scf.while" in program.text()
    for rounds, go in ((3, True), (50, True), (3, False), (0, True)):
        given = np.array([1, 2], np.float32), np.array(rounds), np.array(go)
        np.testing.assert_allclose(program.run(*given)[0], expected(network, *given)[0])


def test_loop_that_collects_an_unknown_number_is_refused() -> None:
    nodes = [node("Loop", ["n", "", "x"], ["y", "all"], body=counting(True))]
    constants = {"n": np.array(4), "limit": np.array(100, np.float32)}
    with pytest.raises(UnsupportedError, match="collects results"):
        import_onnx(model(nodes, {"x": [2]}, ["y", "all"], constants))


def test_sequences_inside_of_a_graph() -> None:
    nodes = [
        node("SplitToSequence", ["x"], ["parts"], axis=0),
        node("SequenceAt", ["parts", "one"], ["second"]),
        node("SequenceConstruct", ["second", "x"], ["pair"]),
        node("ConcatFromSequence", ["pair"], ["y"], axis=0),
    ]
    network = model(nodes, {"x": [3, 2]}, ["y"], {"one": np.array(1)})
    x = floats(3, 2)
    np.testing.assert_array_equal(import_onnx(network).run(x)[0], np.concatenate([x[1:2], x]))
