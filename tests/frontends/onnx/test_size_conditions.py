"""Graphs that hold for some sizes only: these are found, and the program checks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.errors import Error, UnsupportedError
from fewbit.frontends import import_model
from tests.frontends.onnx.graphs import floats, helper, model, node

ort = pytest.importorskip("onnxruntime")


def check(made: Any, *shapes: Sequence[int]) -> Any:
    """Import it, compare it with onnxruntime at these shapes of its input, and return it."""
    made.ir_version = 10
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    program = import_model(made)
    art = fewbit.compile(program, name="net")
    for shape in shapes:
        x = floats(*shape)
        expected = session.run(None, {"x": x})[0]
        for found in (program.run(x)[0], art.run(x)[0]):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    return program


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def test_a_squeezed_size_is_1() -> None:
    """The equation `t // 3 == 1` has three solutions, none of which is what is traced for all."""
    nodes = [
        node("AveragePool", ["x"], ["p"], kernel_shape=[3], strides=[3]),
        node("Squeeze", ["p", "axes"], ["y"]),
    ]
    network = model(nodes, {"x": ["b", 2, "t"]}, ["y"], {"axes": ints(2)})
    program = check(network, (2, 2, 3), (1, 2, 4), (3, 2, 5))
    for t in (2, 6):
        with pytest.raises(Error, match="assertion"):
            program.run(floats(1, 2, t))


def test_a_squeezed_size_that_is_never_1_is_refused() -> None:
    network = model(
        [node("Squeeze", ["x", "axes"], ["y"])], {"x": ["b", 3]}, ["y"], {"axes": ints(1)}
    )
    with pytest.raises(UnsupportedError, match="not 1"):
        import_model(network)


def test_sizes_that_are_left_by_a_squeeze_without_axes_are_not_1() -> None:
    network = model([node("Squeeze", ["x"], ["y"])], {"x": ["b", 1, "t"]}, ["y"])
    program = check(network, (2, 1, 3), (5, 1, 4))
    art = fewbit.compile(program, name="net")
    for shape in ((1, 1, 3), (2, 1, 1)):
        with pytest.raises(Error, match="is needed"):
            program.run(floats(*shape))
        with pytest.raises(Error):
            art.run(floats(*shape))


@pytest.mark.parametrize("axes", [("b", "t"), (None, None), ("same", "same")])
def test_padding_by_1_of_a_size_that_may_be_1(axes: tuple[str | None, str | None]) -> None:
    nodes = [node("Pad", ["x", "pads"], ["y"], mode="reflect")]
    network = model(nodes, {"x": axes}, ["y"], {"pads": ints(0, 1, 0, 1)})
    program = check(network, (2, 2), (3, 3))
    art = fewbit.compile(program, name="net")
    with pytest.raises(Error, match="1 is needed"):
        program.run(floats(1, 1))
    with pytest.raises(Error):
        art.run(floats(1, 1))


def test_padding_longer_than_small_examples() -> None:
    nodes = [node("Pad", ["x", "pads"], ["y"], mode="reflect")]
    network = model(nodes, {"x": ["b", "t"]}, ["y"], {"pads": ints(0, 100, 0, 70)})
    program = check(network, (1, 101), (3, 160), (2, 500))
    with pytest.raises(Error, match="at least 101"):
        program.run(floats(1, 100))


def test_a_window_longer_than_small_examples() -> None:
    nodes = [node("Conv", ["x", "w"], ["y"], strides=[160])]
    check(
        model(nodes, {"x": ["b", 1, "t"]}, ["y"], {"w": floats(4, 1, 400)}),
        (1, 1, 400),
        (2, 1, 999),
    )


def test_an_op_that_fails_at_all_sizes_is_refused() -> None:
    nodes = [node("MatMul", ["x", "w"], ["y"])]
    with pytest.raises(UnsupportedError, match="MatMul fails") as caught:
        import_model(model(nodes, {"x": ["b", 3]}, ["y"], {"w": floats(4, 5)}))
    assert "--input-shape" in str(caught.value)


def squeeze_if(compare: str, number: int, window: int) -> Any:
    """Frames of `x`, squeezed if their number compares so, as exporters write `squeeze`."""
    branches = {
        "then_branch": [node("Squeeze", ["f", "last"], ["then"])],
        "else_branch": [node("Identity", ["f"], ["else"])],
    }
    graphs: dict[str, Any] = {
        name: helper.make_graph(
            nodes, name, [], [helper.make_empty_tensor_value_info(nodes[0].output[0])]
        )
        for name, nodes in branches.items()
    }
    nodes = [
        node("MaxPool", ["x"], ["f"], kernel_shape=[window], strides=[window]),
        node("Shape", ["f"], ["s"]),
        node("Gather", ["s", "last"], ["n"]),
        node(compare, ["n", "number"], ["c"]),
        node("If", ["c"], ["y"], **graphs),
    ]
    constants = {"last": ints(2), "number": ints(number)}
    return model(nodes, {"x": ["b", 3, "t"]}, ["y"], constants)


@pytest.mark.parametrize(("compare", "number"), [("Equal", 1), ("Less", 2)])
def test_branches_of_different_ranks(compare: str, number: int) -> None:
    program = check(squeeze_if(compare, number, window=3), (2, 3, 3), (1, 3, 5), (3, 3, 4))
    with pytest.raises(Error, match="assertion"):
        program.run(floats(1, 3, 6))


def test_the_other_branch_where_examples_take_it() -> None:
    program = check(squeeze_if("Equal", 1, window=20), (2, 3, 40), (1, 3, 99))
    for t in (20, 39):
        with pytest.raises(Error, match="assertion"):
            program.run(floats(1, 3, t))


def test_a_branch_that_no_check_could_choose_is_refused() -> None:
    """A size of an input that is not 1 is nothing that a program checks."""
    with pytest.raises(UnsupportedError, match="branches") as caught:
        import_model(squeeze_if("Equal", 1, window=1))
    assert "--input-shape" in str(caught.value)


def test_branches_of_one_shape_stay_both() -> None:
    graphs: dict[str, Any] = {
        side: helper.make_graph(
            [node(op, ["x"], [side])], side, [], [helper.make_empty_tensor_value_info(side)]
        )
        for side, op in (("then_branch", "ReduceMax"), ("else_branch", "ReduceMin"))
    }
    nodes = [
        node("Shape", ["x"], ["s"], start=1),
        node("Less", ["s", "number"], ["c"]),
        node("If", ["c"], ["y"], **graphs),
    ]
    network = model(nodes, {"x": ["b", "t"]}, ["y"], {"number": ints(4)})
    check(network, (1, 1), (2, 3), (2, 4), (1, 9))


def test_two_names_of_one_batch() -> None:
    """The file leaves both batches open, and an LSTM needs them to be the same."""
    nodes = [node("LSTM", ["x", "w", "r", "", "", "h", "c"], ["y", "hn"], hidden_size=4)]
    constants = {"w": floats(1, 16, 3), "r": floats(1, 16, 4, seed=1)}
    shapes = {"x": ["t", "a", 3], "h": [1, "b", 4], "c": [1, "d", 4]}
    network = model(nodes, shapes, ["y", "hn"], constants)
    network.ir_version = 10
    session = ort.InferenceSession(network.SerializeToString(), providers=["CPUExecutionProvider"])
    program = import_model(network)
    art = fewbit.compile(program, name="net")
    for t, b in ((1, 1), (5, 2), (2, 3)):
        given = {"x": floats(t, b, 3), "h": floats(1, b, 4, seed=2), "c": floats(1, b, 4, seed=3)}
        expected = session.run(None, given)
        for found in (program.run(*given.values()), art.run(*given.values())):
            for a, e in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)
    with pytest.raises(Error, match="differs"):
        program.run(floats(2, 3, 3), floats(1, 2, 4), floats(1, 3, 4))
