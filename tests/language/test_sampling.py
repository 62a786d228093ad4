"""Choosing tokens from logits."""

from __future__ import annotations

import numpy as np
import pytest

from fewbit.errors import UsageError
from fewbit.language.sampling import Sampler, likely_tokens

LOGITS = np.log(np.array([0.1, 0.5, 0.05, 0.35], np.float32))


def test_without_temperature_the_likeliest_is_taken() -> None:
    assert [Sampler().choose(LOGITS) for _ in range(3)] == [1, 1, 1]


def test_the_fewest_tokens_reach_the_share() -> None:
    tokens, chances = likely_tokens(LOGITS, 0.8)
    assert tokens.tolist() == [1, 3]
    np.testing.assert_allclose(chances, [0.5 / 0.85, 0.35 / 0.85], rtol=1e-6)
    assert likely_tokens(LOGITS, 0.4)[0].tolist() == [1]


def test_draws_follow_the_chances_and_the_seed() -> None:
    sampler, again = Sampler(1.0, seed=3), Sampler(1.0, seed=3)
    drawn = [sampler.choose(LOGITS) for _ in range(2000)]
    assert drawn == [again.choose(LOGITS) for _ in range(2000)]
    shares = np.bincount(drawn, minlength=4) / 2000
    np.testing.assert_allclose(shares, np.exp(LOGITS), atol=0.04)


def test_a_low_temperature_is_nearly_greedy() -> None:
    sampler = Sampler(0.02, seed=0)
    assert {sampler.choose(LOGITS) for _ in range(100)} == {1}


@pytest.mark.parametrize(
    ("temperature", "top_p"), [(-1, 1), (float("nan"), 1), (float("inf"), 1), (1, 0), (1, 1.5)]
)
def test_what_is_no_choice_is_refused(temperature: float, top_p: float) -> None:
    with pytest.raises(UsageError):
        Sampler(temperature, top_p)
