"""Weights that are given: their integers, scales and zero points reach the program as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fewbit.errors import Error, ShapeError, UsageError, WidthError
from fewbit.frontends.quantize import quantize
from fewbit.numerics import Quantized, Width, bitlinear, pack
from fewbit.program.program import Program
from fewbit.program.store import WeightStore
from fewbit.quant.given import given_weight, reconcile
from fewbit.quant.recipe import Recipe
from fewbit.quant.scheme import LayerScheme

N, K, INPUTS = 6, 8, 3
TEXT = """
mico.constant @a.weight : tensor<6x8xf32> = #mico.ref<"a", "{a}">
mico.constant @b.weight : tensor<4x6xf32> = #mico.ref<"b", "{b}">
func.func @main(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {{
  %h = mico.bitlinear(%x, @a.weight) : (tensor<?x8xf32>) -> tensor<?x6xf32>
  %y = mico.bitlinear(%h, @b.weight) : (tensor<?x6xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}}
"""
TIED = """
mico.constant @a.weight : tensor<6x6xf32> = #mico.ref<"a", "{a}">
func.func @main(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {{
  %h = mico.bitlinear(%x, @a.weight) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  %y = mico.bitlinear(%h, @a.weight) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  func.return %y : tensor<?x6xf32>
}}
"""


def weight(
    bits: float = 4,
    groups: int | None = None,
    asymmetric: bool = False,
    shape: tuple[int, ...] = (N, K),
    seed: int = 0,
) -> Quantized:
    """Integers that no rounding of floats would give: none uses the whole range."""
    rng = np.random.default_rng(seed)
    width = Width.of(bits)
    low, high = max(width.qmin, -5), min(width.qmax, 5)
    values = rng.integers(low, high + 1, shape)
    if width.is_binary:
        values = np.where(values < 0, -1, 1)
    scales = (shape[0],) if groups is None else (shape[0], groups)
    scale = rng.uniform(0.01, 0.1, scales).astype(np.float32)
    zeros = rng.integers(low, high + 1, scales) if asymmetric else None
    return given_weight(values, scale, zeros, width=width)


def program(text: str = TEXT, **shapes: tuple[int, int]) -> Program:
    rng = np.random.default_rng(1)
    store = WeightStore()
    shapes = shapes or {"a": (6, 8), "b": (4, 6)}
    data = {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
    hashes = {name: store.add(name, array).sha256 for name, array in data.items()}
    return Program.parse(text.format(**hashes), store)


@given(
    bits=st.integers(2, 8),
    groups=st.sampled_from([None, 1, 2, 8]),
    zeros=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_values_are_those_that_were_given(
    bits: int, groups: int | None, zeros: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    u = rng.integers(0, 2**bits, (N, K))
    shape = (N,) if groups is None else (N, groups)
    z = rng.integers(0, 2**bits, shape) if zeros else np.full(shape, 2 ** (bits - 1))
    s = np.exp(rng.uniform(-9, 3, shape)).astype(np.float32)
    wide = [np.repeat(x.reshape(N, -1), K // (groups or 1), axis=1) for x in (z, s)]
    expected = (u - wide[0]).astype(np.float32) * wide[1]
    unsigned = given_weight(u, s, z, width=bits, signed=False)
    half = 2 ** (bits - 1)
    signed = given_weight(u - half, s, z - half, width=bits)
    for quantized in (unsigned, signed):
        np.testing.assert_array_equal(quantized.dequantize(), expected)
        np.testing.assert_array_equal(quantized.values, u - half)
        np.testing.assert_array_equal(quantized.scale, s.reshape(quantized.scale.shape))
        assert (quantized.zero_point is None) == bool((z == half).all())


@pytest.mark.parametrize(
    ("shape", "kept"),
    [((), ()), ((1, 1), ()), ((N,), (N,)), ((N, 1), (N,)), ((N, 4), (N, 4)), ((N, 4, 1), (N, 4))],
)
def test_ones_at_the_end_of_scales_do_not_matter(
    shape: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    assert given_weight(np.ones((N, K), int), np.ones(shape), width=4).scale.shape == kept


def test_one_channel_keeps_its_scale() -> None:
    assert given_weight([[1, 2]], [[0.5]], width=4).scale.shape == (1,)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_scales_of_other_types_are_taken_exactly(dtype: Any) -> None:
    scale = np.array([0.1, 0.3], np.float32).astype(ml_dtypes.bfloat16).astype(dtype)
    quantized = given_weight([[1, 2], [3, 4]], scale, width=4)
    assert quantized.scale.astype(dtype).tobytes() == scale.tobytes()


ONES = np.ones((N, K), int)
WIDTH: dict[str, Any] = {"width": 4}
BAD: list[tuple[str, type[Error], Any, Any, dict[str, Any]]] = [
    ("8 do not fit 4 bits, -8 to 7", WidthError, ONES * 8, 1.0, {}),
    ("-1 do not fit 4 bits, 0 to 15", WidthError, -ONES, 1.0, {"signed": False, "zero_point": 8}),
    ("zero points from 16", WidthError, ONES, 1.0, {"signed": False, "zero_point": 16}),
    ("count from 0 have a zero point", UsageError, ONES, 1.0, {"signed": False}),
    ("do not count from 0", WidthError, ONES, 1.0, {"signed": False, "width": 1}),
    ("some values do not fit 1 bits", WidthError, ONES * 0, 1.0, {"width": 1}),
    ("must hold integers", WidthError, ONES * 1.0, 1.0, {}),
    ("not integers", WidthError, ONES, np.ones(N), {"zero_point": np.full(N, 0.5)}),
    ("not integers", WidthError, ONES, np.ones(N), {"zero_point": np.full(N, np.nan)}),
    ("not float32 numbers", Error, ONES, np.full(N, 0.1), {}),
    ("not finite", Error, ONES, np.full(N, np.inf, np.float32), {}),
    ("not int64", Error, ONES, np.ones(N, int), {}),
    ("do not fit a weight", ShapeError, ONES, np.ones((N, 3)), {}),
    ("do not fit a weight", ShapeError, ONES, np.ones(K), {}),
    ("do not fit scales", ShapeError, ONES, np.ones(N), {"zero_point": np.ones((N, 2), int)}),
    ("no output channels", ShapeError, np.ones(3, int), 1.0, {}),
]


@pytest.mark.parametrize(("what", "kind", "values", "scale", "options"), BAD)
def test_what_is_refused(
    what: str, kind: type[Error], values: Any, scale: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(kind, match=what):
        given_weight(values, scale, **(WIDTH | options))


def test_an_open_scheme_is_filled_in() -> None:
    def fill(text: str, given: Quantized) -> str:
        return str(reconcile(LayerScheme.of(text), given)[0])

    assert fill("fp", weight()) == "w4afp"
    assert fill("wfpa8", weight(3, groups=2)) == "w3a8g4"
    assert fill("wfpa8-static", weight(asymmetric=True)) == "w4a8-static-asym"
    assert fill("wfpa8-static-asym", weight()) == "w4a8-static-asym"
    assert fill("fp", given_weight(ONES, 0.5, width=1.58)) == "w1.58afp-tensor"


@pytest.mark.parametrize("text", ["w3a8", "w4a8g4", "w4a8-tensor", "w4a8-mean"])
def test_a_scheme_that_says_something_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the weight that is given is 'w4a8'"):
        reconcile(LayerScheme.of(text), weight())


def test_scales_of_f16_are_seen_where_a_recipe_asks_for_them() -> None:
    rough = weight(groups=2)
    half = replace(rough, scale=rough.scale.astype(np.float16).astype(np.float32))
    assert str(reconcile(LayerScheme.of("w4a8g4-f16"), half)[0]) == "w4a8g4-f16"
    assert str(reconcile(LayerScheme.of("w4a8g4"), half)[0]) == "w4a8g4"
    with pytest.raises(UsageError, match="the weight that is given is 'w4a8g4'"):
        reconcile(LayerScheme.of("w4a8g4-f16"), rough)


def test_zero_points_are_not_dropped_for_a_symmetric_recipe() -> None:
    with pytest.raises(UsageError, match="'w4a8-asym'"):
        reconcile(LayerScheme.of("w4a8"), weight(asymmetric=True))


def test_one_group_is_a_channel() -> None:
    scheme, quantized = reconcile(LayerScheme.of(f"w4a8g{K}"), weight())
    assert str(scheme) == f"w4a8g{K}"
    assert quantized.scale.shape == (N, 1)
    np.testing.assert_array_equal(quantized.dequantize(), weight().dequantize())


@pytest.mark.parametrize("bits", [1, 1.58, 2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("groups", [None, 2])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_constants_are_the_given_bits(bits: float, groups: int | None, asymmetric: bool) -> None:
    if asymmetric and bits < 2:
        return
    mine = weight(bits, groups, asymmetric)
    quantized = quantize(program(), "wfpa8,b=w8a8", weights={"a": mine})
    assert quantized.store["a.weight"].tobytes() == pack(mine.values, mine.width).tobytes()
    assert quantized.store["a.weight.scale"].tobytes() == mine.scale.tobytes()
    if mine.zero_point is not None:
        assert quantized.store["a.weight.zero_point"].tobytes() == mine.zero_point.tobytes()
    again = quantize(program(), quantized.recipe or "")
    assert again.store["a.weight"].tobytes() != quantized.store["a.weight"].tobytes()
    assert again.store["b.weight"].tobytes() == quantized.store["b.weight"].tobytes()


@pytest.mark.parametrize("act", ["fp", "8"])
def test_the_program_computes_with_the_given_weight(act: str) -> None:
    x = np.random.default_rng(2).standard_normal((INPUTS, K), dtype=np.float32)
    first, second = weight(3, groups=4, asymmetric=True), weight(4, shape=(4, 6), seed=1)
    quantized = quantize(program(), f"wfpa{act}", weights={"a": first, "b": second})
    (y,) = quantized.run(x)
    if act == "fp":
        expected = x @ first.dequantize().T @ second.dequantize().T
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(y, bitlinear(bitlinear(x, first, None, 8), second, None, 8))


def test_scales_below_zero_keep_their_sign() -> None:
    mine = given_weight(weight().values, -weight().scale, width=4)
    x = np.random.default_rng(2).standard_normal((INPUTS, K), dtype=np.float32)
    plus = quantize(program(), "fp", weights={"a": weight()}).run(x)[0]
    np.testing.assert_array_equal(quantize(program(), "fp", weights={"a": mine}).run(x)[0], -plus)


def test_the_recipe_of_the_program_says_what_was_filled_in() -> None:
    def recipe(text: Any) -> str | None:
        return quantize(program(), text, weights={"a": weight(3, groups=2)}).recipe

    assert recipe("wfpa8,b=w8a8") == "wfpa8,b=w8a8,a=w3a8g4"
    assert recipe("w3a8g4,b=w8a8") == "w3a8g4,b=w8a8"
    assert recipe("fp,re:.*=w3a8g4,b=fp") == "fp,re:.*=w3a8g4,b=fp"
    ordered = Recipe(order=(LayerScheme.of("wfpa8"), LayerScheme.of("w8a8")))
    assert Recipe.of(recipe(ordered) or "").order == (
        LayerScheme.of("w3a8g4"),
        LayerScheme.of("w8a8"),
    )


def test_names_and_shapes_must_be_the_programs() -> None:
    with pytest.raises(UsageError, match="no layer of the program") as caught:
        quantize(program(), "fp", weights={"aa": weight()})
    assert "did you mean 'a'" in str(caught.value)
    with pytest.raises(ShapeError, match=r"shape \(6, 8\), the layer's has \(4, 6\)"):
        quantize(program(), "fp", weights={"b": weight()})
    with pytest.raises(UsageError, match="'w3a8'") as caught:
        quantize(program(), "w3a8", weights={"a": weight()})
    assert caught.value.place.layer == "a"


def test_layers_that_share_a_weight_share_the_given_one() -> None:
    mine = weight(shape=(6, 6))
    quantized = quantize(program(TIED, a=(6, 6)), "fp", weights={"a": mine})
    assert sorted(quantized.store) == ["a.weight", "a.weight.scale"]
    x = np.random.default_rng(2).standard_normal((INPUTS, 6), dtype=np.float32)
    expected = x @ mine.dequantize().T @ mine.dequantize().T
    np.testing.assert_allclose(quantized.run(x)[0], expected, rtol=1e-5, atol=1e-6)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def test_tied_layers_of_a_model() -> None:
    one, other = weight(shape=(6, 6)), weight(shape=(6, 6), seed=1)
    inputs = (torch.zeros(2, 6),)
    half = quantize(Tied(), "fp", weights={"first": one}, example_inputs=inputs)
    assert half.recipe == "fp,first=w4afp"
    assert sum(key.endswith("weight") for key in half.store) == 1
    both = quantize(Tied(), "fp", weights={"first": one, "second": one}, example_inputs=inputs)
    assert both.store.nbytes() < half.store.nbytes()
    with pytest.raises(UsageError, match="two weights are given"):
        quantize(Tied(), "fp", weights={"first": one, "second": other}, example_inputs=inputs)


def test_the_given_program_is_not_changed() -> None:
    before = program()
    text = before.text()
    quantize(before, "fp", weights={"a": weight()})
    assert before.text() == text
