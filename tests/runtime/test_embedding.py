"""Vectors of texts from a compiled encoder, compared with its module in PyTorch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fewbit
from fewbit.errors import UsageError
from fewbit.frontends.language import build_encoder, open_encoder
from fewbit.language.samples import text_samples
from fewbit.numerics.fidelity import cosine_similarity
from fewbit.runtime import Artifact
from tests.language.encoder_checkpoints import WORDS, write_encoder, write_sentence_encoder
from tests.language.encoder_checkpoints import write_words as write_tokenizer

TEXT = "hello world, a few bits."
TEXTS = [TEXT, "a world", "bits, hello."]
LONG = "hello " * 30
CONTEXT = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of sentences, one of states, and artifacts of both."""
    folder = tmp_path_factory.mktemp("embedding")
    write_sentence_encoder(folder / "model")
    write_encoder(folder / "states", "bert")
    write_tokenizer(folder / "states")
    for name in ("model", "states"):
        fewbit.compile(folder / name, output=folder / f"{name}-float", context=CONTEXT)
    fewbit.compile(folder / "model", output=folder / "w4a8", recipe="w4a8", context=CONTEXT)
    return folder


@pytest.fixture
def artifact(folder: Path) -> Artifact:
    return fewbit.load(folder / "model-float")


def tokens_of(text: str) -> list[int]:
    words = text.replace(",", " ,").replace(".", " .").split()
    return [2, *[WORDS.index(word) for word in words], 3]


def test_a_text_becomes_the_vector_of_its_module(artifact: Artifact, folder: Path) -> None:
    """The tokenizer in the folder pads and cuts to 16 tokens, and the artifact's does not."""
    model = build_encoder(open_encoder(folder / "model"), CONTEXT)
    for text in (TEXT, "hello " * 20):
        assert artifact.text_encoding.encode(text) == tokens_of(text)
        with torch.no_grad():
            expected = model(torch.tensor([tokens_of(text)]))[0].numpy()
        np.testing.assert_allclose(artifact.embed(text), expected, rtol=1e-5, atol=1e-6)


def test_several_texts_are_rows(artifact: Artifact) -> None:
    rows = artifact.embed(TEXTS)
    assert rows.shape == (3, 64)
    for row, text in zip(rows, TEXTS, strict=True):
        np.testing.assert_array_equal(row, artifact.embed(text, threads=2))
    with pytest.raises(UsageError, match="no text"):
        artifact.embed([])


def test_without_a_pooling_it_is_the_mean_of_states(folder: Path) -> None:
    artifact = fewbit.load(folder / "states-float")
    states = artifact(np.array([tokens_of(TEXT)]))
    assert states.shape == (1, len(tokens_of(TEXT)), 64)
    np.testing.assert_allclose(artifact.embed(TEXT), states[0].mean(0), rtol=1e-5, atol=1e-6)


def test_long_texts_are_refused_or_cut(artifact: Artifact) -> None:
    with pytest.raises(UsageError, match="32 tokens long, and the encoder reads 24") as caught:
        artifact.embed(LONG)
    assert "truncate=True" in (caught.value.hint or "")
    np.testing.assert_array_equal(
        artifact.embed(LONG, truncate=True), artifact.embed("hello " * (CONTEXT - 2))
    )


def test_a_prompt_stands_before_every_text(folder: Path, tmp_path: Path) -> None:
    write_sentence_encoder(tmp_path)
    prompts = {"prompts": {"query": "few bits "}, "default_prompt_name": "query"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    artifact = fewbit.compile(tmp_path, context=CONTEXT)
    plain = fewbit.load(folder / "model-float")
    np.testing.assert_array_equal(artifact.embed("hello"), plain.embed("few bits hello"))


def test_vectors_are_compared(artifact: Artifact, folder: Path) -> None:
    few = fewbit.load(folder / "w4a8")
    score = few.compare_embeddings(TEXTS, artifact)
    cosines = [cosine_similarity(artifact.embed(text), few.embed(text)) for text in TEXTS]
    assert score.texts == 3
    assert score.mean == pytest.approx(np.mean(cosines))
    assert score.minimum == pytest.approx(min(cosines))
    assert 0.9 < score.minimum < score.mean < 0.9999
    assert artifact.compare_embeddings([LONG], artifact).mean == pytest.approx(1)
    with pytest.raises(UsageError, match="no text to compare"):
        few.compare_embeddings([], artifact)


def test_other_models_cannot_be_compared(artifact: Artifact, tmp_path: Path) -> None:
    write_sentence_encoder(tmp_path / "wide", hidden_size=32)
    other = fewbit.compile(tmp_path / "wide", context=CONTEXT)
    with pytest.raises(UsageError, match="64 elements, and those of the reference 32"):
        artifact.compare_embeddings(TEXTS, other)
    tokenizer: Any = artifact.text_encoding.tokenizer
    tokenizer.add_tokens(["hello world"])
    write_sentence_encoder(tmp_path / "cut")
    tokenizer.save(str(tmp_path / "cut" / "tokenizer.json"))
    other = fewbit.compile(tmp_path / "cut", context=CONTEXT)
    with pytest.raises(UsageError, match="other tokens"):
        fewbit.load(artifact.folder).compare_embeddings(TEXTS, other)


def test_encoders_do_not_decode_and_others_do_not_encode(artifact: Artifact) -> None:
    with pytest.raises(UsageError, match="this is an encoder") as caught:
        artifact.generate(TEXT)
    assert "embed" in (caught.value.hint or "")
    small = fewbit.compile(torch.nn.Linear(4, 2), example_inputs=(torch.ones(1, 4),))
    assert not small.is_encoder
    with pytest.raises(UsageError, match="no encoder"):
        small.embed(TEXT)


def test_lines_are_samples_for_calibration(folder: Path) -> None:
    program = fewbit.import_model(folder / "model", context=CONTEXT)
    samples = text_samples(program, f"{TEXT}\n\n  \na world\n{LONG}")
    assert [tokens.tolist() for (tokens,) in samples[:2]] == [
        [tokens_of(TEXT)],
        [tokens_of("a world")],
    ]
    assert samples[2][0].shape == (1, CONTEXT)
    assert len(text_samples(program, "\n".join(TEXTS), windows=2, window=8)) == 2
