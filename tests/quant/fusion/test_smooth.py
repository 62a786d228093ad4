"""Smoothing changes no float output, and makes what follows a norm easier to quantize."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fewbit.errors import UsageError
from fewbit.quant import prepare_qat, unprepare
from fewbit.quant.fusion import FusionReport, smooth
from tests.quant.fusion.networks import (
    Llama,
    LlamaBlock,
    OwnRMSNorm,
    ViTBlock,
    relative_error,
    settled,
)


def activations(seed: int = 1) -> Tensor:
    """Tokens of which two channels are a hundred times larger."""
    x = torch.randn(4, 7, 16, generator=torch.Generator().manual_seed(seed))
    x[..., [3, 8]] *= 100
    return x


def tokens(seed: int = 1) -> Tensor:
    return torch.randint(32, (3, 6), generator=torch.Generator().manual_seed(seed))


VIT = [("qkv", "norm1"), ("mlp.0", "norm2")]
LLAMA = [(layer, "attn_norm") for layer in "qkv"] + [("w1", "ffn_norm"), ("w3", "ffn_norm")]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.8, 1.0])
@pytest.mark.parametrize(
    ("make", "pairs"),
    [(ViTBlock, VIT), (LlamaBlock, LLAMA), (lambda: LlamaBlock(norm=OwnRMSNorm), LLAMA)],
    ids=["vit", "llama", "own norm"],
)
def test_float_output_is_unchanged(make: Any, pairs: list[tuple[str, str]], alpha: float) -> None:
    model = settled(make())
    report = FusionReport()
    smoothed = smooth(model, activations(), alpha, report=report)
    assert report.pairs == pairs
    assert report.left == []
    for seed in (1, 2):
        x = activations(seed)
        assert relative_error(smoothed(x), model(x)) < 1e-5
    assert not torch.equal(
        smoothed.state_dict()[f"{pairs[0][0]}.weight"], model.state_dict()[f"{pairs[0][0]}.weight"]
    )


def test_the_scale_is_the_formulas() -> None:
    model = settled(nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 5)))
    batches = [activations(1), activations(2)]
    amax = torch.cat([model[0](x) for x in batches]).abs().amax((0, 1))
    expected = amax**0.7 / model[1].weight.abs().amax(0) ** 0.3
    smoothed: Any = smooth(model, batches, 0.7)
    assert torch.allclose(smoothed[1].weight / model[1].weight, expected.expand(5, -1))
    assert torch.allclose(model[0].weight / smoothed[0].weight, expected)
    assert torch.allclose(model[0].bias / smoothed[0].bias, expected)


def test_a_whole_llama_with_prepared_layers_and_either_norm() -> None:
    for norm in (nn.RMSNorm, OwnRMSNorm):
        model = settled(Llama(norm=norm))
        report = FusionReport()
        smoothed = smooth(model, [tokens(1), tokens(2)], report=report)
        assert len(report.pairs) == 11
        assert relative_error(smoothed(tokens(3)), model(tokens(3))) < 1e-5
        prepared = smooth(prepare_qat(model, "w4a8"), [tokens(1), tokens(2)], report=report)
        assert len(report.pairs) == 22
        assert relative_error(unprepare(prepared)(tokens(3)), model(tokens(3))) < 1e-5


def test_quantization_loses_less() -> None:
    model = settled(nn.Sequential(nn.RMSNorm(16), nn.Linear(16, 12)))
    with torch.no_grad():
        model[0].weight[[2, 9]] *= 60
    batches = [torch.randn(20, 16, generator=torch.Generator().manual_seed(s)) for s in (1, 2, 3)]
    held, expected = batches[2], model(batches[2])
    plain, smoothed = prepare_qat(model, "w8a4"), prepare_qat(smooth(model, batches[:2]), "w8a4")
    assert relative_error(smoothed(held), expected) < 0.75 * relative_error(plain(held), expected)


Use = Callable[[Any, Tensor, Tensor], Any]
"""What a model does with the input and the output of its normalization."""


class Variant(nn.Module):
    """A norm whose output goes where a test says."""

    def __init__(self, use: Use, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.norm = norm or nn.LayerNorm(16)
        self.linear = nn.Linear(16, 16)
        self.conv = nn.Conv1d(16, 16, 1)
        self.use = use

    def forward(self, x: Tensor) -> Any:
        return self.use(self, x, self.norm(x))


LEFT: dict[str, tuple[Use, nn.Module | None, str]] = {
    "residual of the output": (lambda m, x, y: y + m.linear(y), None, "also used by aten::add"),
    "returned": (lambda m, x, y: (m.linear(y), y), None, "returned or stored"),
    "conv": (lambda m, x, y: m.conv(y.mT), None, "also used by aten::transpose"),
    "other input": (lambda m, x, y: m.linear(y) + m.linear(x), None, "has other inputs"),
    "weight used": (lambda m, x, y: m.linear(y) @ m.linear.weight, None, "outside of its own"),
    "not used": (lambda m, x, y: m.linear(x), None, "not used"),
    "values": (lambda m, x, y: m.linear(y) * x.amax().item(), None, "looks at values"),
    "not affine": (
        lambda m, x, y: m.linear(y),
        nn.LayerNorm(16, elementwise_affine=False),
        "no weight",
    ),
    "two axes": (lambda m, x, y: m.linear(y), nn.LayerNorm([7, 16]), "more than the last axis"),
    "offset": (lambda m, x, y: m.linear(y), OwnRMSNorm(16, 1.0), "not its weight times"),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_norm_is_left_where_smoothing_would_show(name: str) -> None:
    use, norm, reason = LEFT[name]
    model = settled(Variant(use, norm))
    report = FusionReport()
    smoothed = smooth(model, activations(), report=report)
    assert report.pairs == []
    assert reason in (report.reason("norm") or "")
    for name, value in model.state_dict().items():
        assert torch.equal(smoothed.state_dict()[name], value)


def test_a_linear_that_normalizes_inside_is_left() -> None:
    class Normalizing(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:
            return super().forward(nn.functional.rms_norm(input, (16,)))

    model = settled(nn.Sequential(nn.RMSNorm(16), Normalizing(16, 4)))
    report = FusionReport()
    smooth(model, activations(), report=report)
    assert "does not follow the scale of its input" in (report.reason("0") or "")


def test_norms_over_another_axis_are_not_smoothed() -> None:
    class OwnGroupNorm(nn.GroupNorm):
        pass

    x = torch.randn(2, 16, 16)
    for norm in (nn.GroupNorm(2, 16), OwnGroupNorm(2, 16)):
        model = settled(nn.Sequential(norm, nn.Linear(16, 4)))
        report = FusionReport()
        smoothed = smooth(model, x, report=report)
        assert report.pairs == []
        assert torch.equal(smoothed(x), model(x))


def test_an_output_layer_tied_to_the_embedding_is_left() -> None:
    model = settled(Llama(tied=True))
    report = FusionReport()
    smoothed: Any = smooth(model, tokens(), report=report)
    assert report.reason("norm") == "'output' shares a parameter with another module"
    assert len(report.pairs) == 10
    assert smoothed.output.weight is smoothed.embed.weight
    assert relative_error(smoothed(tokens(3)), model(tokens(3))) < 1e-5


def test_channels_that_are_never_active_stay_finite() -> None:
    model = settled(nn.Sequential(nn.RMSNorm(16), nn.Linear(16, 4)))
    with torch.no_grad():
        model[0].weight[2] = 0
        model[1].weight[:, 5] = 0
    smoothed = smooth(model, activations())
    assert all(p.isfinite().all() for p in smoothed.parameters())
    assert relative_error(smoothed(activations(2)), model(activations(2))) < 1e-5


@pytest.mark.parametrize("alpha", [-0.1, 1.5, float("nan")])
def test_alpha_is_a_share(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha is"):
        smooth(ViTBlock(), activations(), alpha)


def test_no_inputs_and_infinite_activations_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="no calibration inputs"):
        smooth(ViTBlock(), [])
    with pytest.raises(UsageError, match="not finite"):
        smooth(ViTBlock(), activations() * float("inf"))
