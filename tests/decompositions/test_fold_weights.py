"""Weights that depend on parameters alone are the tensors that PyTorch computes, as constants."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fewbit
from fewbit.decompositions.fold_weights import GROWTH
from fewbit.errors import FloatWeightsWarning, UnsupportedError
from fewbit.ir.layers import layers

utils: Any = importlib.import_module("torch.nn.utils")
importlib.import_module("torch.nn.utils.prune")
X = torch.randn(2, 4, 9)


def hooked(norm: str) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return getattr(utils, norm)(nn.Conv1d(4, 6, 3))


def pruned() -> nn.Module:
    layer = nn.Conv1d(4, 6, 3)
    utils.prune.l1_unstructured(layer, "weight", 0.5)
    return layer


class Standardized(nn.Conv1d):
    """A weight that is normed in every call, as that of ScaledStdConv."""

    def __init__(self) -> None:
        nn.Conv1d.__init__(self, 4, 6, 3)  # pyright: ignore[reportUnknownMemberType]
        self.gain = nn.Parameter(torch.rand(6, 1, 1))

    def standardized(self) -> Tensor:
        flat = self.weight.reshape(1, 6, -1)
        gain = self.gain.view(-1) * 0.5
        return F.batch_norm(flat, None, None, gain, None, True, 0.0, 1e-6).reshape_as(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.conv1d(input, self.standardized(), self.bias)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "weight norm": lambda: utils.parametrizations.weight_norm(nn.Conv1d(4, 6, 3)),
    "weight norm, by a hook": lambda: hooked("weight_norm"),
    "spectral norm": lambda: utils.parametrizations.spectral_norm(nn.Conv1d(4, 6, 3)),
    "spectral norm, by a hook": lambda: hooked("spectral_norm"),
    "pruning": pruned,
    "standardization": Standardized,
}


def weight_of(layer: Any, x: Tensor) -> Tensor:
    """The weight that a layer uses in eval mode."""
    if isinstance(layer, Standardized):
        return layer.standardized()
    layer(x)  # Hooks leave the weight behind.
    return layer.weight


@pytest.mark.parametrize("name", MODELS)
def test_the_weight_is_that_of_the_layer_to_the_bit(name: str) -> None:
    model = nn.Sequential(nn.ReLU(), MODELS[name]()).eval()
    program = fewbit.import_model(model, (X,))
    expected = weight_of(model[1], X).detach().numpy()
    assert list(layers(program.module)) == ["1"]
    np.testing.assert_array_equal(program.store["1.weight"], expected)
    assert set(program.store) == {"1.weight", "1.bias"}


@pytest.mark.parametrize("name", MODELS)
def test_integers_are_those_of_a_plain_layer(name: str) -> None:
    model = MODELS[name]().eval()
    plain = nn.Conv1d(4, 6, 3)
    plain.weight = nn.Parameter(weight_of(model, X).detach().clone())
    plain.bias = nn.Parameter(model.get_parameter("bias").detach().clone())
    ours, theirs = (
        fewbit.quantize(m, "w4a8", example_inputs=(X,), strict=True) for m in (model, plain)
    )
    np.testing.assert_array_equal(ours.run(X.numpy())[0], theirs.run(X.numpy())[0])
    assert sorted(map(ours.store.hash, ours.store)) == sorted(map(theirs.store.hash, theirs.store))


def test_a_layer_that_is_called_twice_has_one_weight() -> None:
    layer = utils.parametrizations.weight_norm(nn.Linear(8, 8))
    model = nn.Sequential(layer, nn.ReLU(), layer).eval()
    program = fewbit.import_model(model, (torch.randn(2, 8),))
    assert set(program.store) == {"0.weight", "0.bias"}
    assert [len(ops) for ops in layers(program.module).values()] == [2]


def test_a_parameter_that_is_read_otherwise_too_keeps_its_name() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(8, 8))

        def forward(self, x: Tensor) -> Tensor:
            return F.linear(F.linear(x, self.weight), self.weight * 2.0)

    model, x = Both(), torch.randn(2, 8)
    program = fewbit.import_model(model, (x,))
    assert list(layers(program.module)) == ["weight", "1"]
    np.testing.assert_array_equal(program.store["1.weight"], 2 * model.weight.detach().numpy())
    np.testing.assert_allclose(program.run(x.numpy())[0], model(x).detach(), rtol=1e-5, atol=1e-5)


def test_a_buffer_that_calls_change_is_not_folded() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(8, 8)
            self.register_buffer("factor", torch.ones(8, 8))

        def forward(self, x: Tensor) -> Tensor:
            factor: Tensor = self.get_buffer("factor")
            factor += 1.0
            return F.linear(x, self.fc.weight * factor)

    program = fewbit.import_model(Counting(), (torch.randn(2, 8),))
    assert layers(program.module) == {}


def test_a_weight_much_larger_than_its_parameters_is_not_kept() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            size = 4 * GROWTH
            self.fc, self.a = nn.Linear(8, size), nn.Parameter(torch.randn(size, 1))

        def forward(self, x: Tensor) -> Tensor:
            return F.linear(self.fc(x), self.a * self.a.T)

    with pytest.warns(FloatWeightsWarning, match="stays float"):
        program = fewbit.quantize(Outer(), "w4a8", example_inputs=(torch.randn(2, 8),))
    assert "fc" in layers(program.module)
    assert len(layers(program.module)) == 1


def test_an_exported_program_is_not_changed() -> None:
    model = utils.parametrizations.weight_norm(nn.Linear(8, 4)).eval()
    exported = torch.export.export(model, (torch.randn(2, 8),), strict=False)
    before, names = str(exported.graph), set(exported.state_dict)
    program = fewbit.import_model(exported)
    assert list(layers(program.module)) == ["weight"]
    assert (str(exported.graph), set(exported.state_dict)) == (before, names)


def test_attributes_that_no_hook_computes_are_still_state() -> None:
    class Remembers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.last = nn.Linear(8, 8), torch.zeros(2, 8)

        def forward(self, x: Tensor) -> Tensor:
            before = self.last
            self.last = self.fc(x)
            return self.last + before

    with pytest.raises(UnsupportedError, match="changes the model"):
        fewbit.import_model(Remembers(), (torch.randn(2, 8),))


class Chained(nn.Module):
    """A weight that is computed from another one that is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        first = self.weight / self.weight.abs().sum()
        second = first * 2 + 1
        return F.linear(F.linear(x, first), second)


def test_a_weight_that_is_computed_from_a_folded_one() -> None:
    model, x = Chained().eval(), torch.randn(3, 4)
    program = fewbit.import_model(model, (x,))
    (result,) = program.run(x.numpy())
    expected: Any = model(x).detach().numpy()
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6, atol=1e-6)
