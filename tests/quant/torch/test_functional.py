"""Functional layers: training rounds what quantizing a program does, under its names."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from fewbit.base.typed_torch import manual_seed
from fewbit.errors import ShapeError, UsageError
from fewbit.frontends import import_model
from fewbit.frontends.quantize import quantize
from fewbit.ir.layers import layers
from fewbit.ir.text import print_module
from fewbit.program.program import Program
from fewbit.quant import calibrate, convert, prepare_qat, recipe_of, set_exact, unprepare
from fewbit.quant.torch.layers import QuantLayer
from fewbit.quant.torch.scope import QuantScope


class Twice(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input) * 2


class Functions(nn.Module):
    """Functions on a parameter, a buffer, a plain tensor, and weights of layers not called."""

    fixed: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(8, 8) / 3)
        self.register_buffer("fixed", torch.randn(8, 8) / 3)
        self.plain = torch.randn(8, 8) / 3
        self.taken = nn.Linear(8, 8)
        self.filter = nn.Parameter(torch.randn(1, 1, 3, 3) / 3)
        self.line = nn.Parameter(torch.randn(3, 3, 1))
        self.own = Twice(8, 8)
        self.position = nn.Parameter(torch.randn(3, 8))
        self.transposed = nn.Parameter(torch.randn(8, 8) / 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.linear(x + self.position, self.down)
        x = F.linear(F.linear(x, self.fixed), weight=self.plain)
        x = F.relu(F.linear(x, self.taken.weight, self.taken.bias))
        x = F.conv2d(x[:, None], self.filter, padding=1)[:, 0]
        x = self.own(F.conv1d(x, self.line, stride=1))
        return F.linear(x, self.transposed.t())


class WrittenOut(nn.Module):
    """Layers as matmuls: as in GPT-2, as in Falcon, and of a bare parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.across = nn.Parameter(torch.randn(8, 12) / 3)
        self.bias = nn.Parameter(torch.randn(12))
        self.taken = nn.Linear(12, 8)
        self.bare = nn.Parameter(torch.randn(8, 6) / 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.addmm(self.bias, x.view(-1, 8), self.across).view(*x.shape[:-1], 12)
        rows = F.relu(rows) @ self.taken.weight.T + self.taken.bias
        return torch.matmul(rows, self.bare)


class TiedHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.inner = nn.Embedding(10, 8), nn.Linear(8, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return F.linear(self.inner(self.embed(ids)), self.embed.weight)


class TiedLayers(nn.Module):
    """Two layers and a function share a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(F.linear(self.first(x), self.first.weight))


class Attention(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x)[0]


class Crossed(Attention):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x[:, :2]
        return self.attention(x, y, y, need_weights=False)[0]


class Unlike(Attention):
    """Keys and values of sizes of their own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x[..., :6], x[..., :4])[0]


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.cell = kind(8, 4, batch_first=True, **options)  # pyright: ignore

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cell(x)[0]


def x() -> torch.Tensor:
    return torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(1))


def ids() -> torch.Tensor:
    return torch.tensor([[1, 2, 9]])


ATTENTION = ["attention.in_proj_weight", "attention.out_proj"]
FUNCTIONS = ["down", "fixed", "plain", "taken", "filter", "line", "own"]
ENCODER = ["self_attn.in_proj_weight", "self_attn.out_proj", "linear1", "linear2"]
CASES: dict[str, tuple[Any, Any, list[str]]] = {
    "functions": (Functions, x, [*FUNCTIONS, "transposed"]),
    "written-out": (WrittenOut, x, ["across", "taken", "bare"]),
    "tied-head": (TiedHead, ids, ["embed", "inner"]),
    "attention": (Attention, x, ATTENTION),
    "attention-sizes": (
        lambda: Unlike(kdim=6, vdim=4, bias=False),
        x,
        [*(f"attention.{part}_proj_weight" for part in "qkv"), "attention.out_proj"],
    ),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), x, ENCODER),
    "encoders": (
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False
        ),
        x,
        [f"layers.{i}.{name}" for i in range(2) for name in ENCODER],
    ),
    "lstm": (lambda: Recurrent(nn.LSTM), x, ["cell.weight_ih_l0", "cell.weight_hh_l0"]),
    "gru": (lambda: Recurrent(nn.GRU), x, ["cell.weight_ih_l0", "cell.weight_hh_l0"]),
    "rnn": (lambda: Recurrent(nn.RNN), x, ["cell.weight_ih_l0", "cell.weight_hh_l0"]),
    "one-layer": (lambda: nn.Linear(8, 4), x, ["weight"]),
    "one-own-layer": (lambda: Twice(8, 4), x, ["weight"]),
}


def make_case(case: str) -> tuple[nn.Module, torch.Tensor, list[str]]:
    make, inputs, names = CASES[case]
    manual_seed(0)
    return make().eval(), inputs(), names


@functools.cache
def imported(case: str) -> Program:
    model, inputs, _ = make_case(case)
    return import_model(model, (inputs,))


@pytest.mark.parametrize("recipe", ["w4a8", "w8a8-static", "w3a8-static-asym", "wfpa4", "w4afp"])
@pytest.mark.parametrize("case", CASES)
def test_training_and_programs_agree(case: str, recipe: str) -> None:
    model, inputs, names = make_case(case)
    scales = calibrate(model, [inputs], recipe)
    program = quantize(imported(case), recipe, scales)
    assert sorted(layers(program.module)) == sorted(names)
    prepared = set_exact(prepare_qat(model, recipe, calibration=scales))
    (y,) = program.run(inputs.numpy())
    with torch.no_grad():
        expected, original = prepared(inputs).numpy(), model(inputs).numpy()
    assert np.linalg.norm(y - expected) <= 1e-5 * np.linalg.norm(expected)
    assert np.linalg.norm(y - original) > 1e-4 * np.linalg.norm(original)


def test_parts_of_a_packed_weight_are_layers_of_programs_only() -> None:
    model, inputs = Crossed().eval(), x()
    program = import_model(model, (inputs,))
    parts = ["attention.in_proj_weight.0", "attention.in_proj_weight.1"]
    assert sorted(layers(program.module)) == [*parts, "attention.out_proj"]
    recipe = "w8a8-static"
    with pytest.raises(UsageError, match=f"static scale of '{parts[0]}'.*gave none") as error:
        quantize(program, recipe, calibrate(model, [inputs], recipe))
    assert "calibrate(program" in (error.value.hint or "")
    scales = calibrate(program, [[inputs.numpy()]], recipe)
    assert sorted(scales) == [*parts, "attention.out_proj"]
    quantize(program, recipe, scales, strict=True)


@pytest.mark.parametrize("case", CASES)
def test_conversion_gives_the_program_of_the_weights(case: str) -> None:
    model, inputs, names = make_case(case)
    prepared = prepare_qat(model, "w4a8")
    assert list(prepared.state_dict()) == list(model.state_dict())
    prepared(inputs)
    converted = convert(prepared)
    few_bit = [n for n, scheme in recipe_of(converted).layers.items() if not scheme.is_float]
    assert sorted(few_bit) == sorted(names)
    program = quantize(converted, recipe_of(converted), example_inputs=(inputs,))
    direct = quantize(imported(case), "w4a8")
    assert print_module(program.module) == print_module(direct.module)


@pytest.mark.parametrize("case", ["attention", "lstm", "one-own-layer"])
def test_a_model_that_never_ran_keeps_its_recipe(case: str) -> None:
    model, inputs, _ = make_case(case)
    converted = convert(prepare_qat(model, "w4a8"))
    program = quantize(converted, recipe_of(converted), example_inputs=(inputs,))
    direct = quantize(imported(case), "w4a8")
    assert print_module(program.module) == print_module(direct.module)


@pytest.mark.parametrize("case", CASES)
def test_gradients_pass_and_nothing_is_left(case: str) -> None:
    model, inputs, _ = make_case(case)
    expected = model(inputs)
    prepared = prepare_qat(model, "w4a8").train()
    weights = {n: p for n, p in prepared.named_parameters() if p.dim() >= 2}
    prepared(inputs).square().sum().backward()
    for name, weight in weights.items():
        gradient = weight.grad
        assert gradient is not None, name
        assert gradient.abs().sum() > 0, name
    restored = unprepare(prepared).eval()
    assert torch.equal(restored(inputs), expected)
    for module, original in zip(restored.modules(), model.modules(), strict=True):
        assert type(module) is type(original)
        assert set(vars(module)) == set(vars(original))


def test_straight_through_gradients_equal_a_layer_s() -> None:
    manual_seed(0)
    layer = nn.Linear(8, 4)

    class Called(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = (nn.Parameter(p.detach().clone()) for p in layer.parameters())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.linear(x, self.weight, bias=self.bias)

    one: Any
    other: Any
    one, other = prepare_qat(layer, "w2a4"), prepare_qat(Called(), "w2a4")
    results = [model(x()) for model in (one, other)]
    assert torch.equal(*results)
    for result in results:
        result.square().sum().backward()
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine.grad, theirs.grad)  # pyright: ignore


def test_fast_paths_do_not_go_around_attention() -> None:
    """In evaluation without gradients torch has one kernel for all of an encoder layer."""
    model, inputs, _ = make_case("encoder")
    prepared = prepare_qat(model, "w2a2")
    with_gradients = prepared(inputs)
    with torch.no_grad():
        assert torch.allclose(prepared(inputs), with_gradients, atol=1e-5)
        assert torch.allclose(prepared.train().eval()(inputs), with_gradients, atol=1e-5)
    mask = torch.tensor([[False, False, True], [False, False, False]])
    encoders = nn.TransformerEncoder(copy.deepcopy(model), 2).eval()  # pyright: ignore
    masked = prepare_qat(encoders, "w2a2")
    with_gradients = masked(inputs, src_key_padding_mask=mask)
    with torch.no_grad():
        again = masked(inputs, src_key_padding_mask=mask)
    assert torch.allclose(again[~mask], with_gradients[~mask], atol=1e-5)


def pickled(model: nn.Module) -> nn.Module:
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("again", [copy.deepcopy, pickled])
@pytest.mark.parametrize("case", ["functions", "encoder", "lstm", "tied-head"])
def test_prepared_models_are_copied_and_pickled(case: str, again: Any) -> None:
    model, inputs, _ = make_case(case)
    prepared = prepare_qat(model, "w3a4")
    expected = prepared(inputs)
    other = again(prepared)
    assert torch.equal(other(inputs), expected)
    assert recipe_of(other) == recipe_of(prepared)
    for parameter in prepared.parameters():
        parameter.detach().zero_()
    assert torch.equal(other(inputs), expected)


def test_a_part_may_be_called_alone() -> None:
    model: Any
    model, inputs, _ = make_case("encoder")
    prepared: Any = prepare_qat(model, "w2a2")
    inside: list[tuple[torch.Tensor, torch.Tensor]] = []

    def see(module: nn.Module, args: Any, output: Any) -> None:
        inside.append((args[0], output[0]))

    prepared.self_attn.register_forward_hook(see)
    prepared(inputs)
    ((received, gave),) = inside
    assert torch.allclose(prepared.self_attn(received, received, received)[0], gave, atol=1e-5)
    assert not torch.allclose(model.self_attn(received, received, received)[0], gave, atol=1e-3)


@pytest.mark.parametrize(
    "recipe", ["w4a8", "w4a8,first=fp", "w4a8,second=fp", "w8a8,first=w2a2", "fp,second=wfpa4"]
)
def test_tied_layers_each_follow_their_own_scheme(recipe: str) -> None:
    manual_seed(0)
    model = TiedLayers()
    program = quantize(model, recipe, example_inputs=(x(),))
    expected = set_exact(prepare_qat(model, recipe))(x()).detach().numpy()
    np.testing.assert_allclose(program.run(x().numpy())[0], expected, rtol=1e-5, atol=1e-6)


def test_names_select_layers_that_are_no_modules() -> None:
    model, inputs, _ = make_case("encoder")
    recipe = "w8a8,self_attn=w4a8,self_attn.in_proj_weight=w2a8"
    prepared = prepare_qat(model, recipe)
    prepared(inputs)
    results = {name: str(scheme) for name, scheme in recipe_of(prepared).layers.items()}
    assert results["self_attn.in_proj_weight"] == "w2a8"
    assert results["self_attn.out_proj"] == "w4a8"
    with pytest.raises(UsageError, match="matches no layer"):
        prepare_qat(model, "w8a8,self_attn.in_proj=w4a8")


def test_lists_count_modules_only() -> None:
    model, inputs, _ = make_case("encoder")
    recipe = [[8, 4], [8, 8]]
    prepared = prepare_qat(model, recipe)
    direct = quantize(model, recipe, example_inputs=(inputs,))
    assert [str(s) for s in recipe_of(prepared).layers.values()] == ["w8a8", "w4a8"]
    expected = set_exact(prepared)(inputs).detach().numpy()
    np.testing.assert_allclose(direct.run(inputs.numpy())[0], expected, rtol=1e-4, atol=1e-5)


def test_a_float_recipe_changes_nothing() -> None:
    model, _, _ = make_case("encoder")
    prepared = prepare_qat(model, "fp")
    assert not any(isinstance(m, QuantLayer | QuantScope) for m in prepared.modules())


def test_mistakes_name_the_layer() -> None:
    model, inputs, _ = make_case("attention")
    with pytest.raises(ShapeError) as caught:
        prepare_qat(model, "w4a8g3")(inputs)
    assert caught.value.place.layer == "attention.in_proj_weight"
    with pytest.raises(UsageError, match="no scale is known") as static:
        prepare_qat(model, "w4a8-static")(inputs)
    assert static.value.place.layer == "attention.in_proj_weight"
    with pytest.raises(UsageError, match="prepared already"):
        prepare_qat(prepare_qat(model, "w4a8"), "w4a8")
    with pytest.raises(UsageError, match="quantization-aware training"):
        quantize(prepare_qat(model, "w4a8"), "w4a8", example_inputs=(inputs,))


def test_an_error_in_a_call_leaves_no_mode_behind() -> None:
    model, _, _ = make_case("attention")
    prepared = prepare_qat(model, "w4a8")
    with pytest.raises(AssertionError):
        prepared(torch.randn(2, 3, 7))
    assert cast(Any, torch.overrides)._get_current_function_mode() is None


def test_packed_sequences() -> None:
    manual_seed(0)
    model = nn.LSTM(8, 4, bidirectional=True, num_layers=2)
    packed = nn.utils.rnn.pack_sequence([torch.randn(5, 8), torch.randn(3, 8)])
    prepared = prepare_qat(model, "w8a8")
    y, expected = prepared(packed)[0].data, model(packed)[0].data
    assert y.shape == expected.shape
    assert not torch.equal(y, expected)
    assert torch.allclose(y, expected, atol=0.05)
