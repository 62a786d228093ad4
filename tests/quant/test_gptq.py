"""GPTQ: less is lost on data than by rounding each weight for itself, by any scheme."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.base.typed_torch import from_numpy, manual_seed
from fewbit.errors import ShapeError, UsageError
from fewbit.numerics.hadamard import rotate
from fewbit.program.program import Program
from fewbit.quant import gptq
from fewbit.quant.gptq import round_columns
from fewbit.quant.scheme import LayerScheme

SCHEMES = [
    *("w4afp", "w3afp", "w1.58afp", "w1afp", "w4afpg16", "w3afpg256", "w4afp-tensor", "w4afp-asym"),
    *(
        "w4afpg16-asym",
        "w4afp-mse",
        "w3afpg16-signed",
        "w3afph32",
        "w4afpg32h64-mse",
        "w3afpg16-offset",
    ),
]
RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((24, 256)).astype(np.float32)
MIXING = RNG.standard_normal((40, 256)).astype(np.float32)


def rows(count: int, seed: int) -> Any:
    """Inputs that depend on each other, as activations do."""
    rng = np.random.default_rng(seed)
    near = rng.standard_normal((count, 40)) @ MIXING + 0.5 * rng.standard_normal((count, 256))
    return near.astype(np.float32)


@pytest.mark.parametrize("text", SCHEMES)
def test_less_is_lost_on_data(text: str) -> None:
    scheme = LayerScheme.of(text)
    x, other = rotate(rows(600, 1), scheme.hadamard), rows(200, 2)
    plain, result = scheme.quantize_weight(WEIGHT), round_columns(WEIGHT, x.T @ x, scheme)
    assert result.width == plain.width
    assert result.scale.shape == plain.scale.shape
    assert (result.zero_point is None) == (plain.zero_point is None)
    expected, turned = other @ WEIGHT.T, rotate(other, scheme.hadamard)
    losses = [
        float(np.square(turned @ each.dequantize().T - expected).sum()) for each in (plain, result)
    ]
    assert losses[1] < 0.7 * losses[0]


@pytest.mark.parametrize("text", ["w4afp", "w4afpg16", "w2afp-asym", "w8afph64"])
def test_without_correlation_it_is_plain_rounding(text: str) -> None:
    scheme = LayerScheme.of(text)
    result = round_columns(WEIGHT, np.eye(256), scheme)
    plain = scheme.quantize_weight(WEIGHT)
    np.testing.assert_array_equal(result.scale, plain.scale)
    # A quotient and a product with the reciprocal may go to other sides of a tie.
    assert np.mean(result.values != plain.values) < 1e-3


def test_inputs_that_are_always_zero() -> None:
    x = rows(50, 3)
    x[:, 7] = 0
    result = round_columns(WEIGHT, x.T @ x, LayerScheme.of("w4afp"))
    assert np.isfinite(result.dequantize()).all()
    nothing = round_columns(WEIGHT, np.zeros((256, 256)), LayerScheme.of("w8afp"))
    np.testing.assert_allclose(nothing.dequantize(), WEIGHT, atol=0.02)


class Net(nn.Module):
    """Two layers with one input, a layer that runs twice, and a table that is the head too."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(30, 64)
        self.gate, self.up = nn.Linear(64, 64), nn.Linear(64, 64)
        self.twice = nn.Linear(64, 64)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.table(tokens)
        x = self.twice(torch.relu(self.gate(x)) * self.up(x))
        return nn.functional.linear(self.twice(x), self.table.weight)


@pytest.fixture(scope="module")
def program() -> Program:
    manual_seed(0)
    return fewbit.import_model(Net().eval(), (torch.zeros(4, 8, dtype=torch.int64),))


def tokens(seed: int) -> list[Any]:
    return [np.random.default_rng(seed).integers(0, 30, (4, 8))]


@pytest.mark.parametrize(
    "recipe",
    ["w4a8", "w3a8g32,table=w8a8", "w4a8h64-mse", "w4a8-asym,up=fp", "w3a8g32-signed-f16"],
)
def test_a_program_comes_nearer_to_its_float_form(program: Program, recipe: str) -> None:
    weights = gptq(program, [tokens(i) for i in range(4)], recipe)
    layers = {"gate", "up", "twice"} - ({"up"} if "up=fp" in recipe else set())
    assert set(weights) == layers
    better, plain = (
        fewbit.quantize(program, recipe, weights=weights),
        fewbit.quantize(program, recipe),
    )
    assert better.recipe == plain.recipe
    errors: list[float] = []
    for quantized in (plain, better):
        pairs = [(quantized.run(*tokens(i))[0], program.run(*tokens(i))[0]) for i in (10, 11)]
        errors.append(sum(float(np.square(a - b).sum()) for a, b in pairs))
    assert errors[1] < errors[0]


def test_an_outlier_is_rotated_before_it_is_squared() -> None:
    """Beside its square float32 has no digits for the others."""
    manual_seed(0)
    layer = nn.Linear(256, 24, bias=False)
    x = rows(300, 4)
    x[:, 9] *= 3000
    program = fewbit.import_model(layer, (from_numpy(x),))
    recipe = "w4afph64"
    found = gptq(program, [[x]], recipe)
    assert set(found) == {"weight"}
    (expected,) = program.run(x)
    losses = [
        float(np.square(fewbit.quantize(program, recipe, weights=each).run(x)[0] - expected).sum())
        for each in ({}, found)
    ]
    assert losses[1] < 0.5 * losses[0]


def test_too_little_data_without_damping_is_told() -> None:
    x = rows(50, 3)
    with pytest.raises(UsageError, match="do not differ enough"):
        round_columns(WEIGHT, x.T @ x - np.eye(256), LayerScheme.of("w4afp"), damping=0)


def test_errors_name_the_layer(program: Program) -> None:
    with pytest.raises(ShapeError, match="groups of 48 do not divide") as caught:
        gptq(program, [tokens(0)], "w4a8,twice=w4a8g48")
    assert caught.value.place.layer == "twice"
    with pytest.raises(UsageError, match="no data"):
        gptq(program, [], "w4a8")


def test_what_a_layer_with_state_is_given() -> None:
    """State is not among the samples: it begins anew in each."""

    class Counter(nn.Module):
        total: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(32, 8)
            self.register_buffer("total", torch.zeros(1, 32))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)
            return self.fc(self.total)

    x = RNG.standard_normal((1, 32)).astype(np.float32)
    counter = fewbit.import_model(Counter().eval(), (from_numpy(x),))
    once = gptq(counter, [[x]], "w4a8")
    again = gptq(counter, [[x], [x]], "w4a8")
    np.testing.assert_array_equal(once["fc"].values, again["fc"].values)
