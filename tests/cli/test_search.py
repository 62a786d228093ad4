"""`fewbit search`: from a file with a model and a loader to recipes, table and picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fewbit.cli import main
from fewbit.cli.guard import guarded

FILE = """
import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.last(torch.relu(self.middle(torch.relu(self.first(x)))))


def net():
    torch.manual_seed(0)
    return Net()


def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 8)).astype(np.float32)
    return x, x[:, :3].argmax(-1)


def spread(outputs, labels):
    return float(outputs.std())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fewbit(*words: str) -> int:
    return guarded(main.run, ["search", *words])


MODEL = ("net.py:net", "--data", "net.py:data")
QUICK = (*MODEL, "--train", "5", "--trials", "6", "--free-ends", "--weights", "1,2,4,8")


def test_a_search_says_what_can_be_reached_and_what_to_do_next(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fewbit(*QUICK, "--budget", "size=0.6x", "-o", "run") == 0
    out = capsys.readouterr().out
    assert "What can be reached: net.py:net on cpu" in out
    assert "(0.6x)" in out
    assert "best: accuracy" in out
    assert "test: accuracy" in out
    assert "next: fewbit compile run/model -r run/best.toml" in out
    names = {"best.toml", "front", "front.svg", "model", "run.json", "table.csv"}
    assert names <= {path.name for path in (folder / "run").iterdir()}
    assert guarded(main.run, ["compile", "run/model", "-r", "run/best.toml", "-o", "made"]) == 0


def test_what_was_found_can_be_shown_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fewbit(*QUICK, "-b", "size=0.6x", "-o", "run", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert fewbit("show", "run", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert {k: v for k, v in data.items() if k not in ("folder", "artifact")} == shown
    assert shown["best"]["size"] <= 0.6 * shown["ranges"][0]["baseline"]
    assert fewbit("show", "run") == 0
    assert "best: accuracy" in capsys.readouterr().out


def test_the_best_is_compiled_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fewbit(*QUICK, "-b", "size=0.6x", "-o", "run", "--compile") == 0
    assert "compiled: run/artifact" in capsys.readouterr().out
    manifest = json.loads((folder / "run" / "artifact" / "manifest.json").read_text())
    assert manifest["recipe"]


@pytest.mark.parametrize("words", [("sensitivity", *MODEL), (*MODEL, "--sensitivity")])
def test_sensitivity_is_a_table_and_a_picture(
    words: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fewbit(*words, "-o", "run", "--weights", "1,8") == 0
    out = capsys.readouterr().out
    assert "the most sensitive layer is" in out
    assert (folder / "run" / "sensitivity.svg").read_text().startswith("<svg")
    assert fewbit(*words, "-o", "run", "--weights", "1,8", "--json") == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert [each["layers"] for each in layers] == [["first"], ["middle"], ["last"]]
    assert [each["scheme"] for each in layers[0]["choices"]] == ["w1a8", "w8a8"]


def test_an_objective_of_the_users(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (*QUICK, "--objective", "net.py:spread", "-o", "run", "-b", "size=0.7x")
    assert fewbit(*words) == 0
    assert "best: spread" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--budget", "size=0.001x"), 1, "no recipe has size"),
        (("--budget", "size"), 2, "'size' is no budget"),
        (("--budget", "sise=1x"), 2, "did you mean 'size'"),
        (("--searcher", "best"), 2, "there is no searcher 'best'"),
        (("--keep", "first"), 2, "is not NAME=SCHEME"),
        (("--keep", "frist=w8a8"), 2, "matches no name"),
        (("--groups", "many"), 2, "no size of a group"),
        (("--weights", "12"), 1, "12"),
        (("--data", "net.py:nothing"), 2, "no function 'nothing'"),
        (("--objective", "perplexityy"), 2, "did you mean 'perplexity'"),
        (("--objective", "net.py:missing"), 2, "no function 'missing'"),
    ],
)
def test_what_is_wrong_is_said(
    words: tuple[str, ...],
    status: int,
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fewbit(*MODEL, *words) == status
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_a_model_that_was_not_trained_is_noticed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fewbit(*MODEL, "--trials", "2", "-o", "run") == 0
    assert "is it trained? --train 10" in capsys.readouterr().err


def test_static_scales_go_from_a_search_to_what_is_compiled(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--budget", "size=0.7x", "--act-scales", "static", "-o", "run")
    assert fewbit("run", *QUICK, *options) == 0
    printed = capsys.readouterr().out
    command = next(line for line in printed.splitlines() if line.startswith("next: fewbit "))
    words = command.removeprefix("next: fewbit ").split()
    assert words[-2:] == ["--calibrate", "run/best.json"]
    assert guarded(main.run, [*words, "-o", "built"]) == 0


def test_schemes_one_by_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schemes = ("--schemes", "w4a8g8-f16,w8a8h8,w8a8")
    given = (*MODEL, "--train", "5", "--trials", "3", "--free-ends", *schemes)
    assert fewbit("run", *given, "--budget", "size=0.8x", "--json", "-o", "run") == 0
    found = json.loads(capsys.readouterr().out)
    used = {scheme for point in found["points"] for scheme in point["schemes"].values()}
    assert used <= {"w4a8g8-f16", "w8a8h8", "w8a8"}


def test_what_cannot_be_asked_for_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, text in (
        (("--workers", "some"), "is no number of workers"),
        (("--act-scales", "often"), "there is no kind 'often'"),
        (("--measured", "--budget", "size=1x"), "no budget that could be measured"),
        (("--measured", "--budget", "latency=1x", "-t", "vexii"), "cannot be measured here"),
        (("--schemes", "w3a8", "-t", "vexii"), "no operands of 3 bits"),
    ):
        assert fewbit("run", *QUICK, *words) == 2
        assert text in capsys.readouterr().err
