"""Calibration: scales by three methods, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fewbit import numerics
from fewbit.base.typed_torch import forward_pre_hooks, manual_seed
from fewbit.errors import Error, UsageError
from fewbit.numerics import WIDTHS, Width
from fewbit.quant import Calibration, calibrate, prepare_qat
from fewbit.quant.observer import BINS, Observer


def model() -> nn.Sequential:
    manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4))


def batches() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(32, 8, generator=generator) * (i + 1) for i in range(3)]


def test_minmax_is_the_largest_magnitude() -> None:
    calibration = calibrate(model(), batches(), "w4a8-static")
    peak = np.float32(max(float(x.abs().max()) for x in batches()))
    assert list(calibration) == ["0", "3"]
    assert calibration["0"] == float(np.float32(1) / (np.float32(127) / peak))
    whole = numerics.quantize_activation(torch.cat(batches()).numpy(), 8, granularity="tensor")
    assert calibration["0"] == float(whole.scale)


@pytest.mark.parametrize("width", [w for w in WIDTHS if w.bits <= 2], ids=str)
@pytest.mark.parametrize("method", ["minmax", "percentile"])
def test_the_least_widths_take_the_mean(width: Width, method: Any) -> None:
    calibration = calibrate(model(), batches(), f"w4a{width}-static", method)
    whole = numerics.quantize_activation(torch.cat(batches()).numpy(), width, granularity="tensor")
    assert calibration["0"] == pytest.approx(float(whole.scale), rel=1e-6)


@pytest.mark.parametrize("percent", [50.0, 99.0, 100.0])
def test_percentile(percent: float) -> None:
    calibration = calibrate(model(), batches(), "w4a8-static", "percentile", percent)
    magnitudes = torch.cat(batches()).abs().numpy()
    resolution = 2 * float(magnitudes.max()) / BINS
    expected = float(np.quantile(magnitudes, percent / 100, method="inverted_cdf"))
    assert calibration["0"] * 127 == pytest.approx(expected, abs=2 * resolution)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_mse_loses_no_more_than_minmax(width: Width) -> None:
    x = torch.cat(batches())
    x[0, 0] = 40.0
    errors = {}
    for method in ("minmax", "mse"):
        scale = calibrate(model(), [x], f"w4a{width}-static", method)["0"]
        rounded = numerics.quantize_activation(x.numpy(), width, scale=scale).dequantize()
        errors[method] = float(((x.numpy() - rounded) ** 2).mean())
    assert errors["mse"] <= errors["minmax"] * 1.01
    if 2 < width.bits < 7:
        assert errors["mse"] < errors["minmax"] * 0.95


def test_asymmetric_layers_get_zero_points() -> None:
    calibration = calibrate(model(), batches(), "w4a8-static-asym,0=w4a8-static")
    assert set(calibration) == {"0", "3"}
    assert calibration.zero_points == {"3": -128}
    with pytest.raises(UsageError, match="'minmax'") as caught:
        calibrate(model(), batches(), "w4a8-static-asym", "mse")
    assert caught.value.place.layer == "0"


def test_the_result_depends_on_the_data_alone(tmp_path: Path) -> None:
    first = calibrate(model(), iter(batches()), "w4a8-static", "mse")
    assert calibrate(model(), batches(), "w4a8-static", "mse") == first
    first.save(tmp_path / "scales.json")
    assert Calibration.load(tmp_path / "scales.json") == first


def test_the_model_is_left_as_it_was() -> None:
    net = model()
    net[0].eval()
    calibrate(net, batches(), "w4a8")
    assert [module.training for module in net] == [False, True, True, True]
    assert not any(forward_pre_hooks(module) for module in net.modules())
    calibrate(net, batches(), "w4a8,3=fp")
    assert "3" not in calibrate(net, batches(), "w4a8,3=fp")


def test_scales_serve_training() -> None:
    net, recipe = model().eval(), "w8a8-static"
    calibration = calibrate(net, batches(), recipe)
    prepared = prepare_qat(net, recipe, calibration=calibration)
    x = batches()[0]
    assert torch.allclose(prepared(x), net(x), atol=0.1)


def test_named_and_several_arguments() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return self.fc(input=a + b)

    a, b = torch.ones(2, 4), torch.full((2, 4), 2.0)
    expected = calibrate(Sum(), [(a, b)], "w4a8")
    assert expected["fc"] == pytest.approx(3 / 127)
    assert calibrate(Sum(), [{"a": a, "b": b}], "w4a8") == expected
    with pytest.raises(UsageError, match="a str is not"):
        calibrate(Sum(), ["ab"], "w4a8")


def test_a_layer_used_twice_sees_both_uses() -> None:
    fc = nn.Linear(4, 4)
    nn.init.constant_(fc.weight, 1.0)
    nn.init.zeros_(fc.bias)
    calibration = calibrate(nn.Sequential(fc, fc), [torch.ones(1, 4)], "w4a8")
    assert calibration["0"] == pytest.approx(4 / 127)


@pytest.mark.parametrize("data", [[], iter(())])
def test_no_data(data: Any) -> None:
    with pytest.raises(UsageError, match="no data"):
        calibrate(model(), data, "w4a8")


def test_refused() -> None:
    with pytest.raises(UsageError, match="no calibration method"):
        calibrate(model(), batches(), "w4a8", "entropy")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="percentile"):
        calibrate(model(), batches(), "w4a8", "percentile", 0.0)
    with pytest.raises(Error, match="NaN") as caught:
        calibrate(model(), [torch.full((1, 8), float("nan"))], "w4a8")
    assert caught.value.place.layer == "0"


def test_a_static_layer_that_never_ran() -> None:
    class Branch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.used(x)

    assert list(calibrate(Branch(), [torch.ones(1, 4)], "w4a8")) == ["used"]
    with pytest.raises(Error, match="did not run") as caught:
        calibrate(Branch(), [torch.ones(1, 4)], "w4a8-static")
    assert caught.value.place.layer == "unused"


def test_the_histogram_widens_without_losing_counts() -> None:
    small, large = np.array([0, 0.1, -0.3], np.float32), np.array([100, -7], np.float32)
    observer = Observer()
    observer.see(np.zeros(4, np.float32))
    for x in (small, large, np.zeros(0, np.float32)):
        observer.see(x)
    assert observer.bins.sum() == observer.count == 9
    assert (observer.low, observer.high) == (-7.0, 100.0)
    assert observer.top == 128.0
    assert observer.percentile(100) == 100.0
    assert calibrate(nn.Linear(4, 4), [torch.zeros(1, 4)], "w4a8", "mse")["weight"] > 0
