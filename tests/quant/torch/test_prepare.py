"""Preparing models for training with few bits, training them, and taking it back."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from fewbit.base.typed_torch import backward, forward_pre_hooks, manual_seed, named_modules, update
from fewbit.errors import ShapeError, UsageError
from fewbit.quant import (
    QuantAttention,
    Recipe,
    convert,
    prepare_qat,
    quantizable_layers,
    recipe_of,
    set_exact,
    unprepare,
)
from fewbit.quant.torch.layers import QuantConv2d, QuantEmbedding, QuantLayer, QuantLinear
from fewbit.quant.torch.prepare import RECORD


class Block(nn.Module):
    """Nested, in a ModuleList, with a custom forward and a layer that runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.stack = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
        self.conv = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4))
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 10)
        self.kept_elsewhere = [self.head]

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for layer in self.stack:
            x = functional.relu(layer(layer(x)))
        x = self.conv(x.unsqueeze(1)).mean(1)
        return self.kept_elsewhere[0](self.norm(x))


NAMES = ["embed", "stack.0", "stack.1", "conv.0", "head"]


def block() -> Block:
    manual_seed(0)
    return Block().eval()


def tokens() -> torch.Tensor:
    return torch.arange(12).reshape(3, 4) % 10


def quant_names(model: nn.Module) -> list[str]:
    return [name for name, module in named_modules(model) if isinstance(module, QuantLayer)]


def test_layers_are_found_in_order() -> None:
    assert list(quantizable_layers(block())) == NAMES


def test_layers_follow_the_recipe() -> None:
    model = block()
    prepared: Any = prepare_qat(model, "w4a8,head=fp,re:stack.*=w2a2,embed=w3a8")
    assert quant_names(prepared) == NAMES[:4]
    assert type(prepared.embed) is QuantEmbedding
    assert type(prepared.stack[0]) is QuantLinear
    assert type(prepared.conv[0]) is QuantConv2d
    assert type(prepared.head) is nn.Linear
    assert str(prepared.stack[1].scheme) == "w2a2"
    assert quant_names(model) == []
    assert list(prepared.state_dict()) == list(model.state_dict())


def test_mico_lists() -> None:
    prepared = prepare_qat(block(), [[8, 6, 4, 2, 1], [8, 8, 8, 8, 8]])
    assert [str(s) for s in recipe_of(prepared).resolve(NAMES).values()] == [
        "w8a8",
        "w6a8",
        "w4a8",
        "w2a8",
        "w1a8",
    ]
    with pytest.raises(UsageError, match="4 layers, the model has 5"):
        prepare_qat(block(), [[8] * 4, [8] * 4])


@pytest.mark.parametrize("inplace", [False, True])
def test_unprepare_gives_the_model_back(inplace: bool) -> None:
    model = block()
    before = copy.deepcopy(model)
    expected = model(tokens())
    prepared = prepare_qat(model, "w4a4", inplace=inplace)
    assert (prepared is model) == inplace
    assert not torch.equal(prepared(tokens()), expected)
    restored = unprepare(prepared, inplace=inplace)
    assert (restored is model) == inplace
    assert torch.equal(restored(tokens()), expected)
    for (name, module), (other, original) in zip(
        named_modules(restored), named_modules(before), strict=True
    ):
        assert (name, type(module)) == (other, type(original))
        assert set(vars(module)) == set(vars(original))
        assert not forward_pre_hooks(module)
    for key, value in before.state_dict().items():
        assert torch.equal(restored.state_dict()[key], value)


def test_convert_keeps_weights_and_says_for_what() -> None:
    recipe = Recipe.of("w4a8,head=fp")
    prepared = prepare_qat(block(), recipe)
    converted = convert(prepared)
    assert quant_names(converted) == []
    assert recipe_of(converted) == recipe_of(prepared)
    assert recipe_of(converted).resolve(NAMES) == recipe.resolve(NAMES)
    assert not hasattr(converted.head, RECORD)
    again = prepare_qat(converted, recipe_of(converted))
    assert torch.equal(again(tokens()), prepared(tokens()))
    assert not any(hasattr(m, RECORD) for m in unprepare(converted).modules())


def test_a_recipe_that_fits_no_layer_changes_nothing() -> None:
    model = block()
    with pytest.raises(UsageError, match="matches no layer") as caught:
        prepare_qat(model, "w8a8,hed=w4a8", inplace=True)
    assert "head" in str(caught.value.hint)
    with pytest.raises(ShapeError, match="do not divide") as shape:
        prepare_qat(model, "w8a8g8,conv.0=w8a8g2", inplace=True)
    assert shape.value.place.layer == "conv.0"
    assert quant_names(model) == []


def test_a_model_is_prepared_once() -> None:
    prepared = prepare_qat(block(), "w4a8")
    with pytest.raises(UsageError, match="prepared already"):
        prepare_qat(prepared, "w4a8")


def test_a_shared_layer_is_one_layer() -> None:
    shared = nn.Linear(4, 4)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    assert list(quantizable_layers(model)) == ["0"]
    prepared: Any = prepare_qat(model, [[4], [8]])
    assert prepared[0] is prepared[2]
    assert type(prepared[2]) is QuantLinear


def test_tied_weights_stay_tied() -> None:
    model = nn.ModuleDict({"embed": nn.Embedding(6, 4), "head": nn.Linear(4, 6, bias=False)})
    model["head"].weight = model["embed"].weight
    for changed in (prepare_qat(model, "w4a8"), convert(prepare_qat(model, "w4a8"))):
        tied: Any = changed
        assert tied["head"].weight is tied["embed"].weight


def test_a_model_that_is_one_layer() -> None:
    layer = nn.Linear(4, 2)
    assert type(prepare_qat(layer, "w4a8")) is QuantLinear
    assert prepare_qat(layer, "w4a8", inplace=True) is layer


def test_layers_with_their_own_forward_are_no_modules_to_count() -> None:
    class Twice(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input) * 2

    model = nn.Sequential(Twice(4, 4), nn.Linear(4, 4))
    assert list(quantizable_layers(model)) == ["1"]


def test_parametrized_layers_train_their_parameters() -> None:
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)))
    x = torch.randn(3, 4)
    prepared = prepare_qat(model, "w2a8")
    backward(prepared(x).square().sum())
    assert all((p.grad != 0).any() for p in prepared.parameters() if p.grad is not None)
    assert all(p.grad is not None for p in prepared.parameters())
    assert torch.equal(unprepare(prepared)(x), model(x))


def test_the_insides_of_attention_are_no_modules_to_count() -> None:
    """It takes the weights out of its layers and never calls them; see `test_functional`."""
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    assert list(quantizable_layers(model)) == ["linear1", "linear2"]


def test_fast_paths_do_not_go_around_quantized_layers() -> None:
    manual_seed(0)
    model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    prepared = prepare_qat(model, "w2a2").eval()
    x = torch.randn(2, 3, 8)
    with_gradients = prepared(x)
    with torch.no_grad():
        assert torch.allclose(prepared(x), with_gradients, atol=1e-5)


def test_state_dicts_move_between_float_and_quantized_models() -> None:
    model, other = block(), Block().eval()
    prepared = prepare_qat(model, "w4a8")
    other.load_state_dict(prepared.state_dict())
    assert torch.equal(other(tokens()), model(tokens()))
    prepared.load_state_dict(other.state_dict())


def test_exact_mode_covers_layers_and_attention() -> None:
    class Attended(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(8, 8)
            self.attention = QuantAttention("q8k8v8s8")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.project(x)
            return self.attention(y, y, y)

    prepared: Any = prepare_qat(Attended(), "w4a8")
    x = torch.randn(2, 5, 8)
    trained = prepared(x)
    assert set_exact(prepared) is prepared
    assert prepared.project.exact
    assert prepared.attention.exact
    assert torch.allclose(prepared(x), trained, atol=1e-2)
    assert not prepared(x).requires_grad
    set_exact(prepared, False)
    assert torch.equal(prepared(x), trained)


def test_static_schemes_take_their_scales_from_calibration() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    prepared: Any = prepare_qat(model, "w4a8,0=w4a8-static", calibration={"0": 0.25, "1": 0.5})
    assert prepared[0].act_scale == 0.25
    assert prepared[1].act_scale is None
    with pytest.raises(UsageError, match="no scale is known") as caught:
        prepare_qat(model, "w4a8-static", calibration={"0": 0.25})
    assert caught.value.place.layer == "1"


def spirals() -> tuple[torch.Tensor, torch.Tensor]:
    """Synthetic: three arms that no linear layer separates."""
    generator = torch.Generator().manual_seed(0)
    classes = torch.arange(3).repeat(200)
    radius = torch.rand(600, generator=generator) * 0.8 + 0.2
    noise = torch.randn(600, generator=generator) * 0.1
    angle = classes * (2 * torch.pi / 3) + 3 * radius + noise
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), classes


@pytest.mark.parametrize("scheme", ["w2a4", "w1a8", "w1.58a8"])
def test_training_learns(scheme: str) -> None:
    manual_seed(0)
    x, classes = spirals()
    model = nn.Sequential(
        nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)
    )
    prepared = prepare_qat(model, f"{scheme},0=w8a8")
    optimizer = torch.optim.Adam(prepared.parameters(), lr=0.01)
    gradients = dict.fromkeys(quant_names(prepared), 0.0)
    for _ in range(120):
        optimizer.zero_grad()
        backward(functional.cross_entropy(prepared(x), classes))
        update(optimizer)
        for name in gradients:
            gradients[name] += float(prepared.get_submodule(name).weight.grad.abs().sum())  # pyright: ignore
    assert list(gradients) == ["0", "2", "4"]
    assert all(total > 0 for total in gradients.values())
    accuracy = float((set_exact(prepared)(x).argmax(1) == classes).float().mean())
    assert accuracy > 0.9, accuracy
