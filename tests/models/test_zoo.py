"""Every model of the zoo builds, runs, exports, and has the size its publication gives."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn

from fewbit import models
from fewbit.base.typed_torch import named_modules
from fewbit.errors import UsageError
from fewbit.models import ZooEntry, create, zoo

ALL = list(zoo().values())
ENTRIES = [entry for entry in ALL if not entry.is_step]


def every(entries: list[ZooEntry] = ENTRIES) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("entry", entries, ids=[entry.name for entry in entries])


@cache
def model_of(name: str) -> nn.Module:
    """Return the model with the usual seed, one for all tests that only run it."""
    return create(name)


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def with_statistics(model: nn.Module) -> int:
    """Count parameters as Keras does: batch norm's running mean and variance are some, too."""
    return parameters(model) + sum(
        buffer.numel() for name, buffer in model.named_buffers() if "running" in name
    )


@every()
def test_runs_at_several_batch_sizes(entry: ZooEntry) -> None:
    model = model_of(entry.name)
    (x,) = entry.example_inputs(3)
    with torch.no_grad():
        together, alone = model(x), model(x[:1])
    assert together.shape[0] == 3
    assert torch.isfinite(together).all()
    assert together.std(0).mean() > 1e-3 * together.std(), "the output hardly depends on the input"
    torch.testing.assert_close(alone, together[:1], rtol=1e-4, atol=1e-4)


@every()
def test_exports_with_its_dynamic_shapes(entry: ZooEntry) -> None:
    model = model_of(entry.name)
    program = torch.export.export(
        model, entry.example_inputs(2), dynamic_shapes=entry.dynamic_shapes, strict=False
    ).module()
    for batch, extent in ((1, 5), (3, 24)):
        sequence = extent if entry.longest else None
        inputs = entry.example_inputs(batch, extent=sequence, seed=batch)
        with torch.no_grad():
            torch.testing.assert_close(program(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)


@every(ALL)
def test_seed_decides_the_weights_and_nothing_else(entry: ZooEntry) -> None:
    before = torch.get_rng_state()
    first = model_of(entry.name).state_dict()
    same, other = create(entry.name, 0).state_dict(), create(entry.name, 1).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


@every([entry for entry in ENTRIES if entry.free])
def test_other_extents(entry: ZooEntry) -> None:
    extent = entry.shape[entry.free[0]] * 3 // 2
    (x,) = entry.example_inputs(2, extent=extent)
    assert all(x.shape[1 + dim] == extent for dim in entry.free)
    with torch.no_grad():
        assert torch.isfinite(model_of(entry.name)(x)).all()


def test_an_extent_for_a_model_of_one_shape_is_refused() -> None:
    with pytest.raises(UsageError, match="one shape only"):
        zoo()["lenet"].example_inputs(extent=32)


def test_a_step_has_one_sequence() -> None:
    entry = zoo()["llama-15m-decode"]
    token, position = entry.example_inputs()
    assert token.shape == (1, 1)
    assert position.numpy() == [128]
    with pytest.raises(UsageError, match="its batch is 1"):
        entry.example_inputs(2)


def test_models_begin_in_evaluation_mode_with_usual_momentum() -> None:
    model = model_of("resnet8")
    assert not any(module.training for module in model.modules())
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(norms) == 7
    assert {norm.momentum for norm in norms} == {0.1}


def test_batch_norm_has_seen_data() -> None:
    model = model_of("resnet18")
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    for norm in norms:
        assert norm.running_mean is not None
        assert norm.running_mean.abs().max() > 1e-3


@pytest.mark.parametrize(
    ("model", "published"),
    [
        (lambda: models.LeNet(), 44_426),
        (lambda: models.CmsisCNN(), 33_210),
        (lambda: models.ResNet18(), 11_689_512),
        (lambda: models.ResNet18(classes=10, stem="cifar"), 11_173_962),
        (lambda: models.MobileNetV2(), 3_504_872),
        (lambda: models.SqueezeNet(), 1_235_496),
        (lambda: models.ViTTiny(224, 16, 1000, depth=12), 5_717_416),
    ],
    ids=["lenet", "cmsis-cnn", "resnet18", "resnet18-cifar", "mobilenet-v2", "squeezenet", "vit"],
)
def test_parameters_are_exactly_the_published(
    model: Callable[[], nn.Module], published: int
) -> None:
    with torch.device("meta"):
        assert parameters(model()) == published


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("resnet8", 78_666),
        ("ds-cnn", 24_908),
        ("mobilenet-v1-vww", 221_794),
        ("autoencoder", 269_992),
    ],
)
def test_parameters_are_what_keras_counts(name: str, published: int) -> None:
    assert with_statistics(model_of(name)) == published


@pytest.mark.parametrize(
    ("model", "published"),
    [
        (lambda: models.KWSConv1d(), 66_000),
        (lambda: models.KWT(), 607_000),
        (lambda: models.CCT(), 284_000),
    ],
    ids=["kws-conv1d", "kwt", "cct"],
)
def test_parameters_are_near_the_published(model: Callable[[], nn.Module], published: int) -> None:
    assert parameters(model()) == pytest.approx(published, rel=0.02)


def test_lenet_has_the_layers_of_its_program() -> None:
    layers = [
        name
        for name, module in named_modules(model_of("lenet"))
        if isinstance(module, nn.Conv2d | nn.Linear)
    ]
    assert layers == ["conv1", "conv2", "fc1", "fc2", "fc3"]
    program = models.lenet_text()
    for name, parameter in model_of("lenet").named_parameters():
        shape = "x".join(map(str, parameter.shape))
        assert f"@{name.replace('.', '_')} : tensor<{shape}x" in program


def test_llama_is_causal() -> None:
    model = model_of("llama-tiny")
    (tokens,) = zoo()["llama-tiny"].example_inputs(1, extent=12)
    changed = tokens.clone()
    changed[:, 8:] = (changed[:, 8:] + 1) % 512
    with torch.no_grad():
        a, b = model(tokens), model(changed)
    torch.testing.assert_close(a[:, :8], b[:, :8])
    assert not torch.allclose(a[:, 8:], b[:, 8:])


def test_rotary_embedding_sees_distances_only() -> None:
    from fewbit.models.llama import Decoder, rotate

    decoder = Decoder(8, 32, 1, 2, 1, 32, 64)
    q, k = torch.randn(2, 16, generator=torch.Generator().manual_seed(0))

    def score(i: int, j: int) -> float:
        rotated = [rotate(x, decoder.cos[p], decoder.sin[p]) for x, p in ((q, i), (k, j))]
        return float(rotated[0] @ rotated[1])

    assert score(5, 2) == pytest.approx(score(45, 42), abs=1e-4)
    assert score(5, 2) != pytest.approx(score(5, 4), abs=1e-4)


def test_heads_share_keys_and_values() -> None:
    model = models.LlamaTiny(width=64, heads=4, kv_heads=2)
    rows = {
        name: model.get_parameter(f"model.layers.0.self_attn.{name}_proj.weight").shape[0]
        for name in "qkvo"
    }
    assert rows == {"q": 64, "k": 32, "v": 32, "o": 64}


def test_names_are_forgiving_about_case_and_underscores() -> None:
    assert isinstance(create("MobileNet_V2"), models.MobileNetV2)


def test_an_unknown_name_says_what_is_close() -> None:
    with pytest.raises(UsageError, match="'resnet81'") as raised:
        create("resnet81")
    assert raised.value.hint is not None
    assert "resnet8" in raised.value.hint


def test_an_unknown_name_with_nothing_close_lists_all() -> None:
    with pytest.raises(UsageError) as raised:
        create("zzz")
    assert raised.value.hint is not None
    assert all(name in raised.value.hint for name in zoo())


@pytest.mark.parametrize("name", models.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(models, name) is not None
    assert name in dir(models)


def test_an_unknown_attribute_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'AlexNet'"):
        _ = models.AlexNet


def test_zoo_is_a_copy() -> None:
    zoo().clear()
    assert zoo()


def test_import_does_not_import_torch() -> None:
    code = (
        "import sys, fewbit.models, fewbit.data; fewbit.models.zoo(); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@every(ALL)
def test_documentation_gives_the_right_figures(entry: ZooEntry) -> None:
    page = Path(__file__).parents[2] / "docs" / "models.md"
    (row,) = re.findall(rf"^\| `{entry.name}` \| .*$", page.read_text(encoding="utf-8"), re.M)
    _, _, kind, size, shape, _, layers, _ = (cell.strip() for cell in row.split("|"))
    model = model_of(entry.name)
    assert kind == f"`{type(model).__name__}`"
    assert size == f"{parameters(model):,}"
    assert shape == "x".join(map(str, entry.shape))
    kinds = {
        "embedding": nn.Embedding,
        "conv": nn.Conv2d,
        "conv1d": nn.Conv1d,
        "linear": nn.Linear,
    }
    counts = {
        word: sum(isinstance(module, layer) for module in model.modules())
        for word, layer in kinds.items()
    }
    assert layers == ", ".join(f"{count} {word}" for word, count in counts.items() if count)
