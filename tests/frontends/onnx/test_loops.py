"""Loop and Scan are loops of any number of rounds, and agree with onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import scf

import fewbit
from fewbit.dialects.mico import QuantizedLayerOp
from fewbit.errors import UnsupportedError
from fewbit.frontends.onnx import import_onnx
from fewbit.ir.layers import layers
from fewbit.program.program import Program
from tests.frontends.onnx.graphs import (
    TensorProto,
    floats,
    graph,
    helper,
    model,
    node,
    numpy_helper,
)

ort = pytest.importorskip("onnxruntime")

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
COUNTED: list[tuple[str, int, list[int]]] = [("i", INT64, []), ("c", BOOL, [])]
MORE = {"more": BOOL, "more2": BOOL, "own_next": INT64}


def count_loops(program: Program) -> int:
    return sum(isinstance(op, scf.ForOp) for op in program.module.walk())


def count_ops(program: Program) -> int:
    return sum(1 for _ in program.module.walk())


def expected(made: Any, *inputs: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    made.ir_version = 10
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [value.name for value in made.graph.input]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def check(made: Any, *inputs: np.ndarray[Any, Any], loops: int = 1) -> Program:
    """Import, interpret and compile; all must agree with onnxruntime."""
    program = import_onnx(made)
    assert count_loops(program) == loops
    wanted = expected(made, *inputs)
    names = [value.name for value in made.graph.output]
    for results in (program.run(*inputs), fewbit.compile(program, name="net").run(*inputs)):
        for name, found, right in zip(names, results, wanted, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6, err_msg=name)
    return program


def collecting(rounds: int) -> Any:
    """Adds x to a state, and collects squares of it, numbers of rounds, and whether they are few."""
    body = graph(
        [
            node("Add", ["v", "x"], ["next"]),
            node("Identity", ["c"], ["more"]),
            node("Mul", ["next", "next"], ["square"]),
            node("ReduceSum", ["next"], ["sum"], keepdims=0),
            node("Less", ["i", "few"], ["is_few"]),
            node("Mul", ["i", "few"], ["number"]),
        ],
        ["more", "next", "square", "sum", "is_few", "number"],
        [*COUNTED, ("v", FLOAT, [2])],
        kinds=MORE | {"is_few": BOOL, "number": INT64},
    )
    outputs = ["y", "squares", "sums", "are_few", "numbers"]
    nodes = [node("Loop", ["n", "", "x"], outputs, body=body)]
    kinds = {"are_few": BOOL, "numbers": INT64}
    return model(nodes, {"x": [2]}, outputs, {"n": np.array(rounds), "few": np.array(3)}, kinds)


def test_a_loop_collects_results_of_all_rounds() -> None:
    check(collecting(5), floats(2))


def test_two_rounds_are_written_out() -> None:
    check(collecting(2), floats(2), loops=0)


def test_code_does_not_grow_with_the_rounds() -> None:
    short, long = (count_ops(import_onnx(collecting(rounds))) for rounds in (8, 800))
    assert short == long


def test_more_rounds_than_would_be_written_out() -> None:
    check(collecting(5000), floats(2))


def test_a_loop_of_a_dynamic_number_of_rounds_collects() -> None:
    body = graph(
        [
            node("Gather", ["x", "i"], ["row"]),
            node("Add", ["v", "row"], ["next"]),
            node("Identity", ["c"], ["more"]),
            node("Tanh", ["next"], ["seen"]),
        ],
        ["more", "next", "seen"],
        [*COUNTED, ("v", FLOAT, [3])],
        kinds=MORE,
    )
    nodes = [
        node("Shape", ["x"], ["n"], start=0, end=1),
        node("Loop", ["n", "", "zero"], ["y", "all"], body=body),
    ]
    network = model(nodes, {"x": ["rows", 3]}, ["y", "all"], {"zero": np.zeros(3, np.float32)})
    program = import_onnx(network)
    assert count_loops(program) == 1
    art = fewbit.compile(program, name="net")
    for rows in (1, 2, 7):
        x = floats(rows, 3)
        for found, right in zip(art.run(x), expected(network, x), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def test_a_count_of_its_own_ends_a_loop() -> None:
    """Exporters write `while i < 6: ...` so: the state i and what depends on it are known."""
    body = graph(
        [
            node("Add", ["own", "one"], ["own_next"]),
            node("Less", ["own_next", "six"], ["more"]),
            node("Cast", ["own"], ["scale"], to=FLOAT),
            node("Mul", ["scale", "w_in"], ["scaled"]),
            node("Add", ["v", "scaled"], ["next"]),
            node("Identity", ["w_in"], ["w_out"]),
            node("Identity", ["x_in"], ["x_same"]),
            node("Identity", ["x_same"], ["x_out"]),
            node("Mul", ["next", "x_same"], ["seen"]),
        ],
        ["more", "own_next", "next", "w_out", "x_out", "seen"],
        [
            *COUNTED,
            ("own", INT64, []),
            ("v", FLOAT, [3]),
            ("w_in", FLOAT, [3]),
            ("x_in", FLOAT, [3]),
        ],
        kinds=MORE,
    )
    outputs = ["own_last", "y", "w_last", "x_last", "all"]
    nodes = [
        node("Loop", ["", "", "zero", "x", "w", "x"], outputs, body=body),
        node("Reshape", ["all", "own_shape"], ["flat"]),
        node("Mul", ["own_last", "three"], ["own_shape"]),
    ]
    nodes = [nodes[0], nodes[2], nodes[1]]
    constants = {
        "zero": np.array([0]), "one": np.array([1]), "six": np.array([6]), "three": np.array([3]),
        "w": floats(3, seed=5),
    }  # fmt: skip
    network = model(nodes, {"x": [3]}, ["flat", "y", "x_last"], constants)
    program = check(network, floats(3))
    (loop,) = (op for op in program.module.walk() if isinstance(op, scf.ForOp))
    assert len(loop.iter_args) == 2, "the state that changes, and what is collected"


def test_what_is_computed_of_constants_leaves_nothing_in_the_program() -> None:
    body = graph(
        [
            node("Mul", ["v", "v"], ["next"]),
            node("Identity", ["c"], ["more"]),
            node("Add", ["next", "v"], ["seen"]),
        ],
        ["more", "next", "seen"],
        [*COUNTED, ("v", FLOAT, [2])],
        kinds=MORE,
    )
    nodes = [
        node("Loop", ["n", "", "w"], ["last", "all"], body=body),
        node("Add", ["x", "all"], ["y"]),
    ]
    constants = {"n": np.array(4), "w": np.array([0.5, 1.5], np.float32)}
    check(model(nodes, {"x": [2]}, ["y"], constants), floats(2), loops=0)


def test_shapes_that_grow_are_written_out() -> None:
    body = graph(
        [node("Concat", ["v", "x"], ["next"], axis=0), node("Identity", ["c"], ["more"])],
        ["more", "next"],
        [*COUNTED, ("v", FLOAT, None)],
        kinds=MORE,
    )
    nodes = [node("Loop", ["n", "", "x"], ["y"], body=body)]
    check(model(nodes, {"x": [2]}, ["y"], {"n": np.array(4)}), floats(2), loops=0)


def test_layers_with_weights_of_each_round_are_written_out() -> None:
    body = graph(
        [
            node("Gather", ["w", "i"], ["own"]),
            node("MatMul", ["v", "own"], ["next"]),
            node("Identity", ["c"], ["more"]),
        ],
        ["more", "next"],
        [*COUNTED, ("v", FLOAT, [1, 4])],
        kinds=MORE,
    )
    nodes = [node("Loop", ["n", "", "x"], ["y"], body=body)]
    network = model(nodes, {"x": [1, 4]}, ["y"], {"n": np.array(3), "w": floats(3, 4, 4)})
    program = check(network, floats(1, 4), loops=0)
    assert len(layers(program.module)) == 3


def test_loops_in_loops_and_branches() -> None:
    inner = graph(
        [
            node("Add", ["u", "v"], ["u_next"]),
            node("Sin", ["u_next"], ["u_sin"]),
            node("Identity", ["c2"], ["more2"]),
        ],
        ["more2", "u_sin", "u_next"],
        [("i2", INT64, []), ("c2", BOOL, []), ("u", FLOAT, [2])],
        kinds=MORE,
    )
    then = graph([node("Mul", ["u_last", "w"], ["t"])], ["t"])
    otherwise = graph([node("Neg", ["u_last"], ["e"])], ["e"])
    outer = graph(
        [
            node("Loop", ["three", "", "x"], ["u_last", "u_all"], body=inner),
            node("ReduceSum", ["u_last"], ["sum"], keepdims=0),
            node("Less", ["sum", "zero"], ["is_less"]),
            node("If", ["is_less"], ["chosen"], then_branch=then, else_branch=otherwise),
            node("Identity", ["c"], ["more"]),
        ],
        ["more", "chosen", "u_all"],
        [*COUNTED, ("v", FLOAT, [2])],
        kinds=MORE,
    )
    nodes = [node("Loop", ["four", "", "x"], ["y", "all"], body=outer)]
    constants = {
        "three": np.array(3), "four": np.array(4), "zero": np.array(0, np.float32),
        "w": floats(2, seed=3),
    }  # fmt: skip
    check(model(nodes, {"x": [2]}, ["y", "all"], constants), floats(2), loops=2)


def test_states_that_change_places() -> None:
    body = graph(
        [
            node("Identity", ["c"], ["more"]),
            node("Identity", ["a"], ["a_out"]),
            node("Identity", ["b"], ["b_out"]),
            node("Sub", ["a", "b"], ["seen"]),
        ],
        ["more", "b_out", "a_out", "seen"],
        [*COUNTED, ("a", FLOAT, [3]), ("b", FLOAT, [3])],
        kinds=MORE,
    )
    outputs = ["first", "second", "all"]
    nodes = [node("Loop", ["n", "", "x", "y"], outputs, body=body)]
    check(
        model(nodes, {"x": [3], "y": [3]}, outputs, {"n": np.array(5)}),
        floats(3),
        floats(3, seed=1),
    )


def test_a_recurrent_layer_in_a_loop() -> None:
    body = graph(
        [
            node("Identity", ["c"], ["more"]),
            node("LSTM", ["v", "w", "r"], ["steps", "last"], hidden_size=4),
            node("Squeeze", ["steps", "axes"], ["next"]),
        ],
        ["more", "next", "last"],
        [*COUNTED, ("v", FLOAT, [3, 1, 4])],
        kinds=MORE,
    )
    nodes = [node("Loop", ["n", "", "x"], ["y", "all"], body=body)]
    constants = {
        "n": np.array(3), "axes": np.array([1]), "w": floats(1, 16, 4),
        "r": floats(1, 16, 4, seed=1),
    }  # fmt: skip
    check(model(nodes, {"x": [3, 1, 4]}, ["y", "all"], constants), floats(3, 1, 4), loops=2)


def appending(rows: int | str, **how: Any) -> Any:
    """Write a loop of Python over a cell as exporters do; outputs are appended to a list."""
    info = helper.make_tensor_sequence_value_info
    body = graph(
        [
            node("Identity", ["c"], ["more"]),
            node("Gather", ["x", "i"], ["row"]),
            node("Gemm", ["row", "w", "bias"], ["of_input"], transB=1),
            node("Gemm", ["h", "r"], ["of_state"], transB=1),
            node("Add", ["of_input", "of_state"], ["sum"]),
            node("Tanh", ["sum"], ["next"]),
            node("SequenceInsert", ["seen", "next"], ["seen_next"]),
        ],
        ["more", "next"],
        [*COUNTED, ("h", FLOAT, [2, 4])],
        kinds=MORE,
    )
    body.input.append(info("seen", FLOAT, None))
    body.output.append(info("seen_next", FLOAT, None))
    nodes = [
        node("SequenceEmpty", [], ["empty"], dtype=FLOAT),
        node("Shape", ["x"], ["n"], start=0, end=1),
        node("Loop", ["n", "yes", "h", "empty"], ["last", "list"], body=body),
        node("ConcatFromSequence", ["list"], ["y"], **how),
    ]
    constants = {
        "yes": np.array(True), "w": floats(4, 3), "r": floats(4, 4, seed=1), "bias": floats(4),
    }  # fmt: skip
    return model(nodes, {"x": [rows, 2, 3], "h": [2, 4]}, ["y", "last"], constants)


@pytest.mark.parametrize(
    "how",
    [{"axis": 0, "new_axis": 1}, {"axis": -1, "new_axis": 1}, {"axis": 1}],
    ids=["stacked", "stacked last", "concatenated"],
)
def test_tensors_appended_to_a_list_are_collected(how: dict[str, int]) -> None:
    program = check(appending(5, **how), floats(5, 2, 3), floats(2, 4, seed=3))
    assert len(layers(program.module)) == 2


def test_a_list_of_a_dynamic_number_of_tensors() -> None:
    network = appending("rows", axis=0, new_axis=1)
    art = fewbit.compile(import_onnx(network), name="net")
    for rows in (1, 2, 6):
        given = floats(rows, 2, 3), floats(2, 4, seed=3)
        for found, right in zip(art.run(*given), expected(network, *given), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def test_code_does_not_grow_with_a_list() -> None:
    short, long = (count_ops(import_onnx(appending(r, axis=0, new_axis=1))) for r in (8, 64))
    assert short == long


def test_tensors_of_a_list_one_by_one() -> None:
    network = appending(4, axis=0, new_axis=1)
    network.graph.node[-1].CopyFrom(node("SequenceAt", ["list", "two"], ["y"]))
    network.graph.initializer.append(numpy_helper.from_array(np.array(2), "two"))
    check(network, floats(4, 2, 3), floats(2, 4, seed=3))


def lstm_by_scan(steps: int | str, **attributes: Any) -> Any:
    """An LSTM of 5 inputs and 6 units, as a Scan whose body is its cell."""
    body = graph(
        [
            node("MatMul", ["x_t", "w"], ["of_input"]),
            node("Gemm", ["h", "r", "bias"], ["of_state"], transB=1),
            node("Add", ["of_input", "of_state"], ["gates"]),
            node("Split", ["gates"], ["i", "o", "f", "n"], axis=1, num_outputs=4),
            *(node("Sigmoid", [gate], [f"{gate}_s"]) for gate in "iof"),
            node("Tanh", ["n"], ["n_t"]),
            node("Mul", ["f_s", "c"], ["kept"]),
            node("Mul", ["i_s", "n_t"], ["new"]),
            node("Add", ["kept", "new"], ["c_out"]),
            node("Tanh", ["c_out"], ["c_t"]),
            node("Mul", ["o_s", "c_t"], ["h_out"]),
            node("Identity", ["h_out"], ["y_t"]),
        ],
        ["h_out", "c_out", "y_t"],
        [("h", FLOAT, [2, 6]), ("c", FLOAT, [2, 6]), ("x_t", FLOAT, [2, 5])],
    )
    zeros = np.zeros((2, 6), np.float32)
    outputs = ["h_last", "c_last", "y"]
    made = node(
        "Scan", ["zeros", "zeros", "x"], outputs, body=body, num_scan_inputs=1, **attributes
    )
    axis = attributes.get("scan_input_axes", [0])[0]
    shape: list[int | str] = [2, 5]
    shape.insert(axis, steps)
    constants = {"zeros": zeros, "w": floats(5, 24), "r": floats(24, 6, seed=1), "bias": floats(24)}
    return model([made], {"x": shape}, outputs, constants)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"scan_input_directions": [1], "scan_output_directions": [1]},
        {"scan_input_axes": [1], "scan_output_axes": [1]},
        {"scan_input_axes": [1], "scan_input_directions": [1], "scan_output_axes": [2]},
    ],
    ids=["forward", "reverse", "batch first", "reverse, other axes"],
)
def test_an_lstm_by_scan(attributes: dict[str, Any]) -> None:
    axis = attributes.get("scan_input_axes", [0])[0]
    shape = [2, 5]
    shape.insert(axis, 7)
    check(lstm_by_scan(7, **attributes), floats(*shape))


def test_layers_in_a_scan_are_quantized_once() -> None:
    x = floats(16, 2, 5)
    program = import_onnx(lstm_by_scan(16))
    assert len(layers(program.module)) == 2
    quantized = fewbit.quantize(program, "w8a8")
    results = [layer for each in layers(quantized.module).values() for layer in each]
    widths = [str(layer.weight_width) for layer in results if isinstance(layer, QuantizedLayerOp)]
    assert widths == ["8", "8"]
    exact, rounded = program.run(x)[2], quantized.run(x)[2]
    assert np.linalg.norm(exact - rounded) < 0.05 * np.linalg.norm(exact)
    compiled = fewbit.compile(quantized, name="net").run(x)[2]
    np.testing.assert_allclose(compiled, rounded, rtol=1e-5, atol=1e-5)


def test_code_of_a_scan_does_not_grow_with_the_steps() -> None:
    short, long = (count_ops(import_onnx(lstm_by_scan(steps))) for steps in (8, 64))
    assert short == long


def test_a_scan_of_a_dynamic_number_of_steps() -> None:
    network = lstm_by_scan("steps")
    art = fewbit.compile(import_onnx(network), name="net")
    for steps in (1, 2, 9):
        x = floats(steps, 2, 5)
        for found, right in zip(art.run(x), expected(network, x), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sizes", ["of the element", "from outside"])
def test_a_scan_with_a_dynamic_batch(sizes: str) -> None:
    """The state has the size of the batch, and so has what the body expands."""
    is_own = sizes == "of the element"
    own = [
        node("Shape", ["x_t"], ["rows"], start=0, end=1),
        node("Concat", ["rows", "six"], ["shape"], axis=0),
    ]
    body = graph(
        [
            *(own if is_own else []),
            node("Expand", ["bias", "shape" if is_own else "outer"], ["b"]),
            node("MatMul", ["x_t", "w"], ["of_input"]),
            node("Add", ["of_input", "b"], ["gates"]),
            node("Add", ["gates", "h"], ["sum"]),
            node("Tanh", ["sum"], ["next"]),
            node("Identity", ["next"], ["seen"]),
        ],
        ["next", "seen"],
        [("h", FLOAT, ["batch", 6]), ("x_t", FLOAT, ["batch", 5])],
    )
    nodes = [
        node("Shape", ["x"], ["batch_size"], start=1, end=2),
        node("Concat", ["batch_size", "six"], ["outer"], axis=0),
        node("ConstantOfShape", ["outer"], ["zeros"]),
        node("Scan", ["zeros", "x"], ["last", "y"], body=body, num_scan_inputs=1),
    ]
    constants = {"six": np.array([6]), "w": floats(5, 6), "bias": floats(1, 6, seed=1)}
    network = model(nodes, {"x": ["steps", "batch", 5]}, ["last", "y"], constants)
    program = import_onnx(network)
    assert count_loops(program) == 1
    art = fewbit.compile(program, name="net")
    for steps, batch in ((3, 2), (1, 1), (6, 4)):
        x = floats(steps, batch, 5)
        for found, right in zip(art.run(x), expected(network, x), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def test_a_scan_over_a_table() -> None:
    """Elements that are constants are rows of a table; what is collected of them is known."""
    body = graph(
        [
            node("Mul", ["s", "x_t"], ["m"]),
            node("Add", ["m", "row"], ["next"]),
            node("Identity", ["next"], ["seen"]),
            node("Neg", ["row"], ["negative"]),
        ],
        ["next", "seen", "negative"],
        [("s", FLOAT, [2]), ("x_t", FLOAT, [2]), ("row", FLOAT, [2])],
    )
    outputs = ["last", "all", "negatives"]
    scan = node("Scan", ["x0", "x", "table"], outputs, body=body, num_scan_inputs=2)
    network = model([scan], {"x0": [2], "x": [4, 2]}, outputs, {"table": floats(4, 2, seed=2)})
    check(network, floats(2), floats(4, 2, seed=1))


def test_a_scan_for_each_sample_of_a_batch() -> None:
    """The form of version 8."""
    body = graph(
        [node("Add", ["s", "x_t"], ["next"]), node("Identity", ["next"], ["seen"])],
        ["next", "seen"],
        [("s", FLOAT, [2]), ("x_t", FLOAT, [2])],
    )
    scan = node(
        "Scan", ["", "x0", "x"], ["last", "all"], body=body, num_scan_inputs=1, directions=[1]
    )
    network = model([scan], {"x0": [3, 2], "x": [3, 4, 2]}, ["last", "all"], opset=8)
    x0, x = floats(3, 2), floats(3, 4, 2, seed=1)
    sums = x0[:, None] + np.cumsum(x[:, ::-1], 1)
    program = import_onnx(network)
    for results in (program.run(x0, x), fewbit.compile(program, name="net").run(x0, x)):
        np.testing.assert_allclose(results[0], sums[:, -1], rtol=1e-5)
        np.testing.assert_allclose(results[1], sums, rtol=1e-5)


def test_a_loop_without_end_is_refused() -> None:
    body = graph(
        [node("Add", ["v", "x"], ["next"]), node("Identity", ["c"], ["more"])],
        ["more", "next"],
        [*COUNTED, ("v", FLOAT, [2])],
        kinds=MORE,
    )
    nodes = [node("Loop", ["", "", "x"], ["y"], body=body)]
    with pytest.raises(UnsupportedError, match="ends after no 4096 rounds"):
        import_onnx(model(nodes, {"x": [2]}, ["y"]))
