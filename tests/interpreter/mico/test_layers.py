"""Layers against PyTorch on the dequantized tensors, and against numerics; every width."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32, i32
from xdsl.ir import Attribute, Block, Region

from fewbit.base.typed_torch import from_numpy
from fewbit.dialects import mico
from fewbit.interpreter import interpret
from fewbit.ir.verify import verify
from fewbit.numerics import (
    WIDTHS,
    Quantized,
    Width,
    linear,
    quantize_activation,
    quantize_weight,
)

Array = NDArray[Any]
RNG = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape, dtype=np.float32)


def type_of(value: Array, width: Width | None) -> Attribute:
    if width is not None:
        return TensorType(mico.few_bit_type(width), value.shape)
    return TensorType(i32 if value.dtype == np.int32 else f32, value.shape)


def run(op: type[mico.LayerOp], *given: Array | Quantized | None, **named: Any) -> list[Array]:
    """Build a function of one op on these values, verify it, and run it."""
    block = Block()
    values: list[Array] = []

    def argument(value: Array | Quantized) -> Any:
        width, array = (
            (value.width, value.values) if isinstance(value, Quantized) else (None, value)
        )
        values.append(array)
        return block.insert_arg(type_of(array, width), len(block.args))

    operands = [None if value is None else argument(value) for value in given]
    for name, value in named.items():
        if isinstance(value, np.ndarray | Quantized):
            named[name] = argument(cast(Array | Quantized, value))
    made = op.of(*operands, **named)
    block.add_ops([made, func.ReturnOp(*made.results)])
    types = ([arg.type for arg in block.args], made.result_types)
    module = ModuleOp([func.FuncOp("main", types, Region(block))])
    verify(module)
    return list(interpret(module, *values))


def scales(weight: Quantized) -> dict[str, Any]:
    named: dict[str, Any] = {"weight_scale": weight.scale}
    if weight.zero_point is not None:
        named["weight_zero_point"] = weight.zero_point
    return named


def close(given: Array, expected: torch.Tensor) -> None:
    reference = expected.double().numpy()
    error = np.abs(given - reference).max() / max(np.abs(reference).max(), 1e-6)
    assert error < 1e-5, error


@pytest.mark.parametrize("act", [None, *WIDTHS], ids=str)
@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_linear_of_every_pair_of_widths(width: Width, act: Width | None) -> None:
    x, bias = normal(3, 2, 25), normal(7)
    weight = quantize_weight(normal(7, 25), width)
    (y,) = run(mico.BitLinearOp, x, weight, bias, act_bits=act, **scales(weight))
    seen = x if act is None else quantize_activation(x, act, granularity="row").dequantize()
    expected = F.linear(*(from_numpy(t).double() for t in (seen, weight.dequantize(), bias)))
    close(y, expected)


@pytest.mark.parametrize("granularity", ["tensor", "channel", "group"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_linear_of_every_granularity(granularity: Any, symmetric: bool) -> None:
    x = normal(4, 24)
    group = 8 if granularity == "group" else None
    weight = quantize_weight(
        normal(5, 24), 4, granularity=granularity, group=group, symmetric=symmetric
    )
    (y,) = run(mico.BitLinearOp, x, weight, act_bits=8, **scales(weight))
    seen = quantize_activation(x, 8, granularity="row").dequantize()
    close(y, from_numpy(seen).double() @ from_numpy(weight.dequantize()).double().T)


def test_integer_activations_and_static_scales_agree() -> None:
    x, weight = normal(4, 24), quantize_weight(normal(5, 24), 4)
    scale = np.float32(0.03)
    fixed = quantize_activation(x, 8, granularity="tensor", scale=scale)
    static = run(
        mico.BitLinearOp, x, weight, act_bits=8, act_scale=np.array(scale), **scales(weight)
    )
    arriving = run(mico.BitLinearOp, fixed, weight, act_scale=np.array(scale), **scales(weight))
    np.testing.assert_array_equal(static[0], arriving[0])


def test_accumulators_are_the_exact_sums() -> None:
    x, weight = quantize_activation(normal(4, 61), 8), quantize_weight(normal(5, 61), 3)
    bias = np.arange(5, dtype=np.int32)
    (acc,) = run(mico.BitLinearOp, x, weight, bias, result_types=[TensorType(i32, [4, 5])])
    np.testing.assert_array_equal(acc, linear(x.values, weight.values) + bias)


CONVOLUTIONS = [
    {},
    {"stride": [2, 1], "padding": [1, 2, 0, 3]},
    {"dilation": [2, 3], "padding": [2, 2, 3, 3]},
    {"groups": 2},
    {"groups": 4, "stride": [2, 2], "padding": [1, 1, 1, 1]},
]


@pytest.mark.parametrize("act", [None, 1, 1.58, 2, 4, 6, 8], ids=str)
@pytest.mark.parametrize("window", CONVOLUTIONS, ids=str)
def test_conv2d(window: dict[str, Any], act: float | None) -> None:
    groups = window.get("groups", 1)
    x, bias = normal(2, 4, 11, 12), normal(8)
    weight = quantize_weight(normal(8, 4 // groups, 3, 3), 6)
    act_bits = None if act is None else Width.of(act)
    (y,) = run(mico.BitConv2dOp, x, weight, bias, act_bits=act_bits, **window, **scales(weight))
    seen = x if act is None else quantize_activation(x, act, granularity="sample").dequantize()
    top, bottom, left, right = window.get("padding", [0, 0, 0, 0])
    expected = F.conv2d(
        F.pad(from_numpy(seen).double(), (left, right, top, bottom)),
        from_numpy(weight.dequantize()).double(),
        from_numpy(bias).double(),
        stride=window.get("stride", [1, 1]),
        dilation=window.get("dilation", [1, 1]),
        groups=groups,
    )
    close(y, expected)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_conv1d(width: Width) -> None:
    x = normal(2, 4, 20)
    weight = quantize_weight(normal(6, 2, 5), width)
    named = {"stride": [2], "padding": [2, 1], "dilation": [2], "groups": 2}
    (y,) = run(mico.BitConv1dOp, x, weight, act_bits=8, **named, **scales(weight))
    seen = quantize_activation(x, 8, granularity="sample").dequantize()
    expected = F.conv1d(
        F.pad(from_numpy(seen).double(), (2, 1)),
        from_numpy(weight.dequantize()).double(),
        stride=2,
        dilation=2,
        groups=2,
    )
    close(y, expected)


def test_mean_mode_of_activations() -> None:
    x, weight = normal(4, 24), quantize_weight(normal(5, 24), 8)
    (y,) = run(mico.BitLinearOp, x, weight, act_bits=4, act_mode="mean", **scales(weight))
    seen = quantize_activation(x, 4, mode="mean").dequantize()
    close(y, from_numpy(seen).double() @ from_numpy(weight.dequantize()).double().T)


@pytest.mark.parametrize("granularity", ["tensor", "channel", "group"])
def test_embedding(granularity: Any) -> None:
    group = 4 if granularity == "group" else None
    table = quantize_weight(normal(10, 8), 4, granularity=granularity, group=group)
    ids = np.array([[1, 9], [0, 1]], np.int32)
    (y,) = run(mico.EmbeddingOp, ids, table, **scales(table))
    np.testing.assert_array_equal(y, table.dequantize()[ids])
    (plain,) = run(mico.EmbeddingOp, ids, table.dequantize())
    np.testing.assert_array_equal(plain, y)


def test_all_zero_tensors() -> None:
    for width in WIDTHS:
        weight = quantize_weight(np.zeros((3, 5), np.float32), width)
        (y,) = run(
            mico.BitLinearOp, np.zeros((2, 5), np.float32), weight, act_bits=width, **scales(weight)
        )
        assert np.isfinite(y).all()
        assert np.abs(y).max() < 1e-8
