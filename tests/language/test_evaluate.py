"""Windows of a text, and what is counted of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp

import numpy as np
import pytest

from fewbit.errors import StoreError, UsageError
from fewbit.language.evaluate import Array, cut_windows, score_text
from fewbit.numerics.fidelity import cross_entropy, kl_divergence

VOCABULARY = 11


def table(seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((VOCABULARY, VOCABULARY))


def test_windows_are_whole_unless_there_is_but_one() -> None:
    text = list(range(10))
    assert [w.tokens for w in cut_windows(text, 4)] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert [w.tokens for w in cut_windows(text, 4, windows=1)] == [(0, 1, 2, 3)]
    assert [w.tokens for w in cut_windows(text, 16, windows=3)] == [tuple(text)]


def test_each_window_begins_as_a_text_does() -> None:
    (first, second) = cut_windows([1, 2, 3, 4, 5], 3, prefix=[9])
    assert first.tokens == (9, 1, 2)
    assert second.tokens == (9, 3, 4)
    assert first.skip == 1  # What stands behind the prefix is predicted.
    assert cut_windows([1, 2, 3, 4], 4, prefix=[8, 9])[0].skip == 2


def test_too_little_is_refused() -> None:
    with pytest.raises(UsageError, match="too short: nothing"):
        cut_windows([3], 8)
    with pytest.raises(UsageError, match="window of 2 tokens"):
        cut_windows([1, 2, 3], 2, prefix=[9])


def test_scores_are_means_over_predicted_tokens() -> None:
    """A model that looks at the last token only, so that all windows can be computed at once."""
    ours, other = table(0), table(1)
    text = np.random.default_rng(2).integers(0, VOCABULARY, 24)
    steps: list[int] = []
    score = score_text(
        cut_windows(text.tolist(), 8),
        lambda tokens: ours[list(tokens)],
        lambda tokens: other[list(tokens)],
        lambda: steps.append(1),
    )
    given = np.concatenate([text[i : i + 7] for i in (0, 8, 16)])
    wanted = np.concatenate([text[i + 1 : i + 8] for i in (0, 8, 16)])
    assert score.tokens == len(steps) == 21
    assert score.perplexity == pytest.approx(exp(cross_entropy(ours[given], wanted).mean()))
    assert score.against is not None
    assert score.against.perplexity == pytest.approx(
        exp(cross_entropy(other[given], wanted).mean())
    )
    assert score.against.kl == pytest.approx(kl_divergence(other[given], ours[given]).mean())
    same = ours[given].argmax(-1) == other[given].argmax(-1)
    assert score.against.top1 == pytest.approx(same.mean())


def test_a_prefix_of_several_tokens_is_not_predicted() -> None:
    def predict(tokens: Sequence[int]) -> Iterator[Array]:
        for token in tokens:
            yield np.full(VOCABULARY, np.float32(token))

    score = score_text(cut_windows([1, 2, 3], 5, prefix=[7, 8]), predict)
    assert score.tokens == 3
    assert score.perplexity == pytest.approx(VOCABULARY)
    assert score.against is None


def test_what_is_no_number_is_told() -> None:
    with pytest.raises(StoreError, match="no numbers"):
        score_text(cut_windows([1, 2, 3], 3), lambda tokens: [np.full(VOCABULARY, np.nan)] * 2)
