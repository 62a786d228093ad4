"""The suite itself: what it counts as wrong, silent or absent, and the page that it writes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.base.typed_torch import manual_seed
from tests.strangers.catalog import STRANGERS, find
from tests.strangers.check import Kind, Result, relative_error, signal_to_noise, silent_floats
from tests.strangers.fake_quantization import FakeQuantization
from tests.strangers.onnx_fake_quantization import quantize_dequantize
from tests.strangers.page import read_page, write_page
from tests.strangers.stranger import PACKAGES, AbsentError, need
from tests.strangers.sweep import load_result, sweep
from tests.strangers.weights import settle


def fake(model: nn.Module, *inputs: torch.Tensor) -> tuple[np.ndarray, set[str]]:
    mode = FakeQuantization(dict(model.named_parameters()) | dict(model.named_buffers()))
    with torch.no_grad(), mode:
        return model(*inputs).numpy(), mode.names


def test_catalog_has_enough_of_each_group() -> None:
    counts = Counter(stranger.group for stranger in STRANGERS)
    assert counts["timm"] >= 120
    assert counts["torchvision"] >= 15
    assert counts["transformers"] >= 50
    assert counts["onnx"] >= 12
    assert counts["dynamic"] >= 10
    assert len({stranger.key for stranger in STRANGERS}) == len(STRANGERS)
    assert find("timm/resnet10t").name == "resnet10t"


def test_fake_quantization_computes_what_programs_do() -> None:
    manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(72, 5))
    x = torch.randn(2, 3, 8, 8)
    ours = fewbit.quantize(model.eval(), "w8a8", example_inputs=(x,)).run(x.numpy())[0]
    theirs, names = fake(model, x)
    assert names == {"0.weight", "3.weight"}
    assert relative_error(ours, theirs) < 1e-5
    assert relative_error(ours, model(x).detach().numpy()) > 1e-4


class Spellings(nn.Module):
    """Layers by other names: a matmul, a sum with `addmm`, a weight that is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(8, 8)), nn.Parameter(torch.randn(8, 8))
        self.c = nn.Parameter(torch.randn(8, 8))
        self.d = nn.Parameter(torch.randn(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.addmm(self.d, x @ self.a.T, self.b)
        written = torch.zeros_like(x)
        written[:, :4] = x[:, :4]
        return (
            torch.einsum("bi,oi->bo", written, self.c / self.c.square().sum(1, keepdim=True).sqrt())
            @ x.T
        )


def test_fake_quantization_finds_layers_however_they_are_spelled() -> None:
    _, names = fake(Spellings(), torch.randn(3, 8))
    assert names == {"a", "b", "c"}


def test_weights_that_are_float_in_silence_are_found() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)).eval()
    x = torch.randn(1, 8)
    program = fewbit.quantize(model, "w8a8,1=fp", example_inputs=(x,))
    weights = {"0.weight", "1.weight"}
    assert silent_floats(program, weights, named=set()) == ["1.weight"]
    assert silent_floats(program, weights, named={"1.weight"}) == []


def test_onnx_weights_are_rounded_by_the_same_formula() -> None:
    weight = np.array([[1.0, -0.5, 0.25], [0.0, 0.0, 0.0]], np.float32)
    expected = np.array([[127, -64, 32], [0, 0, 0]], np.float32) / 127
    assert np.allclose(quantize_dequantize(weight, [1]), expected, atol=1e-7)


def test_settled_weights_leave_nothing_without_effect() -> None:
    manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 16, 4))
    nn.init.zeros_(model[3].get_parameter("weight"))
    samples = [(10 + torch.randn(4, 3, 6, 6),) for _ in range(3)]
    settle(model, samples)
    with torch.no_grad():
        hidden = model[1](model[0](samples[0][0]))
        result = model(samples[0][0])
    assert abs(float(hidden.mean())) < 1
    assert 0.3 < float(hidden.std()) < 3
    assert float(result.std()) > 0.1
    assert not model.training


def test_measures() -> None:
    x = np.array([1.0, 2.0, np.nan, -np.inf], np.float32)
    assert relative_error(x, x) == 0
    assert relative_error(np.zeros(4, np.float32), x) == np.inf
    assert relative_error(np.array([1, 2]), np.array([1, 3])) == np.inf
    signal = np.ones(100, np.float32)
    assert signal_to_noise([[signal * 1.1]], [[signal]]) == pytest.approx(20, abs=1e-3)


def test_absent_packages_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PACKAGES, raising=False)
    with pytest.raises(AbsentError, match="not installed"):
        need("a_package_of_nobody")


def test_page_counts_results(tmp_path: Path) -> None:
    good = Result(
        "timm/a", import_s=1.0, compile_s=2.0, bytes=1000, error=1e-6, snr=30.0, snr_fake=31.0
    )
    bad = Result("timm/b", Kind.WRONG, "/home/me/b.py:3: floats differ | all of them")
    write_page(tmp_path / "page.md", {"timm/a": good, "timm/b": bad, "timm/c": None})
    text = (tmp_path / "page.md").read_text()
    assert "| timm | 3 | 2 | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 50 % |" in text
    assert "| a | passed | 1.0 | 2.0 |  | 0.00 MB |  | 1e-06 | 30.0, 31.0 |" in text
    assert "**wrong**: b.py:3: floats differ \\| all of them" in text


def test_a_page_that_is_read_is_written_again(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "coverage.md"
    rows = read_page(page)
    assert len(rows) > 300
    again = tmp_path / "page.md"
    write_page(again, {stranger.key: rows.get(stranger.key) for stranger in STRANGERS})
    assert read_page(again) == rows
    tables = [text.partition("## timm")[2] for text in (page.read_text(), again.read_text())]
    assert tables[0].strip() == tables[1].strip()


@pytest.mark.slow
def test_sweep_keeps_results(tmp_path: Path) -> None:
    stranger = find("dynamic/weighted_mean")
    told: list[Result] = []
    sweep([stranger], tmp_path, "abc", told.append)
    kept = load_result(stranger, tmp_path)
    assert kept == told[0]
    assert kept is not None
    assert (kept.commit, kept.kind) == ("abc", Kind.PASSED)
