"""The transformations on every model of the zoo."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fewbit.models.registry import create, zoo
from fewbit.quant import prepare_qat
from fewbit.quant.fusion import FusionReport, fuse_batch_norm, fuse_model, smooth
from fewbit.quant.fusion.layers import BATCH_NORMS
from tests.quant.fusion.networks import relative_error

BATCH_NORMS_OF = {
    "vgg": 6,
    "resnet8": 7,
    "resnet18": 20,
    "mobilenet-v2": 52,
    "ds-cnn": 9,
    "m5": 4,
    "kws-conv1d": 10,
    "mobilenet-v1-vww": 27,
    "autoencoder": 9,
}
SMOOTHED_OF = {"kwt": 1, "vit-tiny": 8, "cct": 4, "llama-tiny": 5}


def inputs_of(name: str, dtype: torch.dtype = torch.float32) -> tuple[Any, ...]:
    inputs = zoo()[name].example_inputs(2)
    return tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, entry in zoo().items() if not entry.is_step])
@torch.no_grad()
def test_folding_is_exact_up_to_rounding(name: str) -> None:
    model, inputs = create(name).eval().double(), inputs_of(name, torch.float64)
    report = FusionReport()
    fused = fuse_batch_norm(model, inputs, report=report)
    assert report.left == []
    assert len(report.fused) == BATCH_NORMS_OF.get(name, 0)
    assert not any(isinstance(module, BATCH_NORMS) for module in fused.modules())
    assert relative_error(fused(*inputs), model(*inputs)) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", BATCH_NORMS_OF)
@torch.no_grad()
def test_folding_before_and_after_preparing_without_inputs(name: str) -> None:
    model, inputs = create(name).eval(), inputs_of(name)
    first = prepare_qat(fuse_model(model), "w4a8")
    last = fuse_batch_norm(prepare_qat(model, "w4a8"), inputs)
    assert torch.equal(first(*inputs), last(*inputs))


@pytest.mark.slow
@pytest.mark.parametrize("name", SMOOTHED_OF)
@torch.no_grad()
def test_smoothing_changes_no_output(name: str) -> None:
    model, inputs = create(name).eval(), inputs_of(name)
    report = FusionReport()
    smoothed = smooth(model, inputs, report=report)
    assert len(report.fused) == SMOOTHED_OF[name]
    assert relative_error(smoothed(*inputs), model(*inputs)) < 1e-5
