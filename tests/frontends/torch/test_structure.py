"""Calls as models of others have them: caches and dataclasses in and out, named results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.errors import UnsupportedError, UsageError
from fewbit.frontends.torch.structure import clone_tensors, name_of, named_leaves, open_objects


class Layer:
    """What one layer of a cache holds: nothing at first."""

    def __init__(self) -> None:
        self.keys: torch.Tensor | None = None
        self.dtype: torch.dtype | None = None
        self.updates = 0

    def update(self, keys: torch.Tensor) -> torch.Tensor:
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], 1)
        self.dtype, self.updates = keys.dtype, self.updates + 1
        return self.keys


class Cache:
    """A cache that PyTorch does not know, as transformers has them."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []

    def update(self, index: int, keys: torch.Tensor) -> torch.Tensor:
        while len(self.layers) <= index:
            self.layers.append(Layer())
        return self.layers[index].update(keys)


@dataclass
class Result:
    logits: torch.Tensor
    loss: torch.Tensor | None = None
    cache: Cache | None = None


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, cache: Cache | None = None) -> Result:
        cache = Cache() if cache is None else cache
        for i, layer in enumerate((self.first, self.second)):
            x = layer(x) + cache.update(i, x).sum(1, keepdim=True)
        return Result(x, cache=cache)


@pytest.fixture
def decoder() -> Decoder:
    manual_seed(0)
    return Decoder().eval()


def call(model: nn.Module, *args: Any, **kwargs: Any) -> Any:
    with torch.no_grad():
        return model(*args, **kwargs)


def test_objects_are_closed_as_they_were_opened() -> None:
    cache = Cache()
    cache.update(0, torch.ones(1, 2))
    plain, close = open_objects({"cache": cache, "n": 3})
    assert torch.equal(plain["cache"]["layers"][0]["keys"], torch.ones(1, 2))
    plain["cache"]["layers"][0]["keys"] = torch.zeros(1, 5)
    closed = close(plain)
    assert closed["n"] == 3
    assert closed["cache"].layers[0].updates == 1
    assert closed["cache"].layers[0].keys.shape == (1, 5)
    assert cache.layers[0].keys is not None
    assert cache.layers[0].keys.shape == (1, 2)


def test_an_object_that_refers_back_to_itself() -> None:
    cache: Any = Cache()
    cache.update(0, torch.ones(1, 2))
    cache.layers[0].owner = cache
    paths = [path for path, _ in named_leaves(cache)]
    assert paths == [("layers", 0, "keys")]
    assert clone_tensors(cache).layers[0].keys is not cache.layers[0].keys


@pytest.mark.parametrize(
    ("path", "name"),
    [((), None), ((1,), None), (("a", 0, "b"), "a_0_b"), ((1, "boxes"), "output1_boxes")],
)
def test_names_of_results(path: tuple[str | int, ...], name: str | None) -> None:
    assert name_of(path) == name


def test_default_call_makes_and_returns_a_cache(decoder: Decoder) -> None:
    x = torch.randn(1, 3, 4)
    program = fewbit.import_model(decoder, (x,))
    assert [spec.name for spec in program.signature.outputs] == [
        "logits", "cache_layers_0_keys", "cache_layers_1_keys"
    ]  # fmt: skip
    outputs, wanted = program(x.numpy()), call(decoder, x)
    np.testing.assert_allclose(outputs.logits, wanted.logits, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(outputs["cache_layers_0_keys"], x)


def test_cache_in_and_out(decoder: Decoder) -> None:
    x, step = torch.randn(1, 3, 4), torch.randn(1, 1, 4)
    cache = call(decoder, x).cache
    program = fewbit.import_model(decoder, {"x": step, "cache": cache})
    assert [layer.updates for layer in cache.layers] == [1, 1]
    assert [spec.name for spec in program.signature.inputs] == [
        "x", "cache_layers_0_keys", "cache_layers_1_keys"
    ]  # fmt: skip
    outputs = program(x=step, cache=cache)
    wanted = call(decoder, step, clone_tensors(cache))
    np.testing.assert_allclose(outputs.logits, wanted.logits, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        outputs["cache_layers_1_keys"], wanted.cache.layers[1].keys, rtol=1e-5, atol=1e-6
    )
    assert outputs.new_cache_layers_1_keys is outputs.cache_layers_1_keys


def test_dimensions_of_an_object_are_those_of_its_tensors(decoder: Decoder) -> None:
    step, cache = torch.randn(1, 1, 4), call(decoder, torch.randn(1, 3, 4)).cache
    shapes = {"x": None, "cache": {1: Dim("past", min=2, max=64)}}
    program = fewbit.import_model(
        decoder, example_kwargs={"x": step, "cache": cache}, dynamic_shapes=shapes
    )
    longer = call(decoder, torch.randn(1, 7, 4)).cache
    outputs = program(x=step, cache=longer)
    wanted = call(decoder, step, clone_tensors(longer))
    np.testing.assert_allclose(outputs.logits, wanted.logits, rtol=1e-5, atol=1e-6)


def test_empty_cache_as_an_input(decoder: Decoder) -> None:
    x = torch.randn(1, 3, 4)
    program = fewbit.import_model(decoder, (x, Cache()))
    assert [spec.name for spec in program.signature.inputs] == ["x"]
    np.testing.assert_allclose(program(x).logits, call(decoder, x).logits, rtol=1e-5, atol=1e-6)


def test_jit_gives_the_objects_that_the_model_gives(decoder: Decoder) -> None:
    fast, x = fewbit.jit(decoder), torch.randn(1, 3, 4)
    for _ in range(2):
        result, wanted = fast(x), call(decoder, x)
        assert isinstance(result, Result)
        assert isinstance(result.cache, Cache)
        assert result.loss is None
        torch.testing.assert_close(result.logits, wanted.logits, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(result.cache.layers[1].keys, wanted.cache.layers[1].keys)
    assert fast.versions == 1


class Pair(NamedTuple):
    boxes: torch.Tensor
    scores: torch.Tensor


class Pairs(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return {"pair": Pair(x + 1, x * 2), "none": None, "list": [x, (x - 1)]}


def test_names_in_dictionaries_and_tuples() -> None:
    x = np.ones(2, np.float32)
    outputs = fewbit.import_model(Pairs(), (x,)).run(x)
    assert outputs.keys() == ("pair_boxes", "pair_scores", "list_0", "list_1")
    np.testing.assert_array_equal(outputs.pair_scores, 2 * x)


def test_results_by_position_are_numbered() -> None:
    class Tuple(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x + 1, x * 2

    program = fewbit.import_model(Tuple(), (torch.ones(2),))
    assert [spec.name for spec in program.signature.outputs] == ["output0", "output1"]


class Once(nn.Module):
    """A model that makes a table at its first call and scales its weights then."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.table: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.table is None:
            self.table = torch.arange(4.0)
            with torch.no_grad():
                self.layer.weight.div_(2)
        return self.layer(x) + self.table


def test_what_the_first_call_settles() -> None:
    model, x = Once().eval(), torch.randn(2, 4)
    program = fewbit.import_model(model, (x,))
    np.testing.assert_allclose(program(x), call(model, x), rtol=1e-5, atol=1e-6)
    assert model.table is not None  # it goes with the weights, which were scaled


class Alternating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.settled = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.settled:
            return x + 1
        self.settled = True
        return x - 1


def test_a_first_call_with_other_results_is_refused() -> None:
    model = Alternating()
    with pytest.raises(UnsupportedError, match=r"the model\.settled"):
        fewbit.import_model(model, (torch.ones(2),))
    assert not model.settled


def test_a_module_keeps_its_class_and_names(decoder: Decoder) -> None:
    program = fewbit.import_model(decoder, (torch.randn(1, 3, 4),))
    assert type(decoder) is Decoder
    assert {"first.weight", "second.weight"} <= set(program.store)


def test_missing_example_input_is_said(decoder: Decoder) -> None:
    with pytest.raises(UsageError, match="does not run on the example inputs"):
        fewbit.import_model(decoder, {"cache": None})
