"""Models that other tools have quantized: their integers, scales and zero points stay theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.dialects.mico import ConstantOp
from fewbit.errors import UsageError
from fewbit.frontends.onnx import import_onnx
from fewbit.interpreter.mico.constants import constant_value
from fewbit.ir.layers import layers
from fewbit.program.program import Program
from tests.frontends.onnx.graphs import TensorProto, expected, floats, helper, model, node

SCALE = np.array(0.05, np.float32)


def weight_of(program: Program, layer: str) -> np.ndarray[Any, Any]:
    name = f"{layer}.weight"
    constants = {
        op.sym_name.data: op for op in program.module.body.block.ops if isinstance(op, ConstantOp)
    }
    return constant_value(constants[name], program.store)


def integers(low: int, high: int, *shape: int, dtype: Any = np.int8) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(low, high + 1, shape).astype(dtype)


def qdq_linear(weight: np.ndarray[Any, Any], zero: np.ndarray[Any, Any], **constants: Any) -> Any:
    nodes = [
        node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        node("DequantizeLinear", ["fc.weight_quantized", "ws"], ["wd"], axis=1),
        node("MatMul", ["xd", "wd"], ["y"]),
    ]
    scales = (1 + np.arange(weight.shape[1], dtype=np.float32)) / 64
    named = {"xs": SCALE, "xz": zero, "fc.weight_quantized": weight, "ws": scales} | constants
    return model(nodes, {"x": [3, 8]}, ["y"], named)


@pytest.mark.parametrize(
    "zero", [np.array(0, np.int8), np.array(-7, np.int8), np.array(140, np.uint8)]
)
def test_rounded_inputs_and_weights_make_a_layer(zero: np.ndarray[Any, Any]) -> None:
    weight = integers(-128, 127, 8, 5)
    network = qdq_linear(weight, zero)
    program = import_onnx(network)
    text = "w8a8-static" if zero == 0 else "w8a8-static-asym"
    assert program.recipe == f"fp,fc={text}"
    np.testing.assert_array_equal(weight_of(program, "fc"), weight.T)
    assert "linalg" not in program.text()  # nothing is rounded outside of the layer
    x = 3 * floats(3, 8)
    np.testing.assert_allclose(program.run(x)[0], expected(network, x)[0], rtol=1e-5, atol=1e-5)


def test_layer_runs_on_the_cpu(tmp_path: Path) -> None:
    network = qdq_linear(integers(-128, 127, 8, 5), np.array(140, np.uint8))
    x = 3 * floats(3, 8)
    y = fewbit.compile(import_onnx(network), "cpu", tmp_path / "out")(x)
    np.testing.assert_allclose(y, expected(network, x)[0], rtol=1e-5, atol=1e-5)


def test_quantized_layers_are_not_quantized_again() -> None:
    program = import_onnx(qdq_linear(integers(-128, 127, 8, 5), np.array(0, np.int8)))
    with pytest.raises(UsageError, match="quantized already"):
        fewbit.quantize(program, "w4a8")


def test_rounded_value_that_others_read_too() -> None:
    network = qdq_linear(integers(-128, 127, 8, 8), np.array(3, np.int8))
    network.graph.node.append(node("Add", ["y", "xd"], ["z"]))
    network.graph.output[0].name = "z"
    x = floats(3, 8)
    program = import_onnx(network)
    assert program.recipe == "fp,fc=w8a8-static-asym"
    np.testing.assert_allclose(program.run(x)[0], expected(network, x)[0], rtol=1e-5, atol=1e-5)


def test_weights_only() -> None:
    nodes = [
        node("DequantizeLinear", ["conv.weight", "ws", "wz"], ["wd"], axis=0),
        node("Conv", ["x", "wd"], ["y"]),
    ]
    weight = integers(0, 255, 4, 3, 3, 3, dtype=np.uint8)
    constants = {
        "conv.weight": weight,
        "ws": np.array([0.5, 0.25, 0.125, 1], np.float32),
        "wz": np.array([128, 100, 0, 255], np.uint8),
    }
    network = model(nodes, {"x": [1, 3, 6, 6]}, ["y"], constants)
    program = import_onnx(network)
    assert program.recipe == "fp,conv=w8afp-asym"
    np.testing.assert_array_equal(weight_of(program, "conv"), weight.astype(np.int32) - 128)
    x = floats(1, 3, 6, 6)
    np.testing.assert_allclose(program.run(x)[0], expected(network, x)[0], rtol=1e-4, atol=1e-3)


def test_groups_of_four_bits() -> None:
    weight = integers(-8, 7, 32, 6)
    packed = helper.make_tensor("fc.weight", TensorProto.INT4, weight.shape, weight.flatten())
    scales = np.abs(floats(2, 6)) + np.float32(0.1)
    nodes = [
        node("DequantizeLinear", ["fc.weight", "ws"], ["wd"], axis=0, block_size=16),
        node("MatMul", ["x", "wd"], ["y"]),
    ]
    network = model(nodes, {"x": [2, 32]}, ["y"], {"ws": scales})
    network.graph.initializer.append(packed)
    program = import_onnx(network)
    assert program.recipe == "fp,fc=w4afpg16"
    np.testing.assert_array_equal(weight_of(program, "fc"), weight.T)
    x = floats(2, 32)
    spread = weight.astype(np.float32) * scales.repeat(16, 0)
    np.testing.assert_allclose(program.run(x)[0], x @ spread, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("zeros", [False, True])
def test_packed_words_of_onnxruntime(zeros: bool) -> None:
    rows, columns, block = 6, 32, 16
    values = integers(0, 15, rows, columns, dtype=np.uint8)
    scales = np.abs(floats(rows, columns // block)) + np.float32(0.1)
    zero_points = integers(0, 15, rows, columns // block, dtype=np.uint8)
    packed = (values[:, ::2] | (values[:, 1::2] << 4)).reshape(rows, columns // block, block // 2)
    constants = {"fc.weight_Q4": packed, "s": scales.flatten()}
    names = ["x", "fc.weight_Q4", "s"]
    if zeros:
        constants["z"] = zero_points[:, ::2] | (zero_points[:, 1::2] << 4)
        names.append("z")
    attributes: dict[str, Any] = {"N": rows, "K": columns, "bits": 4, "block_size": block}
    nodes = [node("MatMulNBits", names, ["y"], domain="com.microsoft", **attributes)]
    program = import_onnx(model(nodes, {"x": [2, columns]}, ["y"], constants))
    assert program.recipe == "fp,fc=w4afpg16" + ("-asym" if zeros else "")
    np.testing.assert_array_equal(weight_of(program, "fc"), values.astype(np.int32) - 8)
    shift = zero_points.astype(np.int32) if zeros else np.full_like(zero_points, 8, np.int32)
    weight = (values - shift.repeat(block, 1)) * scales.repeat(block, 1)
    x = floats(2, columns)
    np.testing.assert_allclose(program.run(x)[0], x @ weight.T, rtol=1e-4, atol=1e-4)


def test_integer_convolution_between_grids() -> None:
    constants = {
        "xs": SCALE, "xz": np.array(120, np.uint8), "conv.weight": integers(-128, 127, 4, 2, 3, 3),
        "ws": np.array(0.02, np.float32), "wz": np.array(0, np.int8), "ys": np.array(0.5, np.float32),
        "yz": np.array(10, np.uint8), "b": integers(-500, 500, 4, dtype=np.int32),
    }  # fmt: skip
    names = ["x", "xs", "xz", "conv.weight", "ws", "wz", "ys", "yz", "b"]
    kinds = {"x": TensorProto.UINT8, "y": TensorProto.UINT8}
    nodes = [node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1])]
    network = model(nodes, {"x": [1, 2, 5, 5]}, ["y"], constants, kinds)
    program = import_onnx(network)
    assert program.recipe == "fp,conv=w8a8-tensor-static-asym"
    x = integers(0, 255, 1, 2, 5, 5, dtype=np.uint8)
    np.testing.assert_array_equal(program.run(x)[0], expected(network, x)[0])


def test_scales_that_are_computed_are_computed_with() -> None:
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", ["q", "w", "z"], ["i"]),
        node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["f", "s"], ["y"]),
    ]
    network = model(nodes, {"x": [3, 8]}, ["y"], {"w": integers(-128, 127, 8, 5)})
    program = import_onnx(network)
    assert layers(program.module) == {}
    for x in (floats(3, 8), np.zeros((3, 8), np.float32)):
        np.testing.assert_allclose(program.run(x)[0], expected(network, x)[0], rtol=1e-6)
