"""Text from a compiled language model, compared with its module in PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import fewbit
from fewbit.errors import StoreError, UsageError
from fewbit.frontends.language import build_decoder, open_checkpoint
from fewbit.program.program import Program
from fewbit.runtime import Artifact, decode_session
from tests.language.checkpoints import VOCABULARY, byte_tokens, plain_folder, write_gguf

CONTEXT = 32
PROMPT = "hello world"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checkpoint") / "net.gguf"
    write_gguf(path)
    return path


@pytest.fixture(scope="module")
def program(checkpoint: Path) -> Program:
    return fewbit.import_model(checkpoint, context=CONTEXT)


@pytest.fixture(scope="module")
def artifact(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """A compiled model, from a program that was saved in between."""
    folder = tmp_path_factory.mktemp("artifact")
    program.save(folder / "program")
    compiled = fewbit.compile(Program.load(folder / "program"), output=folder / "net")
    return fewbit.load(compiled.folder)


def greedy(path: Path, tokens: list[int], count: int) -> list[int]:
    model = build_decoder(open_checkpoint(path), CONTEXT)
    given, position, decoded = tokens, 0, list[int]()
    with torch.no_grad():
        for _ in range(count):
            logits = model(torch.tensor([given]), torch.tensor([position]))
            position += len(given)
            given = [int(logits.argmax())]
            decoded += given
    return decoded


def test_text_is_that_of_the_module(artifact: Artifact, checkpoint: Path) -> None:
    generation = artifact.generate(PROMPT, tokens=20)
    text = "".join(generation)
    assert generation.prompt == artifact.text_model.tokenizer.encode(PROMPT).ids
    expected = greedy(checkpoint, generation.prompt, 20)
    ends = artifact.text_model.settings.end_tokens
    assert not set(ends) & set(expected)
    assert generation.tokens == expected
    assert generation.finish == "length"
    assert text == artifact.text_model.tokenizer.decode(expected)


def test_a_long_prompt_is_read_in_pieces_with_the_same_bits(
    artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (1, 23))
    whole, pieces = artifact.decode_session(), artifact.decode_session()
    expected = whole(tokens, np.array([3]))
    monkeypatch.setattr(decode_session, "PIECE", 5)
    np.testing.assert_array_equal(pieces(tokens, np.array([3])), expected)
    for name, kept in whole.state.items():
        np.testing.assert_array_equal(pieces.state[name], kept)


def test_a_model_on_several_devices_says_the_same(
    artifact: Artifact, program: Program, tmp_path: Path
) -> None:
    """The caches of a layer stay with it, in one artifact for the prompt and for each token."""
    rules = "layers.0=cpu:x86-64-v3"
    placed = fewbit.load(fewbit.compile(program, output=tmp_path / "net", place=rules).folder)
    assert [part.target for part in placed.manifest.parts] == ["cpu", "cpu:x86-64-v3", "cpu"]
    state = {tensor.name for tensor in placed.runner.state}
    assert state <= set(placed.manifest.parts[1].inputs)
    assert state.isdisjoint(each.value.name for each in placed.manifest.transfers)
    assert "256 * tokens[1]" in {each.formula for each in placed.manifest.transfers}
    expected, generation = artifact.generate(PROMPT, tokens=8), placed.generate(PROMPT, tokens=8)
    assert "".join(generation) == "".join(expected)
    assert generation.tokens == expected.tokens
    one, other = artifact.session(), placed.session()
    for tokens, position in (([[5, 6, 7]], [0]), ([[8]], [3]), ([[1, 2]], [4])):
        given = np.array(tokens), np.array(position)
        assert np.array_equal(one(*given), other(*given))
    assert all(np.array_equal(one.state[name], other.state[name]) for name in one.state)


def test_a_question_is_put_into_the_template(artifact: Artifact) -> None:
    tokens, _, _ = byte_tokens()
    asked = artifact.text_model.encode("hello", chat=True)
    assert [tokens[each] for each in asked[:2]] == ["<|im_start|>", "u"]
    assert asked == artifact.text_model.encode([{"role": "user", "content": "hello"}])


def test_equal_seeds_draw_equal_texts(artifact: Artifact) -> None:
    texts = [
        "".join(artifact.generate(PROMPT, 12, temperature=1.5, top_p=0.9, seed=seed))
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_decoding_ends_at_an_end_token(artifact: Artifact, checkpoint: Path) -> None:
    decoded = greedy(checkpoint, artifact.text_model.encode(PROMPT), 10)
    place = next(n for n in range(1, 10) if decoded[n] not in decoded[:n])
    changed = fewbit.load(artifact.folder)
    model = changed.text_model
    model.settings = model.settings.model_copy(update={"end_tokens": (decoded[place],)})
    generation = changed.generate(PROMPT, 10)
    list(generation)
    assert generation.tokens == decoded[:place]
    assert generation.finish == "stop"


def test_decoding_ends_where_the_context_does(artifact: Artifact) -> None:
    generation = artifact.generate([1] * (CONTEXT - 3), 100)
    list(generation)
    assert len(generation.tokens) == 3
    assert generation.finish == "context"


def test_a_prompt_that_does_not_fit_is_refused(artifact: Artifact) -> None:
    with pytest.raises(UsageError, match="32 tokens long, and the context holds 32") as caught:
        artifact.generate([1] * CONTEXT)
    assert "--context 64" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="empty"):
        artifact.generate("")
    with pytest.raises(UsageError, match=f"no token {VOCABULARY}"):
        artifact.generate([1, VOCABULARY])


@pytest.mark.parametrize(("count", "position"), [(4, 30), (1, 32), (1, -1), (33, 0)])
def test_a_step_beyond_the_context_is_refused(
    count: int, position: int, artifact: Artifact
) -> None:
    step = artifact.session()
    with pytest.raises(UsageError, match="do not fit into the context, which holds 32"):
        step(np.ones((1, count), np.int64), np.array([position]))
    with pytest.raises(UsageError, match="not in the vocabulary"):
        step(np.array([[VOCABULARY]]), np.array([0]))


def test_files_of_text_are_checked_by_hash(artifact: Artifact, tmp_path: Path) -> None:
    import shutil

    copy = shutil.copytree(artifact.folder, tmp_path / "copy")
    settings = json.loads((copy / "generation.json").read_text())
    (copy / "generation.json").write_text(json.dumps({**settings, "context": 1 << 20}))
    with pytest.raises(StoreError, match="differs from its hash"):
        fewbit.load(copy).generate(PROMPT)


def test_other_programs_have_no_text(tmp_path: Path) -> None:
    small = fewbit.compile(torch.nn.Linear(4, 2), example_inputs=(torch.ones(1, 4),))
    with pytest.raises(UsageError, match="no language model"):
        small.generate(PROMPT)


def test_a_quantized_program_keeps_what_text_needs(program: Program) -> None:
    quantized = fewbit.quantize(program, "w8a8")
    assert set(quantized.files) == {"generation.json", "tokenizer.json", "chat_template.jinja"}
    assert quantized.files == program.files


def test_a_context_is_for_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="language models"):
        fewbit.import_model("zoo:lenet", context=64)
    with pytest.raises(UsageError, match="language models"):
        fewbit.import_model(torch.nn.Linear(4, 2), (torch.ones(1, 4),), context=64)
    plain_folder(tmp_path)
    with pytest.raises(UsageError, match="4096 tokens is not possible"):
        fewbit.import_model(tmp_path, context=4096)
