"""`fewbit bench`: figures, errors, and what it leaves behind."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fewbit.cli.guard import guarded
from fewbit.cli.main import run

TEXT = """
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %z = mico.relu(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %z : tensor<2x4xf32>
}
"""


def ran(*argv: object) -> int:
    return guarded(run, ["bench", *map(str, argv)])


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("bench") / "report.json"
    options = ["-r", "w8a8", "--threads", "1", "--batch", "2", "--seconds", "0.2", "--json", path]
    assert ran("zoo:mlp", *options) == 0
    return json.loads(path.read_text())


def test_what_was_measured(report: dict[str, Any]) -> None:
    assert (report["model"], report["recipe"], report["target"]) == ("zoo:mlp", "w8a8", "cpu")
    assert (report["batch"], report["inputs"]) == (2, ["2x1x28x28 float32"])
    assert {"fewbit", "torch"} <= set(report["versions"])
    assert report["processor"]


def test_times_of_each_tool(report: dict[str, Any]) -> None:
    (times,) = report["times"]
    assert (times["threads"], times["absent"]) == (1, {})
    ours, torch = times["tools"]
    assert (ours["tool"], ours["variant"], ours["ratio"]) == ("fewbit", "w8a8", 1.0)
    assert (torch["tool"], torch["variant"]) == ("torch", "float32")
    for row in (ours, torch):
        assert 0 < row["least"] <= row["median"]
        assert row["throughput"] == pytest.approx(2 / row["median"])
        assert row["ratio"] == pytest.approx(row["least"] / ours["least"])
    assert ours["sqnr_db"] > 20
    assert torch["sqnr_db"] is None or torch["sqnr_db"] > 100


def test_sizes(report: dict[str, Any]) -> None:
    sizes = report["sizes"]
    assert sizes["weights"] < sizes["library"]
    assert 0.25 < sizes["weights"] / sizes["float32"] < 0.30


def test_layers_add_up_to_the_whole(report: dict[str, Any]) -> None:
    layers = report["layers"]
    assert sum(layer["share"] for layer in layers) == pytest.approx(1.0)
    whole = report["times"][0]["tools"][0]["median"]
    assert 0.2 * whole < sum(layer["seconds"] for layer in layers) < 2 * whole
    products = {"matmul_i8_f32", "matmul_u8_f32"}
    linear = [layer for layer in layers if products & set(layer["kernels"])]
    assert sum(layer["macs"] for layer in linear) == 2 * weights_of_mlp()
    assert all(0 < layer["achieved"] < 2 for layer in linear)
    assert report["layer_threads"] == 1
    assert report["roofline"]["byte_macs"] > 0


def weights_of_mlp() -> int:
    """Count them in all layers: each is used once for each input."""
    from torch import nn

    from fewbit.models import create

    results = [m.weight.numel() for m in create("mlp").modules() if isinstance(m, nn.Linear)]
    return sum(results)


def test_a_program_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.mlir").write_text(TEXT)
    model = tmp_path / "net.mlir"
    assert ran(model, "--seconds", 0.05, "--no-layers", "--json", "-") == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["tool"] for row in printed["times"][0]["tools"]] == ["fewbit"]
    assert printed["layers"] == []
    assert ran(model, "--against", "torch") == 2
    assert "PyTorch models" in capsys.readouterr().err


def test_static_scales_without_data_are_those_of_random_inputs(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    options = ["-r", "w8a8-static", "--against", "none", "--seconds", "0.1", "--json", path]
    assert ran("zoo:lenet", *options, "--no-layers") == 0
    (times,) = json.loads(path.read_text())["times"]
    assert times["tools"][0]["sqnr_db"] > 20


def test_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.mlir").write_text(TEXT)
    assert ran(tmp_path / "net.mlir", "--seconds", 0.05) == 0
    out = capsys.readouterr().out
    for word in ("minimum", "median", "per second", "weights", "share", "of bound", "loop"):
        assert word in out


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--against", "tflite"], 2, "no tool 'tflite'"),
        (["--threads", "two"], 2, "no list of numbers"),
        (["--threads", "1,0"], 2, "no list of numbers"),
        (["--threads", "4096"], 1, "processors"),
        (["-t", "tpu"], 2, "no target 'tpu'"),
        (["--seconds", "0"], 2, "--seconds"),
    ],
)
def test_errors_come_before_any_work(options: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    assert ran("zoo:no-such-model", *options) == status
    assert message in capsys.readouterr().err


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert ran("zoo:no-such-model", "--against", "torch,onnxruntime") == 1
    assert "pip install 'fewbit[bench]'" in capsys.readouterr().err
