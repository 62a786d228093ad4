"""Graphs as programs: names, hierarchy, dynamic sizes, constants, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import fewbit
from fewbit.dialects.mico import BitConv2dOp, BitLinearOp
from fewbit.errors import Error, UnsupportedError, UsageError
from fewbit.frontends.onnx import import_onnx
from fewbit.frontends.onnx.table import NeedsValueError
from fewbit.ir.layers import layers
from fewbit.ir.locations import place_of
from tests.frontends.onnx.graphs import TensorProto, expected, floats, helper, model, node, onnx


def close(given: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5)


def test_layers_are_named_by_their_weights() -> None:
    nodes = [
        node("Conv", ["x", "conv.weight", "conv.bias"], ["a"], pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"]),
        node("Flatten", ["b"], ["c"]),
        node("Gemm", ["c", "fc.weight", "fc.bias"], ["d"], transB=1),
        node("MatMul", ["d", "onnx::MatMul_7"], ["e"], name="/head/proj/MatMul"),
        node("Add", ["e", "head.proj.bias"], ["f"], name="/head/proj/Add"),
    ]
    constants = {
        "conv.weight": floats(4, 2, 3, 3),
        "conv.bias": floats(4),
        "fc.weight": floats(6, 64),
        "fc.bias": floats(6),
        "onnx::MatMul_7": floats(6, 5),
        "head.proj.bias": floats(5),
    }
    network = model(nodes, {"x": [1, 2, 4, 4]}, ["f"], constants)
    program = import_onnx(network)
    assert list(layers(program.module)) == ["conv", "fc", "head.proj"]
    assert isinstance(layers(program.module)["conv"][0], BitConv2dOp)
    (last,) = layers(program.module)["head.proj"]
    assert isinstance(last, BitLinearOp)
    assert last.bias is not None  # the Add is part of the layer
    x = floats(1, 2, 4, 4, seed=3)
    close(program.run(x)[0], expected(network, x)[0])
    quantized = fewbit.quantize(program, "w8a8,head=w4a8")
    assert str(layers(quantized.module)["head.proj"][0].weight_width) == "4"  # pyright: ignore


def test_modules_and_numbers_of_nodes() -> None:
    nodes = [
        node("Atan", ["x"], ["a"], name="/block/first/Atan"),
        node("Relu", ["a"], ["b"], name="/block/second/Relu"),
        node("Tanh", ["b"], ["y"], name="/last/Tanh"),
    ]
    program = import_onnx(model(nodes, {"x": [3]}, ["y"]))
    assert "graph.subgraph @model.block(" in program.text()
    (relu,) = [op for op in program.module.walk() if op.name == "mico.relu"]
    place = place_of(relu)
    assert (place.file, place.line, place.layer) == ("model.onnx", 2, "block.second")


def test_shapes_are_computed_at_once() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n", "axis"], ["m"]),
        node("Concat", ["m", "rest"], ["shape"], axis=0),
        node("Reshape", ["x", "shape"], ["y"]),
    ]
    constants = {
        "zero": np.array(0),
        "axis": np.array([0]),
        "rest": np.array([-1]),
    }
    network = model(nodes, {"x": ["batch", 2, 3]}, ["y"], constants)
    program = import_onnx(network)
    for batch in (1, 2, 7):
        x = floats(batch, 2, 3)
        close(program.run(x)[0], x.reshape(batch, 6))
    assert "linalg" not in import_onnx(network, {"batch": 4}).text()


def test_dynamic_sizes_by_name() -> None:
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Add", ["a", "z"], ["y"])]
    network = model(nodes, {"x": ["n", 3], "z": ["n", 4]}, ["y"], {"w": floats(3, 4)})
    program = import_onnx(network)
    assert [spec.shape for spec in program.signature.inputs] == [(None, 3), (None, 4)]
    x, z = floats(5, 3), floats(5, 4)
    close(program.run(x, z)[0], x @ floats(3, 4) + z)
    with pytest.raises(Error):
        program.run(x, floats(6, 4))
    fixed = import_onnx(network, {"n": 5})
    assert [spec.shape for spec in fixed.signature.inputs] == [(5, 3), (5, 4)]
    assert import_onnx(network, ["5x3", "5x4"]).signature == fixed.signature
    assert import_onnx(network, {"x": (5, 3), "z": "5x4"}).signature == fixed.signature


def test_sizes_that_some_exporters_write() -> None:
    network = model([node("Relu", ["x"], ["y"])], {"x": [-1, "?", "?"]}, ["y"])
    x = floats(2, 3, 4)
    close(import_onnx(network, [x.shape]).run(x)[0], np.maximum(x, 0))
    assert [spec.shape for spec in import_onnx(network).signature.inputs] == [(None, None, None)]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"m": 5}, "names 'm'"),
        ({"x": (5, 4)}, "has shape nx3"),
        ([(5, 3)], "the model has 2 inputs"),
    ],
)
def test_wrong_shapes(shapes: object, message: str) -> None:
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Add", ["a", "z"], ["y"])]
    network = model(nodes, {"x": ["n", 3], "z": ["n", 4]}, ["y"], {"w": floats(3, 4)})
    with pytest.raises(UsageError, match=message):
        import_onnx(network, shapes)  # pyright: ignore


def test_input_of_no_shape() -> None:
    network = model([node("Relu", ["x"], ["y"])], {"x": [1]}, ["y"])
    network.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UsageError, match="which shape its input 'x' has"):
        import_onnx(network)
    (y,) = import_onnx(network, {"x": "2x3"}).run(floats(2, 3))
    assert y.shape == (2, 3)


def test_value_that_must_be_known() -> None:
    network = model(
        [node("Identity", ["shape"], ["s"]), node("Reshape", ["x", "s"], ["y"])],
        {"x": [6], "shape": [2]},
        ["y"],
        kinds={"shape": TensorProto.INT64},
    )
    with pytest.raises(NeedsValueError, match="Reshape needs the value of 's'") as caught:
        import_onnx(network)
    assert caught.value.inputs == ("shape",)
    assert "constants={'shape': array}" in str(caught.value)
    program = import_onnx(network, constants={"shape": [3, 2]})
    assert [spec.name for spec in program.signature.inputs] == ["x"]
    assert program.run(floats(6))[0].shape == (3, 2)
    with pytest.raises(UsageError, match="'shapes', which is no input"):
        import_onnx(network, constants={"shapes": [3, 2]})


def test_ops_that_are_not_known_are_all_named() -> None:
    nodes = [
        node("Frobnicate", ["x"], ["a"], name="first", domain="my.ops"),
        node("Relu", ["a"], ["b"]),
        node("ImageDecoder", ["b"], ["y"]),
    ]
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(model(nodes, {"x": [3]}, ["y"]))
    text = str(caught.value)
    assert "my.ops.Frobnicate: model.onnx:1, first" in text
    assert "ImageDecoder: model.onnx:3" in text
    assert "Relu" not in text


def test_ops_that_torch_mlir_does_not_know_are_named_by_node() -> None:
    nodes = [node("Relu", ["x"], ["a"]), node("Bernoulli", ["a"], ["y"])]
    network = model(nodes, {"x": [3, 3]}, ["y"])
    with pytest.raises(UnsupportedError, match=r"model\.onnx:2"):
        import_onnx(network)


def test_node_that_reads_nothing() -> None:
    with pytest.raises(Error, match="reads 'nothing', which nothing before it defines"):
        import_onnx(model([node("Relu", ["nothing"], ["y"])], {"x": [3]}, ["y"]))


def test_node_that_cannot_be_evaluated() -> None:
    network = model(
        [node("MatMul", ["x", "w"], ["y"], name="bad")], {"x": [3, 5]}, ["y"], {"w": floats(4, 2)}
    )
    with pytest.raises(Error, match="MatMul fails") as caught:
        import_onnx(network)
    assert caught.value.place.layer == "bad"
    assert caught.value.place.line == 1


def test_local_functions_and_their_attributes() -> None:
    opsets = [helper.make_opsetid("", 21)]
    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    )
    function = helper.make_function("mine", "Slope", ["a"], ["b"], [leaky], opsets, ["slope"])
    nodes = [
        node("Slope", ["x"], ["a"], domain="mine", slope=0.5),
        node("Slope", ["a"], ["y"], domain="mine", slope=0.1),
    ]
    network = model(nodes, {"x": [4]}, ["y"])
    network.functions.append(function)
    x = np.array([-4.0, -1.0, 0.0, 2.0], np.float32)
    close(import_onnx(network).run(x)[0], np.where(x < 0, 0.05 * x, x))


def test_unsigned_inputs_and_outputs() -> None:
    kinds = {"x": TensorProto.UINT8, "z": TensorProto.UINT8, "y": TensorProto.UINT8}
    network = model([node("Add", ["x", "z"], ["y"])], {"x": ["n"], "z": ["n"]}, ["y"], kinds=kinds)
    program = import_onnx(network)
    assert [spec.element for spec in program.signature.inputs] == ["ui8", "ui8"]
    x, z = np.array([1, 200, 255], np.uint8), np.array([1, 100, 255], np.uint8)
    (y,) = program.run(x, z)
    assert y.dtype == np.uint8
    np.testing.assert_array_equal(y, x + z)


def test_unsigned_inputs_are_compiled(tmp_path: Path) -> None:
    kinds = {"x": TensorProto.UINT8, "y": TensorProto.UINT8, "w": TensorProto.FLOAT}
    nodes = [node("Cast", ["x"], ["w"], to=1), node("Max", ["x", "x"], ["y"])]
    program = import_onnx(model(nodes, {"x": [5]}, ["w", "y"], kinds=kinds))
    artifact = fewbit.compile(program, "cpu", tmp_path / "out")
    x = np.array([0, 1, 127, 128, 255], np.uint8)
    floats_, same = artifact(x)
    np.testing.assert_array_equal(floats_, x.astype(np.float32))
    np.testing.assert_array_equal(same, x)
    assert same.dtype == np.uint8


def test_graph_of_constants() -> None:
    program = import_onnx(model([node("Exp", ["c"], ["y"])], {}, ["y"], {"c": floats(3)}))
    close(program.run()[0], np.exp(floats(3)))


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("ReduceMean", {}),
        ("ReduceSum", {}),
        ("ReduceL2", {}),
        ("ReduceLogSumExp", {}),
        ("InstanceNormalization", {}),
        ("MeanVarianceNormalization", {"axes": [2, 3]}),
        ("LpNormalization", {"axis": 2}),
    ],
)
def test_f16_is_summed_in_f32(op: str, attributes: dict[str, Any]) -> None:
    x = (floats(1, 2, 256, 64) + 3).astype(np.float16)
    ones = {"ones": np.ones(2, np.float16), "zeros": np.zeros(2, np.float16)}
    given, constants = ["x"], {}
    if op == "InstanceNormalization":
        given, constants = [*given, *ones], ones
    elif op.startswith("Reduce"):
        given, constants = [*given, "axes"], {"axes": np.array([2])}
    kinds = {"x": TensorProto.FLOAT16, "y": TensorProto.FLOAT16}
    wide = {
        name: a.astype(np.float32) if a.dtype == np.float16 else a for name, a in constants.items()
    }
    nodes = [node(op, given, ["y"], **attributes)]
    program = import_onnx(model(nodes, {"x": x.shape}, ["y"], constants, kinds))
    (wanted,) = expected(model(nodes, {"x": x.shape}, ["y"], wide), x.astype(np.float32))
    for found in (program.run(x)[0], fewbit.compile(program)(x)):
        assert found.dtype == np.float16  # pyright: ignore
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)


def test_names_that_are_numbers() -> None:
    """Exporters number what has no name: inputs, initializers, and parts of their names."""
    nodes = [node("MatMul", ["0", "1"], ["2"]), node("Add", ["2", "w.0"], ["3"])]
    constants = {"1": floats(4, 3), "w.0": floats(3)}
    network = model(nodes, {"0": [2, 4]}, ["3"], constants)
    program = import_onnx(network)
    x = floats(2, 4, seed=1)
    for given in (program, fewbit.quantize(program, "w8a8")):
        result = fewbit.compile(given)(x)
        np.testing.assert_allclose(result, given.run(x)[0], rtol=1e-5)
    assert program.signature.inputs[0].name == "input0"


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_pads_that_cut_off(mode: str) -> None:
    nodes = [node("Pad", ["x", "pads"], ["y"], mode=mode)]
    network = model(nodes, {"x": [2, 5, 4]}, ["y"], {"pads": np.array([0, -1, 1, 0, 2, -2])})
    x = floats(2, 5, 4)
    wanted = cast(Any, np).pad(x[:, 1:, :2], [(0, 0), (0, 2), (1, 0)], mode=mode)
    program = import_onnx(network)
    np.testing.assert_array_equal(program.run(x)[0], wanted)
    np.testing.assert_array_equal(fewbit.compile(program)(x), wanted)


@pytest.mark.parametrize(
    ("c", "x"), [((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (3,)), ((2, 3), ()), (("n", 1), ("m",))]
)
def test_a_choice_between_a_tensor_and_itself(
    c: tuple[int | str, ...], x: tuple[int | str, ...]
) -> None:
    """Its result has the shape that both broadcast to."""
    nodes = [node("Where", ["c", "x", "x"], ["y"])]
    network = model(nodes, {"c": c, "x": x}, ["y"], kinds={"c": TensorProto.BOOL})
    program = import_onnx(network)
    known = {"n": 2, "m": 3}
    sizes = ([known[s] if isinstance(s, str) else s for s in shape] for shape in (c, x))
    condition, values = (floats(*shape) for shape in sizes)
    given = condition > 0, values
    (wanted,) = expected(network, *given)
    np.testing.assert_array_equal(program.run(*given)[0], wanted)
    np.testing.assert_array_equal(fewbit.compile(program)(*given), wanted)
