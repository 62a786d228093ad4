"""`fewbit bench text`: its table and figures, and what it refuses before any heavy work."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import pytest

from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from tests.language.checkpoints import write_gguf


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "net.gguf"
    write_gguf(path, gguf.GGMLQuantizationType.Q4_1)
    return path


def ran(*argv: object) -> int:
    return guarded(run, ["bench", "text", *map(str, argv)])


def test_a_table_and_figures(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["-r", "w4a8g32", "--context", 32, "--steps", "4", "--prompts", "none"]
    options += ["--seconds", 0.05, "--against", "none", "--json", tmp_path / "figures.json"]
    assert ran(checkpoint, *options) == 0
    told = capsys.readouterr().out
    assert "step behind 4" in told
    assert "GB/s" in told
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert (figures["recipe"], figures["gguf"]) == ("w4a8g32", None)
    assert [times["work"] for times in figures["times"]] == ["step behind 4"]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (
            ["--context", 16, "--steps", "16", "--prompts", "none"],
            "17 tokens do not fit into the context",
        ),
        (["--steps", "many"], "no list of numbers of tokens"),
        (["--gguf", "missing.gguf"], "there is no file 'missing.gguf'"),
        (["--against", "torch"], "no tool 'torch'"),
        (["--threads", "0"], "no list of numbers of threads"),
    ],
)
def test_refused(
    checkpoint: Path, options: list[object], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(checkpoint, "--against", "none", *options) != 0
    assert what in capsys.readouterr().err


def test_other_models_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("zoo:lenet", "--against", "none") != 0
    assert "no language model that decodes" in capsys.readouterr().err
