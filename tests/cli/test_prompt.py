"""`fewbit compile x.gguf` and `fewbit run --prompt`, from checkpoint to text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import gguf
import pytest

from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from tests.language.checkpoints import plain_folder, write_gguf


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prompt")
    write_gguf(folder / "tiny-net.Q4_1.gguf", gguf.GGMLQuantizationType.Q4_1)
    command = ["compile", str(folder / "tiny-net.Q4_1.gguf"), "-r", "w4a8g32", "--context", "48"]
    assert guarded(run, [*command, "-o", str(folder / "out")]) == 0
    return folder / "out"


def test_text_is_streamed(compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", str(compiled), "--prompt", "hello", "--tokens", "6"]
    assert guarded(run, command) == 0
    plain = capsys.readouterr()
    assert guarded(run, [*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert plain.out == told["text"] + "\n"
    assert re.search(r"1 tokens read in \d+ ms, 6 decoded, [\d.]+ ms each", plain.err)
    assert len(told["step_seconds"]) == 6
    assert told["prompt_tokens"] == 1
    assert len(told["tokens"]) == 6
    assert told["finish"] == "length"


def test_questions_and_seeds(compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", str(compiled), "--prompt", "hello", "--chat", "--tokens", "4"]
    command += ["--temperature", "1.2", "--top-p", "0.9", "--seed", "7", "--json"]
    told = list[dict[str, Any]]()
    for _ in range(2):
        assert guarded(run, command) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0]["tokens"] == told[1]["tokens"]
    assert told[0]["prompt_tokens"] > 10


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--prompt", "hello " * 40], "the context holds 48"),
        (["--prompt", "x", "--random"], "exclude each other"),
        (["--prompt", "x", "--seed", "1"], "without a temperature"),
        (["--chat", "--random"], "--chat needs a prompt"),
        (["--tokens", "5"], "--tokens needs a prompt"),
    ],
)
def test_mistakes_are_named(
    options: list[str], what: str, compiled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(run, ["run", str(compiled), *options]) == 2
    assert what in capsys.readouterr().err


def test_unknown_architectures_are_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain_folder(tmp_path / "net")
    config = tmp_path / "net" / "config.json"
    config.write_text(config.read_text().replace('"llama"', '"llama4"'))
    command = ["compile", str(tmp_path / "net"), "-r", "w8a8", "-o", str(tmp_path / "out")]
    assert guarded(run, command) == 3
    assert "the nearest known is llama" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
