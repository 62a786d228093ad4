"""Measures of how near two networks are, beside PyTorch and by their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from fewbit.numerics.fidelity import (
    cosine_similarity,
    cross_entropy,
    kl_divergence,
    log_softmax,
    signal_to_noise,
    top1_agreement,
)

RNG = np.random.default_rng(0)
REFERENCE, LOGITS = (RNG.standard_normal((5, 40)).astype(np.float32) * 6 for _ in range(2))
TOKENS = RNG.integers(0, 40, 5)


def test_the_measures_of_logits_are_those_of_pytorch() -> None:
    p, q = (torch.tensor(each).double() for each in (REFERENCE, LOGITS))
    surprise = F.cross_entropy(q, torch.tensor(TOKENS), reduction="none")
    np.testing.assert_allclose(cross_entropy(LOGITS, TOKENS), surprise, rtol=1e-12)
    kl = F.kl_div(q.log_softmax(-1), p.log_softmax(-1), reduction="none", log_target=True).sum(-1)
    np.testing.assert_allclose(kl_divergence(REFERENCE, LOGITS), kl, rtol=1e-12)
    same = (p.argmax(-1) == q.argmax(-1)).numpy()
    np.testing.assert_array_equal(top1_agreement(REFERENCE, LOGITS), same)


def test_large_logits_do_not_overflow() -> None:
    np.testing.assert_allclose(log_softmax([1e4, 1e4]), np.log([0.5, 0.5]))
    assert kl_divergence([3e4, 0], [3e4, 1]) == 0


def test_a_model_does_not_differ_from_itself() -> None:
    assert (kl_divergence(LOGITS, LOGITS) == 0).all()
    assert top1_agreement(LOGITS, LOGITS).all()
    assert cosine_similarity(LOGITS, LOGITS) == pytest.approx(1)
    assert signal_to_noise(LOGITS, LOGITS) == float("inf")


def test_cosine_and_noise() -> None:
    assert cosine_similarity([1, 0], [1, 1]) == pytest.approx(0.5**0.5)
    assert cosine_similarity([1, 2], [-2, -4]) == pytest.approx(-1)
    assert cosine_similarity([0, 0], [0, 0]) == 1
    assert cosine_similarity([0, 0], [1, 0]) == 0
    assert signal_to_noise([10, 0], [10, 1]) == pytest.approx(20)
    assert signal_to_noise([0], [1]) == float("-inf")
