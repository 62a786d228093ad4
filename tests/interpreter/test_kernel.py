"""The semantics of the kernel dialect, against PyTorch and against exact integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn import functional

from fewbit.base.typed_torch import from_numpy
from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from fewbit.ir.verify import verify
from fewbit.numerics import requantize


def run(op: str, result: str, *inputs: np.ndarray) -> np.ndarray:
    names = {"float32": "f32", "int8": "i8"}
    types = [f"tensor<{'x'.join([*map(str, x.shape), names[x.dtype.name]])}>" for x in inputs]
    arguments = ", ".join(f"%{i}: {type}" for i, type in enumerate(types))
    module = parse_module(
        f"func.func @main({arguments}) -> {result} {{\n"
        f"  %y = kernel.{op} : ({', '.join(types)}) -> {result}\n"
        f"  func.return %y : {result}\n}}"
    )
    verify(module)
    (y,) = interpret(module, *inputs)
    return y


def floats(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(sum(shape)).normal(size=shape), np.float32)


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-128, 128, shape).astype(np.int8)


def channels_first(x: np.ndarray) -> torch.Tensor:
    return from_numpy(np.moveaxis(x, -1, 1).astype(np.float64))


def channels_last(y: torch.Tensor) -> np.ndarray:
    return np.moveaxis(y.numpy(), 1, -1)


def test_matmul_of_floats() -> None:
    x, w, b, r = floats(2, 3, 7), floats(5, 7), floats(5), floats(2, 3, 5)
    y = run(
        "matmul(%0, %1) bias(%2) add(%3) {minimum = -1.0, maximum = 0.5}",
        "tensor<2x3x5xf32>",
        x, w, b, r,
    )  # fmt: skip
    expected = np.clip(x.astype(np.float64) @ w.T + b + r, -1, 0.5)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    assert (y == -1).any()
    assert (y == 0.5).any()


def test_matmul_of_integers_is_exact() -> None:
    x, w = integers(3, 200), integers(4, 200)
    y = run("matmul(%0, %1)", "tensor<3x4xi32>", x, w)
    np.testing.assert_array_equal(y, x.astype(np.int64) @ w.T.astype(np.int64))


def test_sums_with_a_bias_and_a_multiplier() -> None:
    few = "(tensor<3x4xi32>, tensor<3x4x!mico.int<4>>)"
    types = "tensor<3x40xi8>, tensor<4x40xi8>, tensor<4xi32>, tensor<4xf32>"
    x, w = integers(3, 40), integers(4, 40)
    bias, multiplier = np.array([1, -9, 1 << 20, 0], np.int32), np.abs(floats(4)) / 5000
    arguments = ", ".join(f"%{i}: {type}" for i, type in enumerate(types.split(", ")))
    module = parse_module(
        f"func.func @main({arguments}) -> {few} {{\n"
        "  %y, %q = kernel.matmul(%0, %1) bias(%2) multiplier(%3) {minimum = -3.0}"
        f" : ({types}) -> {few}\n"
        f"  func.return %y, %q : {few[1:-1]}\n}}"
    )
    verify(module)
    y, q = interpret(module, x, w, bias, multiplier)
    np.testing.assert_array_equal(y, x.astype(np.int64) @ w.T.astype(np.int64) + bias)
    np.testing.assert_array_equal(q, np.maximum(requantize(y, multiplier, 4), -3))
    assert (y.dtype, q.dtype) == (np.int32, np.int8)
    assert (q == 7).any()
    assert (q == -3).any()


def scale_in_order(acc: np.ndarray, *factors: np.ndarray) -> np.ndarray:
    y = acc.astype(np.float32)
    for factor in factors:
        y = (y * factor).astype(np.float32)
    return y


@pytest.mark.parametrize("rows", [(), (2,), (2, 3)])
@pytest.mark.parametrize("channels", [(), (5,)])
def test_matmul_of_integers_with_scales(rows: tuple[int, ...], channels: tuple[int, ...]) -> None:
    x, w, b, r = integers(2, 3, 90), integers(5, 90), floats(5), floats(2, 3, 5)
    s, t = np.abs(floats(*rows)), np.abs(floats(*channels)) / 1000
    y = run(
        "matmul(%0, %1) x_scale(%2) weight_scale(%3) bias(%4) add(%5) {minimum = 0.0}",
        "tensor<2x3x5xf32>",
        x, w, s, t, b, r,
    )  # fmt: skip
    acc = x.astype(np.int64) @ w.T.astype(np.int64)
    expected = scale_in_order(acc, s.reshape(s.shape + (1,) * (3 - s.ndim)), t) + b + r
    np.testing.assert_array_equal(y, np.maximum(expected, 0))
    assert y.dtype == np.float32


def test_conv2d_of_integers_with_scales() -> None:
    x, w, b, r = integers(2, 4, 3, 6), integers(5, 6, 1, 1), floats(5), floats(2, 4, 3, 5)
    s, t = np.abs(floats(2)), np.abs(floats(5)) / 1000
    y = run(
        "conv2d(%0, %1) x_scale(%2) weight_scale(%3) bias(%4) add(%5) {maximum = 6.0}",
        "tensor<2x4x3x5xf32>",
        x, w, s, t, b, r,
    )  # fmt: skip
    acc = x.astype(np.int64) @ w[:, :, 0, 0].T.astype(np.int64)
    expected = scale_in_order(acc, s[:, None, None, None], t) + b + r
    np.testing.assert_array_equal(y, np.minimum(expected, 6))


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("kind", [floats, integers])
def test_conv2d(groups: int, kind: Callable[..., np.ndarray]) -> None:
    x, w = kind(2, 9, 8, 6), kind(12, 6 // groups, 3, 2)
    element = "f32" if kind is floats else "i32"
    y = run(
        "conv2d(%0, %1) {stride = [2, 1], padding = [1, 2, 0, 1], dilation = [2, 3], "
        f"groups = {groups}}}",
        f"tensor<2x4x6x12x{element}>",
        x,
        w,
    )
    padded = functional.pad(channels_first(x), (0, 1, 1, 2))
    weight = from_numpy(w.astype(np.float64))
    expected = functional.conv2d(padded, weight, stride=(2, 1), dilation=(2, 3), groups=groups)
    np.testing.assert_allclose(y, channels_last(expected), rtol=1e-5, atol=1e-5)


def test_conv2d_with_all_that_follows() -> None:
    x, w, b, r = floats(1, 4, 4, 3), floats(5, 3, 1, 1), floats(5), floats(1, 4, 4, 5)
    y = run(
        "conv2d(%0, %1) bias(%2) add(%3) {minimum = 0.0, maximum = 6.0}",
        "tensor<1x4x4x5xf32>",
        x, w, b, r,
    )  # fmt: skip
    expected = np.clip(x.astype(np.float64) @ w[:, :, 0, 0].T + b + r, 0, 6)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ceil", [False, True])
def test_max_pool(ceil: bool) -> None:
    x = floats(2, 8, 8, 3) - 5
    extent = 5 if ceil else 4
    y = run(
        'pool2d(%0) {kind = "max", kernel_size = [3, 3], stride = [2, 2], padding = [1, 1], '
        f"ceil_mode = {str(ceil).lower()}}}",
        f"tensor<2x{extent}x{extent}x3xf32>",
        x,
    )
    expected = functional.max_pool2d(channels_first(x), 3, 2, 1, ceil_mode=ceil)
    np.testing.assert_array_equal(y, channels_last(expected).astype(np.float32))


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("ceil", [False, True])
def test_average_pool(counted: bool, ceil: bool) -> None:
    x = floats(2, 8, 8, 3)
    extent = 5 if ceil else 4
    y = run(
        'pool2d(%0) {kind = "average", kernel_size = [3, 3], stride = [2, 2], padding = [1, 1], '
        f"ceil_mode = {str(ceil).lower()}, count_include_pad = {str(counted).lower()}}}",
        f"tensor<2x{extent}x{extent}x3xf32>",
        x,
    )
    expected = functional.avg_pool2d(
        channels_first(x), 3, 2, 1, ceil_mode=ceil, count_include_pad=counted
    )
    np.testing.assert_allclose(y, channels_last(expected), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("rows", [(), (2,), (2, 3)])
def test_matmul_with_scales_of_groups(rows: tuple[int, ...]) -> None:
    x, w, b = integers(2, 3, 90), integers(5, 90), floats(5)
    s, t = np.abs(floats(*rows)), np.abs(floats(5, 3)) / 1000
    y = run(
        "matmul(%0, %1) x_scale(%2) weight_scale(%3) bias(%4)",
        "tensor<2x3x5xf32>",
        x, w, s, t, b,
    )  # fmt: skip
    s = s.reshape(s.shape + (1,) * (3 - s.ndim))
    total = np.zeros((2, 3, 5), np.float32)
    for i in range(3):
        part = slice(30 * i, 30 * (i + 1))
        acc = x[..., part].astype(np.int64) @ w[:, part].T.astype(np.int64)
        total = total + scale_in_order(acc, s, t[:, i])
    np.testing.assert_array_equal(y, total + b)


@pytest.mark.parametrize(("granularity", "rows"), [("row", 6), ("sample", 2), ("tensor", 1)])
def test_quantize_rows(granularity: str, rows: int) -> None:
    x = floats(2, 3, 7)
    scales = {"row": "2x3x", "sample": "2x", "tensor": ""}[granularity]
    module = parse_module(
        f"func.func @main(%x: tensor<2x3x7xf32>) -> (tensor<2x3x7x!mico.int<4>>, tensor<{scales}f32>) {{\n"
        f'  %u, %s = kernel.quantize_rows(%x) {{bits = 4, granularity = "{granularity}"}}'
        f" : (tensor<2x3x7xf32>) -> (tensor<2x3x7x!mico.int<4>>, tensor<{scales}f32>)\n"
        f"  func.return %u, %s : tensor<2x3x7x!mico.int<4>>, tensor<{scales}f32>\n}}"
    )
    values, scale = interpret(module, x)
    factor = np.float32(7) / np.abs(x.reshape(rows, -1)).max(axis=1, keepdims=True)
    np.testing.assert_array_equal(values.reshape(rows, -1), np.rint(x.reshape(rows, -1) * factor))
    np.testing.assert_array_equal(scale.reshape(rows, 1), np.float32(1) / factor)
