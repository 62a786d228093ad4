"""Weights that a recipe does not reach are found, however they are read, and are said once."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import fewbit
from fewbit.errors import FloatWeightsError, FloatWeightsWarning, UsageError
from fewbit.frontends.quantize import quantize
from fewbit.program.float_weights import FloatWeights
from fewbit.program.program import Program
from fewbit.quant.weights import float_weights

X = torch.randn(2, 8)


class Table(nn.Module):
    """Rows that are looked up without an embedding, and sines that only scale."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.rows = nn.Linear(8, 8), nn.Parameter(torch.randn(10, 8))
        self.register_buffer("sines", torch.randn(10, 8))

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        sines: torch.Tensor = self.get_buffer("sines")
        return self.fc(x) * sines[i] + self.rows[i] * 2.0


class Doubled(nn.Module):
    """A layer that computes in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8, dtype=torch.float64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(x) + self.b(x.double()).float()


class Spread(nn.Module):
    """More matrices in one constant than become layers of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.stack = nn.Linear(8, 8), nn.Parameter(torch.randn(300, 8, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.fc(x)[None] * torch.arange(300.0)[:, None, None]
        return torch.bmm(rows, self.stack)


IMAGE = torch.randn(1, 3, 8, 8)
INDICES = torch.tensor([1, 9])
MODELS: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...], tuple[str, ...], int]] = {
    "float64": (Doubled(), (X,), ("b.weight",), 2),
    "dilated transposed convolution": (
        nn.Sequential(nn.Conv2d(3, 4, 1), nn.ConvTranspose2d(4, 2, 3, stride=2, dilation=2)),
        (IMAGE,),
        ("1.weight",),
        2,
    ),
    "many matrices": (Spread(), (X,), ("stack",), 2),
    "rows of a table": (Table(), (X, INDICES), ("rows",), 2),
}


def quantized(name: str, recipe: str = "w4a8") -> Program:
    model, inputs, _, _ = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FloatWeightsWarning)
        return fewbit.quantize(model.eval(), recipe, example_inputs=inputs)


@pytest.mark.parametrize("name", MODELS)
def test_weights_that_no_layer_reads_are_named(name: str) -> None:
    _, _, names, count = MODELS[name]
    weights = float_weights(quantized(name))
    assert weights is not None
    assert (weights.names, weights.asked, weights.weights) == (names, (), count)


def test_layers_norms_biases_and_embeddings_leave_nothing() -> None:
    model = nn.Sequential(nn.Embedding(10, 8), nn.LayerNorm(8), nn.Linear(8, 4), nn.PReLU(4))
    program = fewbit.quantize(model, "w4a8", example_inputs=(torch.tensor([1, 2]),))
    assert float_weights(program) is None


@pytest.mark.parametrize("name", ["llama-tiny", "ds-cnn"])
def test_the_zoo_is_reached_by_recipes_whole(name: str) -> None:
    assert float_weights(quantize(fewbit.import_model(f"zoo:{name}"), "w4a8")) is None


def test_a_float_program_has_nothing_to_say() -> None:
    model, inputs, _, _ = MODELS["float64"]
    assert float_weights(fewbit.import_model(model, inputs)) is None


@pytest.mark.parametrize("recipe", ["w4a8,b=fp", '{"order": ["w4a8", "fp"], "version": 1}'])
def test_what_a_recipe_leaves_float_was_asked_for(recipe: str) -> None:
    weights = float_weights(quantized("float64", recipe))
    assert weights is not None
    assert (weights.names, weights.asked) == ((), ("b.weight",))
    assert str(weights).endswith("stays float: as the recipe asks: b.weight")


def test_a_recipe_may_name_a_weight_that_no_layer_reads() -> None:
    weights = float_weights(quantized("rows of a table", "w4a8,rows=fp"))
    assert weights is not None
    assert (weights.names, weights.asked) == ((), ("rows",))


def test_a_layer_left_float_is_one_too() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("error", FloatWeightsWarning)
        program = fewbit.quantize(model, "w8a8,1=fp", example_inputs=(X,))
    weights = float_weights(program)
    assert weights == FloatWeights(asked=("1.weight",), weights=2, percent=80.0)


@pytest.mark.parametrize(
    ("recipe", "asked"), [("w4a8,first=fp", True), ("w4a8,second=fp", True), ("w4a8", False)]
)
def test_a_tied_weight_is_float_for_the_layer_that_asks(recipe: str, asked: bool) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
            self.second.weight = self.first.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x))

    with warnings.catch_warnings():
        warnings.simplefilter("error", FloatWeightsWarning)
        program = fewbit.quantize(Tied(), recipe, example_inputs=(X,))
    weights = float_weights(program)
    assert (weights is not None and len(weights.asked) == 1) == asked


def test_the_share_is_that_of_stored_bytes() -> None:
    weights = float_weights(quantized("rows of a table"))
    assert weights is not None
    assert weights.percent == pytest.approx(100 * 320 / (320 + 32), abs=0.1)


def test_quantize_warns() -> None:
    model, inputs, _, _ = MODELS["rows of a table"]
    words = r"1 of 2 weights, 91 % of weight bytes, stays float: rows"
    with pytest.warns(FloatWeightsWarning, match=words):
        fewbit.quantize(model, "w4a8", example_inputs=inputs)


@pytest.mark.parametrize("name", MODELS)
def test_strictness_makes_an_error_of_it(name: str) -> None:
    model, inputs, names, _ = MODELS[name]
    with pytest.raises(FloatWeightsError, match=rf"stays float: {names[0]}") as error:
        fewbit.quantize(model, "w4a8", example_inputs=inputs, strict=True)
    assert error.value.status == 4
    with pytest.raises(FloatWeightsError):
        fewbit.compile(quantized(name), strict=True)
    with pytest.raises(FloatWeightsError):
        fewbit.compile(model, recipe="w4a8", example_inputs=inputs, strict=True)


def test_strictness_lets_pass_what_the_recipe_asks_for() -> None:
    model, inputs, _, _ = MODELS["rows of a table"]
    program = fewbit.quantize(model, "w4a8,rows=fp", example_inputs=inputs, strict=True)
    assert fewbit.compile(program, strict=True).manifest.float_weights is not None


def test_a_float_program_cannot_be_strict() -> None:
    with pytest.raises(UsageError, match="not quantized"):
        fewbit.compile(nn.Linear(8, 8), example_inputs=(X,), strict=True)


@pytest.mark.parametrize("target", ["cpu", "iree-cpu", "vexii", "gemmini", "bitfusion"])
def test_the_manifest_of_every_target_names_them(target: str) -> None:
    artifact = fewbit.compile(quantized("dilated transposed convolution", "w8a8"), target)
    found = artifact.manifest.float_weights
    assert found is not None
    assert found.names == ("1.weight",)


def test_rows_by_indices_of_the_run_are_not_taken_for_constants() -> None:
    """The row of an expert multiplies like a weight, and is one."""

    class Expert(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.experts = nn.Linear(8, 8), nn.Parameter(torch.randn(3, 8, 8))

        def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
            return torch.bmm(self.fc(x)[:, None], self.experts[i])

    with pytest.warns(FloatWeightsWarning, match="experts"):
        fewbit.quantize(Expert(), "w4a8", example_inputs=(X, torch.tensor([0, 2])))


def test_a_sentence_names_a_few_and_counts_the_rest() -> None:
    names = tuple(f"layer{i}" for i in range(9))
    text = str(FloatWeights(names=names, asked=("head",), weights=20, percent=41.4))
    assert text == (
        "10 of 20 weights, 41 % of weight bytes, stay float: layer0, layer1, layer2, layer3, "
        "layer4, layer5 and 3 more; as the recipe asks: head"
    )
