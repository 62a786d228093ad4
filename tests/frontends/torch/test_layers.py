"""Layers by name: shared modules, tied weights, registration order, and models that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

from fewbit.dialects.mico import BitLinearOp
from fewbit.errors import Error, UnsupportedError, UsageError
from fewbit.frontends import import_model
from fewbit.frontends.quantize import quantize
from fewbit.ir.layers import layers
from fewbit.quant import calibrate, convert, prepare_qat, recipe_of, set_exact
from fewbit.quant.recipe import RecipeLike

X = torch.linspace(-1, 1, 12).reshape(3, 4)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.e, self.h = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
        self.h.weight = self.e.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.h(self.e(ids))


@pytest.mark.parametrize(
    "recipe", ["w8a8", "w8a8,h=w4a8", "w8a8,h=fp", "w8a8,e=fp", [[8, 4], [8, 8]]], ids=str
)
def test_tied_weights_have_a_scheme_for_each_layer(recipe: RecipeLike) -> None:
    model, ids = Tied(), torch.tensor([[1, 2, 9]])
    quantized = quantize(model, recipe, example_inputs=(ids,))
    quantized.verify()
    expected = set_exact(prepare_qat(model, recipe))(ids).detach().numpy()
    np.testing.assert_allclose(quantized.run(ids.numpy())[0], expected, rtol=1e-5, atol=1e-6)


def shared() -> nn.Module:
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.ReLU(), layer)


@pytest.mark.parametrize("recipe", [[[4], [8]], "w8a8,0=w4a8"], ids=str)
def test_shared_module_is_one_layer(recipe: RecipeLike) -> None:
    model = shared()
    quantized = quantize(model, recipe, example_inputs=(X,))
    assert list(layers(quantized.module)) == ["0"]
    expected = set_exact(prepare_qat(model, recipe))(X).detach().numpy()
    np.testing.assert_allclose(quantized.run(X.numpy())[0], expected, rtol=1e-5)
    scales = calibrate(model, [X], "w8a8-static")
    quantize(model, "w8a8-static", scales, example_inputs=(X,)).verify()
    converted = convert(prepare_qat(model, recipe))
    quantize(converted, recipe_of(converted), example_inputs=(X,)).verify()


class Ordered(nn.Module):
    """Registers b before a, calls a before b, and never calls u."""

    def __init__(self) -> None:
        super().__init__()
        self.b, self.a, self.u = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x))


def test_lists_go_by_registration() -> None:
    program = import_model(Ordered(), (X,))
    quantized = quantize(program, [[8, 2, 8], [8, 2, 8]])
    widths = {
        name: str(cast(BitLinearOp, ops[0]).weight_width)
        for name, ops in layers(quantized.module).items()
    }
    assert widths == {"a": "2", "b": "8"}
    with pytest.raises(UsageError):
        quantize(program, [[8, 2], [8, 2]])


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2


class Outputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return x + 1, None, self.l.weight


def test_none_is_left_out_and_parameters_may_be_returned() -> None:
    y, weight = import_model(Outputs(), (X,)).run(X.numpy())
    np.testing.assert_array_equal(y, X.numpy() + 1)
    assert weight.shape == (4, 4)


def test_group_norm() -> None:
    model, x = nn.GroupNorm(2, 8), torch.randn(2, 8, 4, 4)
    nn.init.normal_(model.weight)
    (y,) = import_model(model, (x,)).run(x.numpy())
    np.testing.assert_allclose(y, model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "inputs", "kind", "words"),
    [
        (InPlace, (X,), UnsupportedError, "in place"),
        (lambda: prepare_qat(Ordered(), "w4a8"), (X,), UsageError, "quantization-aware"),
        (Ordered, (torch.randn(3, 5),), UsageError, "does not run"),
        (lambda: 3, (X,), UsageError, "not a model"),
    ],
)  # fmt: skip
def test_models_that_do_not_fit_get_an_answer(
    make: Callable[[], Any], inputs: tuple[torch.Tensor, ...], kind: type[Error], words: str
) -> None:
    with pytest.raises(kind, match=words):
        import_model(make(), inputs)


def test_a_single_tensor_is_an_input() -> None:
    assert import_model(Ordered(), cast(Any, X)).run(X.numpy())[0].shape == (3, 4)
