"""How near a quantized network comes to another: plain functions of arrays, computed in float64.

Logits have the vocabulary along the last dimension, and a result for each row. What is compared
with comes first. Logarithms are natural, so cross entropy and divergence are in nats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray[Any, Any]


def log_softmax(logits: ArrayLike) -> Array:
    """Return the logarithms of probabilities."""
    wide = np.asarray(logits, np.float64)
    shifted = wide - wide.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def cross_entropy(logits: ArrayLike, tokens: ArrayLike) -> Array:
    """Return how surprising each token is; the exponential of their mean is the perplexity."""
    chosen = np.asarray(tokens, np.int64)[..., None]
    return -np.take_along_axis(log_softmax(logits), chosen, axis=-1)[..., 0]


def kl_divergence(reference: ArrayLike, logits: ArrayLike) -> Array:
    """Return Σ p · (log p - log q), p the probabilities of the reference."""
    p, q = log_softmax(reference), log_softmax(logits)
    return (np.exp(p) * (p - q)).sum(axis=-1)


def top1_agreement(reference: ArrayLike, logits: ArrayLike) -> Array:
    """Return whether both have the same likeliest token."""
    return np.argmax(reference, axis=-1) == np.argmax(logits, axis=-1)


def cosine_similarity(reference: ArrayLike, given: ArrayLike) -> float:
    """Return the cosine of the angle between two arrays as vectors; of two zeros, 1."""
    a, b = (np.asarray(array, np.float64).reshape(-1) for array in (reference, given))
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    if lengths == 0:
        return float(not a.any() and not b.any())
    return float(a @ b / lengths)


def signal_to_noise(reference: ArrayLike, given: ArrayLike) -> float:
    """Return Σ reference² / Σ (reference - given)² in decibels; infinity where they are equal."""
    a, b = (np.asarray(array, np.float64) for array in (reference, given))
    signal, noise = float(np.square(a).sum()), float(np.square(a - b).sum())
    if noise == 0:
        return float("inf")
    return 10 * float(np.log10(signal / noise)) if signal else float("-inf")
