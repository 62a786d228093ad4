"""The torch formulas against `fewbit.numerics`, bit by bit, and their gradients."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fewbit import numerics
from fewbit.base.typed_torch import backward, from_numpy
from fewbit.errors import Error, ShapeError, WidthError
from fewbit.numerics import WIDTHS, ActivationGranularity, Granularity, ScaleType, WeightMode, Width
from fewbit.numerics.hadamard import rotate as numpy_rotate
from fewbit.quant.scheme import LayerScheme
from fewbit.quant.torch.fake_quant import (
    Integers,
    fake_quant_activation,
    fake_quant_weight,
    quantize_activation,
    quantize_weight,
    rotate,
)
from tests.numerics.ties import runs_at_ties

ROWS: tuple[ActivationGranularity, ...] = get_args(ActivationGranularity)
every_width = pytest.mark.parametrize("width", WIDTHS, ids=str)
numbers = st.floats(-8, 8, width=32) | st.sampled_from(
    [0.0, -0.0, 1e-30, 1e-5, -1e30, 3.4e38, 0.5, 1.5, 2.5]
).map(lambda x: float(np.float32(x)))
tensors = arrays.arrays(np.float32, st.tuples(st.integers(1, 4), st.just(6)), elements=numbers)


def normal(*shape: int, scale: float = 1.0) -> Any:
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def same(found: Integers, expected: numerics.Quantized) -> None:
    assert found.values.shape == expected.shape
    np.testing.assert_array_equal(found.values.numpy(), expected.values)
    np.testing.assert_array_equal(found.scale.numpy(), expected.scale)
    if expected.offset is not None:
        assert found.offset is not None
        np.testing.assert_array_equal(found.offset.numpy(), expected.offset)
    elif expected.zero_point is None:
        assert found.zero_point is None
    else:
        assert found.zero_point is not None
        np.testing.assert_array_equal(found.zero_point.numpy(), expected.zero_point)
    np.testing.assert_array_equal(found.dequantize().numpy(), expected.dequantize())


@pytest.mark.parametrize("length", [2, 64, 2048, 131072])
def test_means_are_summed_in_the_order_of_the_numerics(length: int) -> None:
    x = runs_at_ties(4, length)
    scheme = LayerScheme(weight=Width.of(2))
    same(quantize_weight(from_numpy(x), scheme), numerics.quantize_weight(x, 2))


_GRANULARITIES: tuple[tuple[Granularity, int | None], ...] = (
    ("tensor", None),
    ("channel", None),
    ("group", 8),
)


ALL_MODES: tuple[WeightMode, ...] = tuple(mode for mode in get_args(WeightMode) if mode != "offset")
"""Modes of any shape; offsets are for groups of matrices."""


def weight_schemes(width: Width) -> list[LayerScheme]:
    results = [
        LayerScheme(weight=width, granularity=granularity, group=group, mode=mode)
        for granularity, group in _GRANULARITIES
        for mode in (ALL_MODES if width.bits > 2 else ("max", "mean"))
    ]
    if width.precision >= 2:
        results += [
            LayerScheme(weight=width, granularity="tensor", symmetric=False),
            LayerScheme(weight=width, symmetric=False),
            LayerScheme(weight=width, granularity="group", group=8, symmetric=False),
        ]
    results += [
        LayerScheme(weight=width, granularity="group", group=8, mode=mode, scales="f16")
        for mode in (ALL_MODES if width.bits > 2 else ("max", "mean"))
    ]
    return results


@every_width
@pytest.mark.parametrize("shape", [(7, 24), (5, 3, 2, 4), (4, 8, 3)])
def test_weights(width: Width, shape: tuple[int, ...]) -> None:
    for scale in (1.0, 1e-6, 1e6):
        w = normal(*shape, scale=scale)
        for scheme in weight_schemes(width):
            same(quantize_weight(from_numpy(w), scheme), scheme.quantize_weight(w))


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("scales", get_args(ScaleType))
def test_weights_with_offsets(bits: int, scales: ScaleType) -> None:
    scheme = LayerScheme(
        weight=Width.of(bits), granularity="group", group=8, mode="offset", scales=scales
    )
    for scale in (1.0, 1e-6, 1e6):
        w = normal(7, 24, scale=scale)
        same(quantize_weight(from_numpy(w), scheme), scheme.quantize_weight(w))
    x = from_numpy(normal(4, 16)).requires_grad_()
    backward(fake_quant_weight(x, scheme).sum())
    assert x.grad is not None
    assert torch.equal(x.grad, torch.ones(4, 16))


@pytest.mark.parametrize("text", ["w1a8", "w2a8-tensor", "w4a8-mean", "w8a8-tensor", "w4a8-mse"])
def test_long_weights(text: str) -> None:
    """Sums in blocks, whatever the library's own order of summation."""
    w, scheme = normal(2, 140_003), LayerScheme.of(text)
    same(quantize_weight(from_numpy(w), scheme), scheme.quantize_weight(w))


@pytest.mark.parametrize("text", ["w8a8h64", "w4a8g32h128", "w2a8h2", "w4a8h32-asym", "w3a8h256"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rotated_weights(text: str, dtype: Any) -> None:
    w, scheme = normal(5, 256).astype(dtype), LayerScheme.of(text)
    same(quantize_weight(from_numpy(w), scheme), scheme.quantize_weight(w))
    assert scheme.hadamard is not None
    x = normal(3, 2, 256)
    np.testing.assert_array_equal(
        rotate(from_numpy(x), scheme.hadamard).numpy(), numpy_rotate(x, scheme.hadamard)
    )


@every_width
@pytest.mark.parametrize("granularity", ROWS)
def test_activations(width: Width, granularity: ActivationGranularity) -> None:
    for shape in ((33,), (5, 24), (3, 4, 5, 6)):
        x = normal(*shape)
        group = 3 if granularity == "group" else None
        for mode in ("max", "mean"):
            expected = numerics.quantize_activation(
                x, width, granularity=granularity, group=group, mode=mode
            )
            quantized = quantize_activation(from_numpy(x), width, granularity, mode, group=group)
            same(quantized, expected)


@every_width
def test_static_activations(width: Width) -> None:
    x, scale = normal(5, 24) * 3, np.float32(0.37)
    expected = numerics.quantize_activation(x, width, scale=scale)
    same(quantize_activation(from_numpy(x), width, scale=torch.tensor(scale)), expected)
    if width.precision < 2:
        return
    expected = numerics.quantize_activation(x, width, scale=scale, zero_point=-1)
    zero = torch.tensor(-1.0)
    quantized = quantize_activation(
        from_numpy(x), width, scale=torch.tensor(scale), zero_point=zero
    )
    same(quantized, expected)
    dynamic = numerics.quantize_activation(x, width, symmetric=False)
    same(quantize_activation(from_numpy(x), width, symmetric=False), dynamic)


@settings(max_examples=200)
@given(tensors, st.sampled_from(WIDTHS), st.sampled_from(["max", "mean"]))
def test_hard_values(w: Any, width: Width, mode: Any) -> None:
    """Ties, zeros of both signs, all-zero rows, and values at both ends of float32."""
    scheme = LayerScheme(weight=width, mode=mode)
    same(quantize_weight(from_numpy(w), scheme), scheme.quantize_weight(w))
    expected = numerics.quantize_activation(w, width, mode=mode)
    same(quantize_activation(from_numpy(w), width, mode=mode), expected)


@settings(max_examples=200)
@given(tensors, st.integers(3, 8), st.sampled_from(["mse", "signed-max"]))
def test_hard_values_of_fitted_scales(w: Any, bits: int, mode: Any) -> None:
    scheme = LayerScheme(weight=Width.of(bits), mode=mode)
    same(quantize_weight(from_numpy(w), scheme), scheme.quantize_weight(w))


@every_width
def test_ties_go_to_even_and_zeros_to_plus_one(width: Width) -> None:
    scale = torch.tensor(1.0)
    x = torch.tensor([-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5])
    found = quantize_activation(x, width, scale=scale).values
    even = torch.tensor([-2.0, -2, 0, 0, 0, 2, 2]).clamp(width.qmin, width.qmax)
    binary = torch.tensor([-1.0, -1, -1, 1, 1, 1, 1])
    assert torch.equal(found, binary if width.is_binary else even)
    zeros = torch.zeros(2, 5)
    expected = torch.ones(2, 5) if width.is_binary else zeros
    assert torch.equal(quantize_weight(zeros, LayerScheme(weight=width)).values, expected)


def test_layout_and_default_dtype_do_not_matter() -> None:
    w = from_numpy(normal(24, 7))
    scheme = LayerScheme.of("w2a8")
    same(quantize_weight(w.T, scheme), scheme.quantize_weight(w.T.contiguous().numpy()))
    torch.set_default_dtype(torch.float64)
    try:
        for width in WIDTHS:
            quantized = quantize_weight(w, LayerScheme(weight=width))
            assert quantized.values.dtype == quantized.scale.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_precisions_keep_their_type(dtype: torch.dtype) -> None:
    x = from_numpy(normal(3, 8)).to(dtype)
    y = fake_quant_activation(x, Width(4))
    assert y.dtype == dtype
    assert torch.equal(y, quantize_activation(x.float(), Width(4)).dequantize().to(dtype))


@every_width
def test_weight_gradients_pass_everywhere(width: Width) -> None:
    for scheme in weight_schemes(width):
        w = from_numpy(normal(4, 16)).requires_grad_()
        upstream = from_numpy(normal(4, 16) + 3)
        value = fake_quant_weight(w, scheme)
        backward((value * upstream).sum())
        assert torch.equal(value.detach(), quantize_weight(w, scheme).dequantize())
        assert w.grad is not None
        assert torch.equal(w.grad, upstream)


@every_width
def test_activation_gradients_stop_beyond_the_range(width: Width) -> None:
    x = torch.linspace(-300, 300, 601).requires_grad_()
    backward(fake_quant_activation(x, width, scale=torch.tensor(1.0)).sum())
    inside = (x >= width.qmin - 0.5) & (x <= width.qmax + 0.5)
    assert x.grad is not None
    assert torch.equal(x.grad, inside.float())


@every_width
@pytest.mark.parametrize("granularity", ROWS)
def test_dynamic_activation_gradients_are_not_zero(
    width: Width, granularity: ActivationGranularity
) -> None:
    x = from_numpy(normal(3, 4, 8)).requires_grad_()
    group = 2 if granularity == "group" else None
    backward(fake_quant_activation(x, width, granularity, group=group).sum())
    assert x.grad is not None
    assert (x.grad != 0).float().mean() > 0.5
    if width.bits > 2:
        assert (x.grad == 1).all()


def test_gradients_are_those_of_the_identity() -> None:
    """Beyond one step: a function of the rounded weight, differentiated at the rounded weight."""
    w = from_numpy(normal(4, 8)).requires_grad_()
    backward((fake_quant_weight(w, LayerScheme.of("w3a8")) ** 2).sum())
    rounded = quantize_weight(w, LayerScheme.of("w3a8")).dequantize()
    assert w.grad is not None
    assert torch.equal(w.grad, 2 * rounded)


def test_float_stays_as_it_is() -> None:
    x = from_numpy(normal(2, 3))
    assert fake_quant_activation(x, None) is x
    assert fake_quant_weight(x, LayerScheme.of("wfpa8")) is x


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_numbers(bad: float) -> None:
    x = torch.ones(3, 4)
    x[1, 2] = bad
    for width in (Width(1), Width(4)):
        with pytest.raises(Error, match="not finite"):
            quantize_weight(x, LayerScheme(weight=width))
        with pytest.raises(Error, match="not finite"):
            quantize_activation(x, width)
        with pytest.raises(Error, match="not finite"):
            quantize_activation(x, width, scale=torch.tensor(1.0))


def test_shapes_and_widths_that_do_not_go_together() -> None:
    with pytest.raises(ShapeError, match="do not divide"):
        quantize_weight(torch.ones(3, 25), LayerScheme.of("w4a8g4"))
    with pytest.raises(ShapeError, match="empty"):
        quantize_activation(torch.ones(3, 0), Width(8))
    with pytest.raises(WidthError, match="asymmetric"):
        quantize_activation(torch.ones(3), Width(1), symmetric=False)
