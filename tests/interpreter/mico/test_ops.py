"""The other ops of the dialect against PyTorch, and every op of it on random programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, ModuleOp, TensorType, i1
from xdsl.ir import Attribute

from fewbit.base.typed_torch import from_numpy
from fewbit.dialects import mico
from fewbit.errors import InterpretError
from fewbit.interpreter import interpret
from fewbit.interpreter.values import dtype_of
from fewbit.ir.parse import parse_module
from fewbit.numerics import (
    fixed_point,
    quantize_activation,
    quantize_weight,
    requantize,
)
from tests.dialects.programs import OPS, functions
from tests.interpreter.mico.test_layers import close, normal, run


def tensor(x: Any) -> torch.Tensor:
    return from_numpy(x).double()


Unary = tuple[type[mico.LayerOp], dict[str, Any], Callable[[torch.Tensor], torch.Tensor]]
UNARY: list[Unary] = [
    (mico.ReluOp, {}, F.relu),
    (mico.Relu6Op, {}, F.relu6),
    (mico.SiluOp, {}, F.silu),
    (mico.GeluOp, {}, F.gelu),
    (mico.GeluOp, {"approximate": "tanh"}, lambda x: F.gelu(x, approximate="tanh")),
    (mico.SoftmaxOp, {"dim": 1}, lambda x: F.softmax(x, 1)),
    (mico.SoftmaxOp, {"dim": -1}, lambda x: F.softmax(x, -1)),
    (mico.FlattenOp, {"start_dim": 1}, lambda x: x.flatten(1)),
    (mico.FlattenOp, {"start_dim": 0, "end_dim": 1}, lambda x: x.flatten(0, 1)),
    (mico.ReshapeOp, {"shape": [0, -1, 2]}, lambda x: x.reshape(2, -1, 2)),
    (mico.TransposeOp, {"permutation": [2, 0, 1]}, lambda x: x.permute(2, 0, 1)),
]


@pytest.mark.parametrize(("op", "named", "reference"), UNARY)
def test_unary(op: type[mico.LayerOp], named: dict[str, Any], reference: Any) -> None:
    x = normal(2, 3, 4) * 5
    (y,) = run(op, x, **named)
    close(y, reference(tensor(x)))


def test_binary_and_concat() -> None:
    x, y = normal(2, 3), normal(3)
    np.testing.assert_array_equal(run(mico.AddOp, x, y)[0], x + y)
    np.testing.assert_array_equal(run(mico.MulOp, x, y)[0], x * y)
    np.testing.assert_array_equal(run(mico.ConcatOp, x, x, dim=-1)[0], np.concatenate([x, x], 1))


def test_normalizations() -> None:
    x = normal(2, 5, 4)
    w, b, mean, variance = normal(5), normal(5), normal(5), np.abs(normal(5))
    (y,) = run(mico.BatchNormOp, x, w, b, mean, variance, eps=1e-3)
    close(
        y, F.batch_norm(tensor(x), tensor(mean), tensor(variance), tensor(w), tensor(b), eps=1e-3)
    )
    gamma, beta = normal(5, 4), normal(5, 4)
    (y,) = run(mico.LayerNormOp, x, gamma, beta, dims=2)
    close(y, F.layer_norm(tensor(x), (5, 4), tensor(gamma), tensor(beta)))
    (y,) = run(mico.RmsNormOp, x, normal(4) * 0 + 2, eps=1e-6)
    close(y, F.rms_norm(tensor(x), (4,), eps=1e-6) * 2)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (3, 2), (3, 1), (2, 3)])
def test_pools(kernel: int, stride: int, padding: int, ceil_mode: bool) -> None:
    x = normal(2, 3, 9, 10)
    window = {"kernel_size": [kernel] * 2, "stride": [stride] * 2, "padding": [padding] * 4}
    for dilation in (1, 2):
        (y,) = run(mico.MaxPool2dOp, x, **window, dilation=[dilation] * 2, ceil_mode=ceil_mode)
        close(y, F.max_pool2d(tensor(x), kernel, stride, padding, dilation, ceil_mode))
    for include in (False, True):
        (y,) = run(mico.AvgPool2dOp, x, **window, ceil_mode=ceil_mode, count_include_pad=include)
        close(y, F.avg_pool2d(tensor(x), kernel, stride, padding, ceil_mode, include))


def test_a_window_of_ceil_mode_is_larger_than_the_image() -> None:
    x = normal(2, 3, 1, 4)
    window = {"kernel_size": [2, 5], "stride": [2, 2], "ceil_mode": True}
    (y,) = run(mico.MaxPool2dOp, x, **window)
    close(y, F.max_pool2d(tensor(x), (2, 5), 2, ceil_mode=True))
    (y,) = run(mico.AvgPool2dOp, x, **window)
    close(y, F.avg_pool2d(tensor(x), (2, 5), 2, ceil_mode=True))


def test_pool_of_integers() -> None:
    x = quantize_activation(normal(1, 2, 6, 6), 4, granularity="tensor")
    (y,) = run(mico.MaxPool2dOp, x, kernel_size=[2, 2])
    assert y.dtype == np.int8
    close(y, F.max_pool2d(tensor(x.values.astype(np.float64)), 2))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [6, 2])
def test_attention(causal: bool, heads: int) -> None:
    q, k, v = normal(2, 6, 5, 8), normal(2, heads, 5, 8), normal(2, heads, 5, 8)
    (y,) = run(mico.AttentionOp, q, k, v, causal=causal)
    expected = F.scaled_dot_product_attention(
        tensor(q), tensor(k), tensor(v), is_causal=causal, enable_gqa=True
    )
    close(y, expected)
    mask = normal(5, 5)
    (y,) = run(mico.AttentionOp, q, k, v, mask=mask, scale=0.3)
    close(
        y,
        F.scaled_dot_product_attention(
            tensor(q), tensor(k), tensor(v), tensor(mask), scale=0.3, enable_gqa=True
        ),
    )


def test_quantized_attention_is_attention_of_rounded_parts() -> None:
    q, k, v = normal(2, 3, 5, 8), normal(2, 3, 7, 8), normal(2, 3, 7, 8)
    widths = {"query_bits": 4, "key_bits": 8, "value_bits": 3}
    (y,) = run(mico.AttentionOp, q, k, v, **widths)
    (coarse,) = run(mico.AttentionOp, q, k, v, **widths, score_bits=2)
    assert np.abs(coarse - y).max() > 1e-3
    q, k, v = (tensor(quantize_activation(t, b).dequantize()) for t, b in ((q, 4), (k, 8), (v, 3)))
    close(y, F.scaled_dot_product_attention(q, k, v))


def test_quantization_ops_are_numerics() -> None:
    w, x = normal(6, 8), normal(3, 4, 8)
    for named in (
        {"granularity": "tensor"},
        {"granularity": "group", "group": 4},
        {"mode": "mean"},
    ):
        expected = quantize_weight(w, 5, **named)  # pyright: ignore[reportArgumentType]
        u, s = run(mico.WeightQuantOp, w, bits=5, **named)
        np.testing.assert_array_equal(u, expected.values)
        np.testing.assert_array_equal(s, expected.scale)
    expected = quantize_weight(w, 5, symmetric=False)
    u, s, z = run(mico.WeightQuantOp, w, bits=5, symmetric=False)
    np.testing.assert_array_equal(z, expected.zero_point)
    (rounded,) = run(mico.ActivationQuantOp, x, bits=4)
    np.testing.assert_array_equal(rounded, quantize_activation(x, 4).dequantize())


def test_static_quantization_of_any_leading_scale() -> None:
    x = normal(3, 4, 8)
    few = TensorType(mico.IntType(8), [3, 4, 8])
    for shape in ((), (3,), (3, 4)):
        scale = np.abs(RNG.standard_normal(shape)).astype(np.float32) / 30 + np.float32(0.01)
        zero_point = np.full(shape, 3, np.int32)
        (u,) = run(mico.QuantizeOp, x, scale, zero_point=zero_point, result_types=[few])
        spread = scale.reshape(*shape, *[1] * (3 - len(shape)))
        np.testing.assert_array_equal(u, np.clip(np.round(x / spread) + 3, -128, 127))


RNG = np.random.default_rng(1)


def test_requantize() -> None:
    acc = RNG.integers(-30000, 30000, (4, 6)).astype(np.int32)
    multiplier = (RNG.random(6) / 300).astype(np.float32)
    few = [TensorType(mico.IntType(8), [4, 6])]
    (u,) = run(mico.RequantizeOp, acc, multiplier, axis=1, result_types=few)
    np.testing.assert_array_equal(u, requantize(acc, multiplier, 8, axis=1))
    fixed = fixed_point(multiplier)
    (v,) = run(
        mico.RequantizeOp, acc, fixed.multiplier, shift=fixed.shift, axis=1, result_types=few
    )
    assert np.abs(u.astype(int) - v).max() <= 1


def test_bundles_keep_their_parts() -> None:
    module = parse_module(
        "func.func @main(%u: tensor<2x2x!mico.int<4>>, %s: tensor<2xf32>) -> (tensor<2x2x!mico.int<4>>, tensor<2xf32>) {\n"
        "%b = mico.bundle(%u, %s) : (tensor<2x2x!mico.int<4>>, tensor<2xf32>) -> !mico.qtensor<tensor<2x2x!mico.int<4>>, tensor<2xf32>, none>\n"
        "%v, %t = mico.unbundle(%b) : (!mico.qtensor<tensor<2x2x!mico.int<4>>, tensor<2xf32>, none>) -> (tensor<2x2x!mico.int<4>>, tensor<2xf32>)\n"
        "func.return %v, %t : tensor<2x2x!mico.int<4>>, tensor<2xf32>\n}"
    )
    u, s = np.array([[1, -8], [7, 0]], np.int8), np.array([0.5, 2], np.float32)
    v, t = interpret(module, u, s)
    np.testing.assert_array_equal(v, u)
    np.testing.assert_array_equal(t, s)


def test_index_beyond_the_table() -> None:
    with pytest.raises(InterpretError, match="table of 3 rows"):
        run(mico.EmbeddingOp, np.array([3], np.int32), normal(3, 2))


def value_of(type: Attribute, rng: np.random.Generator) -> Any:
    """A value of a type: unknown dimensions are 9, integers 0, i1 true, floats positive."""
    element = mico.element_type(type)
    shape = tuple(9 if d == DYNAMIC_INDEX else d for d in mico.shape_of(type))
    width = mico.element_width(type)
    if width is not None:
        values = rng.integers(width.qmin, width.qmax + 1, shape)
        return np.where((values == 0) & width.is_binary, 1, values).astype(np.int8)
    if isinstance(type, mico.QTensorType):
        parts = np.empty((), object)
        parts[()] = tuple(value_of(p, rng) for p in (type.values, type.scale))
        return parts
    if isinstance(element, IntegerType):
        return np.full(shape, element == i1, dtype_of(type))
    return (rng.random(shape) + 0.1).astype(dtype_of(type))


@pytest.mark.parametrize("kind", sorted(set(OPS) - {"mico.unbundle", "mico.bundle"}))
@settings(
    deadline=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_every_op_runs_on_random_programs(kind: str, data: st.DataObject) -> None:
    function = data.draw(functions("main", OPS[kind]))
    module = ModuleOp([function])
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    results = interpret(module, *(value_of(arg.type, rng) for arg in function.args))
    for result, type in zip(results, function.function_type.outputs, strict=True):
        width = mico.element_width(type)
        assert width is None or width.holds(result)
