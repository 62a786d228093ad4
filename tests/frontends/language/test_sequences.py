"""Compiled caches of few bits, logits of all tokens, and several sequences at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.errors import FewbitWarning, UsageError
from fewbit.program.program import Program
from fewbit.program.state import initial_state
from fewbit.runtime import Artifact, decode_session
from tests.language.checkpoints import VOCABULARY, plain_folder, write_gguf

CONTEXT = 24
PROMPTS = ["hello world", "world", "hello hello hello", "or"]


def import_quietly(path: Path, **given: object) -> Program:
    with pytest.warns(FewbitWarning):
        return fewbit.import_model(path, context=CONTEXT, **given)  # pyright: ignore


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["q8", "q4h8"])
@pytest.mark.parametrize("window", [None, 4])
def test_kept_integers_are_those_of_the_interpreter(
    cache: str, window: int | None, tmp_path: Path
) -> None:
    """Between quantized layers, floats are the same bits everywhere, and so are integers."""
    windows: dict[str, Any] = {
        "model_type": "mistral",
        "sliding_window": window,
        "rope_scaling": None,
    }
    plain_folder(tmp_path, **(windows if window else {}))
    recipe = f"w8a8,cache={cache}"
    program = fewbit.quantize(import_quietly(tmp_path, cache=cache), recipe)
    step = fewbit.compile(program).session()
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (1, 12))
    state = list(initial_state(program.module, program.store).values())
    for begin, end in ((0, 7), (7, 8), (8, 9), (9, 12)):
        given = tokens[:, begin:end], np.array([begin])
        expected, *state = program.run(*given, *state)
        np.testing.assert_allclose(step(*given), expected, rtol=1e-5, atol=1e-5)
        for ours, theirs in zip(step.state.values(), state, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checkpoint") / "net.gguf"
    write_gguf(path)
    return path


@pytest.fixture(scope="module")
def alone(checkpoint: Path) -> Artifact:
    """One sequence, and the logits of all tokens."""
    return fewbit.compile(checkpoint, context=CONTEXT, cache="q8", logits="all")


@pytest.fixture(scope="module")
def together(checkpoint: Path) -> Artifact:
    return fewbit.compile(checkpoint, context=CONTEXT, cache="q8", sequences=3)


@pytest.mark.slow
def test_all_logits_are_those_of_steps(alone: Artifact) -> None:
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (1, 10))
    at_once, step = alone.session()(tokens, np.array([0])), alone.session()
    assert at_once.shape == (1, 10, VOCABULARY)
    for position in range(10):
        one = step(tokens[:, position : position + 1], np.array([position]))
        np.testing.assert_allclose(at_once[:, position : position + 1], one, atol=1e-4)


@pytest.mark.slow
def test_a_draft_is_checked_in_one_call_and_taken_back(alone: Artifact) -> None:
    """Tokens behind the first wrong one are written again by the next call."""
    prompt, answer = [5, 6, 7], alone.generate([5, 6, 7], 8)
    list(answer)
    right = answer.tokens
    session = alone.decode_session()
    session.decode([prompt], [0])
    draft = [*right[:3], (right[3] + 1) % VOCABULARY, 9]
    guesses = session.decode([draft], [len(prompt)])[0].argmax(-1)
    agreed = next(i for i in range(3, 5) if guesses[i - 1] != draft[i])
    assert agreed == 3
    assert guesses[:3].tolist() == right[1:4]
    after = session.decode([right[3:5]], [len(prompt) + 3])[0].argmax(-1)
    assert after.tolist() == right[4:6]


@pytest.mark.slow
def test_texts_together_are_those_of_each_alone(alone: Artifact, together: Artifact) -> None:
    """Lengths are unequal, there are more texts than sequences, and one ends before the others."""
    expected = [alone.generate(prompt, 30) for prompt in PROMPTS]
    texts = ["".join(generation) for generation in expected]
    answers = together.generate(PROMPTS, 30)
    assert [answer.text for answer in answers] == texts
    assert [answer.tokens for answer in answers] == [each.tokens for each in expected]
    assert [answer.finish for answer in answers] == [each.finish for each in expected]
    assert "".join(together.generate(PROMPTS[0], 30)) == texts[0]
    assert [answer.text for answer in alone.generate(PROMPTS[:2], 30)] == texts[:2]


@pytest.mark.slow
def test_sequences_wait_and_take_over_from_others(alone: Artifact, together: Artifact) -> None:
    single, session = alone.decode_session(), together.decode_session()
    first = session.decode([[5, 6, 7], [8], [9, 9]], [0, 0, 0])
    single.decode([[5, 6, 7]], [0])
    np.testing.assert_array_equal(single.decode([[4]], [3])[0], session.decode([[4]], [3])[0])
    assert [rows.shape for rows in session.decode([[], [1]], [4, 1])] == [(0, 300), (1, 300)]
    single.decode([[9, 9]], [0])
    expected = single.decode([[2]], [2])[0]
    np.testing.assert_array_equal(session.decode([[], [], [2]], [0, 0, 2])[2], expected)
    session.reorder([2, 1, 0], kept=4)
    np.testing.assert_array_equal(session.decode([[2]], [2])[0], expected)
    assert len(first) == 3


@pytest.mark.slow
def test_long_prompts_together_are_read_in_pieces(
    alone: Artifact, together: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sequence's logits are those behind its own last token, whichever piece it is in."""
    prompts = [[*range(3, 15)], [7, 8], [], [9, 9, 9, 9, 9]]
    whole, pieces, single = together.decode_session(), together.decode_session(), alone
    expected = whole.decode(prompts[:3], [0, 4, 0]), whole.decode(prompts[1:], [12, 0, 2])
    every = single.decode_session().decode(prompts[:1], [0])
    monkeypatch.setattr(decode_session, "PIECE", 4)
    given = pieces.decode(prompts[:3], [0, 4, 0]), pieces.decode(prompts[1:], [12, 0, 2])
    for ours, theirs in zip([*given[0], *given[1]], [*expected[0], *expected[1]], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(single.decode_session().decode(prompts[:1], [0]), every)


@pytest.mark.slow
def test_what_sequences_cannot_do_is_refused(together: Artifact) -> None:
    session = together.decode_session()
    refused: list[tuple[list[list[int]], list[int], str]] = [
        ([[1]] * 4, [0] * 4, "4 sequences of tokens"),
        ([[1], [1]], [0], "2 sequences of tokens, 1 positions"),
        ([[], []], [0, 0], "no sequence has a token"),
        ([[1], [1, 2]], [0, 23], "do not fit into the context"),
        ([[1], [300]], [0, 0], "not in the vocabulary"),
    ]
    for tokens, positions, what in refused:
        with pytest.raises(UsageError, match=what):
            session.decode(tokens, positions)
    with pytest.raises(UsageError, match="stands before others"):
        session(np.array([[1, 1], [-1, 1], [1, 1]]), np.zeros(3, np.int64))
    with pytest.raises(UsageError, match="no order of 3"):
        session.reorder([0, 1])
