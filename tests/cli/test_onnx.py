"""`fewbit inspect`, `quantize`, `compile` and `run` on an ONNX model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.program.program import Program
from tests.frontends.onnx.graphs import TensorProto, floats, model, node, onnx


@pytest.fixture
def path(tmp_path: Path) -> Path:
    nodes = [
        node("MatMul", ["x", "fc.weight"], ["a"]),
        node("Reshape", ["a", "shape"], ["y"]),
    ]
    kinds = {"shape": TensorProto.INT64}
    inputs = {"x": ["batch", 8], "shape": [3]}
    file = tmp_path / "model.onnx"
    onnx.save(model(nodes, inputs, ["y"], {"fc.weight": floats(8, 6)}, kinds), str(file))
    return file


def test_inspect(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(run, ["inspect", str(path), "-r", "w4a8", "--constant", "shape=0,2,3"]) == 0
    assert "fc" in capsys.readouterr().out


def test_value_that_is_missing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(run, ["inspect", str(path)]) == 3
    shown = capsys.readouterr().err
    assert "model.onnx:2" in shown
    assert "Reshape needs the value of 'shape'" in shown


@pytest.mark.parametrize("text", ["shape", "shape=a,b", "shape="])
def test_wrong_constant(path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(run, ["inspect", str(path), "--constant", text]) == 2
    assert "is no constant" in capsys.readouterr().err


def test_quantize_compile_and_run(path: Path, tmp_path: Path) -> None:
    common = [str(path), "-r", "w8a8", "--constant", "shape=0,2,3", "--input-shape", "batch=4"]
    saved, made = tmp_path / "saved", tmp_path / "made"
    assert guarded(run, ["quantize", *common, "-o", str(saved)]) == 0
    assert guarded(run, ["compile", *common, "-t", "cpu", "-o", str(made)]) == 0
    x = floats(4, 8, seed=2)
    (wanted,) = Program.load(saved).run(x)
    assert wanted.shape == (4, 2, 3)
    np.testing.assert_allclose(fewbit.load(made)(x), wanted, rtol=1e-5, atol=1e-6)


def test_run_interprets(tmp_path: Path) -> None:
    file, x, y = tmp_path / "model.onnx", tmp_path / "x.npy", tmp_path / "y.npy"
    onnx.save(model([node("Relu", ["x"], ["y"])], {"x": [3]}, ["y"]), str(file))
    np.save(x, np.array([-1, 0, 2], np.float32))
    assert guarded(run, ["run", str(file), "-i", str(x), "-o", str(y)]) == 0
    np.testing.assert_array_equal(np.load(y), [0, 0, 2])


def test_named_and_unnamed_shapes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["inspect", str(path), "--input-shape", "batch=4", "--input-shape", "3"]
    assert guarded(run, argv) == 2
    assert "some input shapes have names" in capsys.readouterr().err
