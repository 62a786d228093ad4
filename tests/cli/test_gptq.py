"""`fewbit quantize --gptq`: integers by sample data, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fewbit as package
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.language.samples import text_samples
from fewbit.program.program import Program
from fewbit.quant import gptq
from tests.cli.test_calibration import TEXT
from tests.language.checkpoints import write_gguf

WORDS = "hello world, hello worlds; well or lower. " * 30
RECIPE = "w3a8g32"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    write_gguf(tmp_path / "net.gguf")
    (tmp_path / "book.txt").write_text(WORDS)
    return tmp_path / "net.gguf"


def fewbit(*argv: object) -> int:
    return guarded(run, [str(word) for word in argv])


def outputs(program: Program) -> list[np.ndarray]:
    caches = [
        np.zeros([size or 1 for size in each.shape or ()], np.float32)
        for each in program.signature.inputs[2:]
    ]
    return list(program.run(np.array([[1, 2, 3]]), np.array([0]), *caches))


def test_a_language_model_by_a_text(checkpoint: Path, tmp_path: Path) -> None:
    command = ["quantize", checkpoint, "-r", RECIPE, "--context", 32, "-o", tmp_path / "out"]
    assert fewbit(*command, "--gptq", tmp_path / "book.txt", "--samples", 3) == 0
    given = package.import_model(checkpoint, context=32)
    weights = gptq(given, text_samples(given, WORDS, window=128, windows=3), RECIPE)
    expected = outputs(package.quantize(given, RECIPE, weights=weights))
    loaded = Program.load(tmp_path / "out")
    for ours, theirs in zip(outputs(loaded), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert not np.array_equal(outputs(package.quantize(given, RECIPE))[0], expected[0])
    assert loaded.files == given.files


@pytest.mark.slow
def test_the_folder_is_compiled_and_takes_text(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["quantize", checkpoint, "-r", RECIPE, "--context", 32, "-o", tmp_path / "out"]
    assert fewbit(*command, "--gptq", tmp_path / "book.txt", "--samples", 1) == 0
    assert fewbit("compile", tmp_path / "out", "-o", tmp_path / "net") == 0
    capsys.readouterr()
    assert fewbit("run", tmp_path / "net", "--prompt", "hello", "--tokens", 3, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["tokens"]) == 3


def test_another_model_by_data(tmp_path: Path) -> None:
    (tmp_path / "net.mlir").write_text(TEXT)
    np.save(tmp_path / "data.npy", np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32))
    command = ["quantize", tmp_path / "net.mlir", "-r", "w3a8", "-o", tmp_path / "out"]
    assert fewbit(*command, "--gptq", tmp_path / "data.npy") == 0
    program = Program.load(tmp_path / "net.mlir")
    weights = gptq(program, [[np.load(tmp_path / "data.npy")]], "w3a8")
    expected = package.quantize(program, "w3a8", weights=weights)
    x = np.array([[1.0, 0.5]], np.float32)
    np.testing.assert_array_equal(Program.load(tmp_path / "out").run(x)[0], expected.run(x)[0])


@pytest.mark.parametrize(
    ("model", "data", "what"),
    [
        ("net.mlir", "book.txt", "no language model that takes text"),
        ("net.mlir", "missing.npy", "there is no data"),
        ("net.gguf", "missing.txt", "there is no file"),
        ("net.gguf", "short.txt", "the text is too short"),
    ],
)
def test_mistakes(
    model: str,
    data: str,
    what: str,
    checkpoint: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "net.mlir").write_text(TEXT)
    (tmp_path / "short.txt").write_text("")
    command = ["quantize", tmp_path / model, "-r", "w4a8", "-o", tmp_path / "out"]
    assert fewbit(*command, "--gptq", tmp_path / data) == 2
    assert what in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
