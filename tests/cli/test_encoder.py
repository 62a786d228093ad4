"""`fewbit compile`, `run --prompt` and `eval --text` of an encoder, from folder to cosine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fewbit
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from tests.language.encoder_checkpoints import write_encoder, write_sentence_encoder

TEXT = "hello world, a few bits."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    write_sentence_encoder(folder / "model")
    (folder / "text.txt").write_text(f"{TEXT}\n\nhello, hello\na world.\n", encoding="utf-8")
    for recipe in ("w8a8", "w4a8", "fp"):
        command = ["compile", str(folder / "model"), "-r", recipe, "-o", str(folder / recipe)]
        assert guarded(run, command) == 0
    return folder


def test_a_prompt_gives_its_vector(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", str(folder / "w8a8"), "--prompt", TEXT]
    assert guarded(run, command) == 0
    assert capsys.readouterr().out.startswith("embedding: 64 float32, ")
    assert guarded(run, [*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["prompt_tokens"] == 9
    assert told["embedding"] == fewbit.load(folder / "w8a8").embed(TEXT).tolist()


def test_cosines_beside_the_float_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder to compare with is compiled on the way."""
    text = ["--text", str(folder / "text.txt"), "--against"]
    cosines: list[float] = []
    for recipe in ("w8a8", "w4a8"):
        assert (
            guarded(run, ["eval", str(folder / recipe), *text, str(folder / "fp"), "--json"]) == 0
        )
        told = json.loads(capsys.readouterr().out)
        assert told["texts"] == 3
        assert told["cosine"]["minimum"] <= told["cosine"]["mean"] < 1
        cosines.append(told["cosine"]["mean"])
    assert cosines[0] > 0.999 > cosines[1] > 0.9
    command = ["eval", str(folder / "w8a8"), *text, str(folder / "model"), "--windows", "2"]
    assert guarded(run, command) == 0
    assert capsys.readouterr().out.endswith("of 2 texts\n")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["run", "ART", "--prompt", "x", "--chat"], "--chat is for models that decode"),
        (["run", "ART", "--prompt", "hello " * 60], "the encoder reads 40"),
        (["eval", "ART", "--text", "TEXT"], "nothing to compare an encoder's vectors with"),
        (["eval", "ART", "--text", "TEXT", "--against", "ART", "--window", "8"], "no effect"),
        (["eval", "ART", "--text", "TEXT", "--against", "zoo:mlp"], "no encoder"),
    ],
)
def test_mistakes_are_named(
    words: list[str], what: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"ART": "w8a8", "TEXT": "text.txt"}
    given = [str(folder / files[word]) if word in files else word for word in words]
    assert guarded(run, given) == 2
    assert what in capsys.readouterr().err


def test_a_classifier_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_encoder(tmp_path / "net", "bert", architectures=["BertForSequenceClassification"])
    command = ["compile", str(tmp_path / "net"), "-r", "w8a8", "-o", str(tmp_path / "out")]
    assert guarded(run, command) == 3
    assert "transformers:BertForSequenceClassification" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
