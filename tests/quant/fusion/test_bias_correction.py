"""Bias correction brings the means of quantized layers back to those of the float model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewbit.base.typed_torch import fork_rng, manual_seed
from fewbit.errors import UsageError
from fewbit.quant import prepare_qat
from fewbit.quant.fusion import FusionReport, correct_bias, fuse_batch_norm
from tests.quant.fusion.networks import LlamaBlock, Residual, settled


class Network(nn.Module):
    """Convolutions with and without bias, one called twice, and linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, bias=False)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.fc1 = nn.Linear(8, 32, bias=False)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x).relu()
        x = self.conv2(self.conv2(x).relu()).relu()
        return self.fc2(self.fc1(x.mean((2, 3))).relu())


def images(seed: int, count: int = 32) -> Tensor:
    return torch.rand(count, 3, 6, 6, generator=torch.Generator().manual_seed(seed))


def network() -> Any:
    with fork_rng(devices=[]):
        manual_seed(0)
        return Network().eval()


def mean_error(model: Any, quant: Any, x: Tensor) -> float:
    return float((quant(x) - model(x)).mean(0).norm() / model(x).mean(0).norm())


@pytest.mark.parametrize("recipe", ["w2a8", "w3a8", "w2afp", "w1.58a8"])
def test_the_mean_error_on_held_data_shrinks(recipe: str) -> None:
    model = network()
    quant: Any = prepare_qat(model, recipe)
    report = FusionReport()
    corrected = correct_bias(model, quant, [images(1), images(2)], report=report)
    assert [entry.module for entry in report.fused] == ["conv1", "conv2", "fc1", "fc2"]
    with torch.no_grad():
        before, after = (mean_error(model, q, images(3, 64)) for q in (quant, corrected))
    assert after < 0.2 * before
    assert quant.conv1.bias is None, "the original has changed"


def test_every_layer_that_is_called_once_has_the_float_mean() -> None:
    model = network()
    batches = [images(1), images(2, 16)]
    corrected: Any = correct_bias(model, prepare_qat(model, "w2a8"), batches)
    means: list[dict[str, Tensor]] = [{}, {}]
    for which, found in zip((model, corrected), means, strict=True):
        for name in ("conv1", "fc1", "fc2"):
            axes = (0, 2, 3) if name == "conv1" else (0,)
            outputs: list[Tensor] = []

            def note(module: Any, args: Any, output: Tensor, outputs: Any = outputs) -> None:
                outputs.append(output)

            handle = getattr(which, name).register_forward_hook(note)
            for batch in batches:
                which(batch)
            handle.remove()
            found[name] = torch.cat(outputs).mean(axes)
    for name, expected in means[0].items():
        assert torch.allclose(means[1][name], expected, atol=1e-5), name


def test_a_layer_of_any_class_is_corrected() -> None:
    class Rounded(nn.Module):
        """Not a Linear, and its missing bias is a plain attribute."""

        def __init__(self, linear: nn.Linear) -> None:
            super().__init__()
            self.register_buffer("weight", (linear.weight.detach() * 4).round() / 4)
            bias = linear.state_dict().get("bias")
            self.bias = None if bias is None else bias.clone()

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.linear(x, self.weight, self.bias)  # pyright: ignore

    model = settled(nn.Sequential(nn.Linear(8, 16, bias=False), nn.ReLU(), nn.Linear(16, 4)))
    quant = nn.Sequential(Rounded(model[0]), nn.ReLU(), Rounded(model[2]))
    x = torch.rand(64, 8) + 1
    corrected = correct_bias(model, quant, x)
    with torch.no_grad():
        assert mean_error(model, quant, x) > 0.01
        assert mean_error(model, corrected, x) < 1e-5


def test_a_layer_that_does_not_add_its_bias_is_left() -> None:
    class Activated(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:
            return super().forward(input).relu()

    model = settled(nn.Sequential(nn.Linear(8, 4)))
    report = FusionReport()
    correct_bias(model, nn.Sequential(Activated(8, 4)), torch.rand(4, 8), report=report)
    assert report.fused == []
    assert "a change of its bias" in (report.reason("0") or "")


def test_layers_that_are_not_called_are_left() -> None:
    model = settled(LlamaBlock())
    model.unused = nn.Linear(4, 4)
    report = FusionReport()
    correct_bias(model, prepare_qat(model, "w3a8"), torch.randn(2, 5, 16), report=report)
    assert report.reason("unused") == "the float model does not call it"
    assert len(report.fused) == 7


def test_batch_norms_folded_in_one_model_only_are_an_error() -> None:
    model = settled(Residual())
    x = torch.randn(2, 4, 8, 8)
    fused = fuse_batch_norm(model, x)
    with pytest.raises(UsageError, match="batch norm folded") as caught:
        correct_bias(model, prepare_qat(fused, "w4a8"), x)
    assert caught.value.place.layer == "bn1"
    correct_bias(fused, prepare_qat(fused, "w4a8"), x)


def test_models_that_do_not_match_are_an_error() -> None:
    with pytest.raises(UsageError, match="no such layer"):
        correct_bias(nn.Sequential(nn.Linear(4, 4)), nn.Sequential(), torch.rand(2, 4))


def test_modes_are_put_back() -> None:
    model = network().train()
    quant: Any = prepare_qat(model, "w3a8")
    assert correct_bias(model, quant, images(1), inplace=True) is quant
    assert model.training
    assert quant.training
    assert quant.conv1.bias.requires_grad
