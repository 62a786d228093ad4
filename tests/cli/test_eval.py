"""`fewbit eval`: a language model on a text beside its module in PyTorch, and outputs of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch

import fewbit
from fewbit.cli.guard import guarded
from fewbit.cli.main import run
from fewbit.frontends.language import build_decoder, open_checkpoint
from fewbit.numerics.fidelity import cross_entropy
from tests.language.checkpoints import plain_folder, write_gguf

TEXT = "hello world, hello hello world; a text of some tokens, and then some more of them. " * 3
CONTEXT = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint, two artifacts of it, and a text."""
    folder = tmp_path_factory.mktemp("eval")
    write_gguf(folder / "net.gguf", gguf.GGMLQuantizationType.F32)
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    for name, recipe in (("float", None), ("w4a8", "w4a8")):
        fewbit.compile(folder / "net.gguf", output=folder / name, recipe=recipe, context=CONTEXT)
    return folder


def tell(command: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert guarded(run, ["eval", *command, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def expected_perplexity(path: Path, tokens: list[int], window: int) -> float:
    """Compute it by the module, each prefix of a window by itself."""
    surprise: list[float] = []
    with torch.no_grad():
        for start in range(0, len(tokens) - window + 1, window):
            part = tokens[start : start + window]
            for end in range(1, window):
                model = build_decoder(open_checkpoint(path), CONTEXT)
                logits = model(torch.tensor([part[:end]]), torch.tensor([0]))
                surprise.append(float(cross_entropy(logits.numpy().reshape(-1), part[end])))
    return float(np.exp(np.mean(surprise)))


def test_perplexity_is_that_of_the_module(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = str(folder / "text.txt")
    told = tell([str(folder / "float"), "--text", text, "--window", "16"], capsys)
    tokens = fewbit.load(folder / "float").text_model.tokenizer.encode(TEXT).ids
    assert told["tokens"] == len(tokens) // 16 * 15
    expected = expected_perplexity(folder / "net.gguf", tokens, 16)
    assert told["perplexity"] == pytest.approx(expected, rel=1e-5)


def test_a_reference_and_a_recipe(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A checkpoint is compiled on the way, and is then what its artifact is."""
    text = ["--text", str(folder / "text.txt"), "--windows", "1"]
    told = tell([str(folder / "w4a8"), "--against", str(folder / "float"), *text], capsys)
    assert told["tokens"] == CONTEXT - 1
    assert 0.001 < told["against"]["kl_divergence"] < 1
    assert 0 < told["against"]["top1_agreement"] <= 1
    assert told["against"]["perplexity"] != told["perplexity"]
    command = [str(folder / "net.gguf"), "-r", "w4a8", "--against", str(folder / "net.gguf")]
    assert tell([*command, *text, "--window", str(CONTEXT)], capsys) == told
    same = tell([str(folder / "float"), "--against", str(folder / "float"), *text], capsys)
    assert same["against"]["kl_divergence"] == 0
    assert same["against"]["top1_agreement"] == 1


def test_python_gives_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = tell([str(folder / "w4a8"), "--text", str(folder / "text.txt")], capsys)
    artifact = fewbit.load(folder / "w4a8")
    assert artifact.evaluate(TEXT).perplexity == told["perplexity"]
    tokens = artifact.text_model.tokenizer.encode(TEXT).ids
    assert artifact.evaluate(tokens).perplexity == told["perplexity"]
    assert artifact.evaluate(TEXT, window=8).perplexity != told["perplexity"]


def test_what_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = str(folder / "text.txt")
    command = ["eval", str(folder / "w4a8"), "--against", str(folder / "float"), "--text", text]
    assert guarded(run, command) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("perplexity ")
    assert second.startswith("reference ")
    assert "KL divergence" in third
    assert "top-1 agreement" in third


def test_outputs_of_other_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(
        tmp_path / "x.npy", np.random.default_rng(0).standard_normal((3, 1, 28, 28), np.float32)
    )
    command = ["zoo:lenet", "-r", "w8a8", "--against", "zoo:lenet"]
    (told,) = tell([*command, "--input", str(tmp_path / "x.npy")], capsys)["outputs"]
    assert 0.99 < told["cosine"] < 1
    assert 15 < told["snr_db"] < 80
    assert guarded(run, ["eval", *command, "--random"]) == 0
    assert "signal to noise" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["ART"], "nothing to evaluate it by"),
        (["ART", "--windows", "2"], "are for a text"),
        (["ART", "--text", "TEXT", "--random"], "exclude each other"),
        (["ART", "--text", "missing.txt"], "no file 'missing.txt'"),
        (["ART", "--text", "BINARY"], "not UTF-8"),
        (["ART", "--text", "EMPTY"], "too short"),
        (["ART", "--text", "TEXT", "-r", "w8a8"], "compiled already"),
        (["ART", "--text", "TEXT", "--window", "64"], "does not fit into the context"),
        (["zoo:mlp", "--text", "TEXT"], "no language model"),
        (["ART", "--against", "zoo:mlp", "--text", "TEXT"], "no language model"),
        (["missing", "--text", "TEXT"], "missing"),
    ],
)
def test_what_is_refused(
    words: list[str], what: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    (folder / "empty").write_text("", encoding="utf-8")
    files = {"ART": "float", "TEXT": "text.txt", "BINARY": "binary", "EMPTY": "empty"}
    given = [str(folder / files[word]) if word in files else word for word in words]
    assert guarded(run, ["eval", *given]) == 2
    assert what in capsys.readouterr().err


def test_other_tokenizers_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = plain_folder(tmp_path / "other", vocab_size=300)
    text = fewbit.load(folder / "float").text_model.tokenizer
    text.add_tokens(["hello world"])  # pyright: ignore[reportUnknownMemberType]
    text.save(str(other / "tokenizer.json"))
    fewbit.compile(other, output=tmp_path / "art", context=CONTEXT)
    command = ["eval", str(folder / "float"), "--against", str(tmp_path / "art")]
    assert guarded(run, [*command, "--text", str(folder / "text.txt")]) == 2
    assert "other tokens" in capsys.readouterr().err
