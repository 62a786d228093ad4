"""The quality of a language model on a text: perplexity, and how near it comes to a reference.

The tokens of a text are cut into windows, each read from an empty context, and every token of a
window is predicted from those before it. What predicts is any function from a window to rows of
logits; rows are taken one by one and not kept, so a large vocabulary needs no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np

from fewbit.errors import StoreError, UsageError
from fewbit.numerics.fidelity import cross_entropy, kl_divergence, top1_agreement

Array = np.ndarray[Any, Any]
Predict = Callable[[Sequence[int]], Iterable[Array]]
"""From tokens to the logits behind each of them."""
WINDOW = 512
SMALLEST = 2
"""The shortest window in which something is predicted."""


@dataclass(frozen=True)
class Divergence:
    """How far a model is from its reference."""

    perplexity: float
    """That of the reference, on the same tokens."""
    kl: float
    """The mean Kullback-Leibler divergence of a token, in nats."""
    top1: float
    """The share of tokens where both have the same likeliest one."""


@dataclass(frozen=True)
class TextScore:
    tokens: int
    """How many tokens were predicted."""
    perplexity: float
    against: Divergence | None = None


@dataclass(frozen=True)
class Window:
    tokens: tuple[int, ...]
    skip: int = 1
    """How many tokens at the beginning are not predicted."""


def cut_windows(
    tokens: Sequence[int], window: int, windows: int | None = None, prefix: Sequence[int] = ()
) -> list[Window]:
    """Return the first `windows` windows of a text, each behind `prefix`, what a text begins with.

    A remainder that fills no window is left out, unless it is all there is.
    """
    size = window - len(prefix)
    if size < SMALLEST:
        raise UsageError(f"a window of {window} tokens is too short")
    whole = len(tokens) // size
    count = max(whole if windows is None else min(whole, windows), 1)
    parts = [tuple(tokens[i * size : (i + 1) * size]) for i in range(count)]
    if len(parts[0]) < SMALLEST:
        raise UsageError("the text is too short: nothing in it can be predicted")
    return [Window((*prefix, *part), max(len(prefix), 1)) for part in parts]


def score_text(
    windows: Iterable[Window],
    predict: Predict,
    reference: Predict | None = None,
    step: Callable[[], None] = lambda: None,
) -> TextScore:
    """Return what a model makes of a text, and a reference beside it; `step` is called by token."""
    surprise: list[float] = []
    expected: list[float] = []
    kl: list[float] = []
    same: list[bool] = []
    for window in windows:
        rows = _predicted(window, predict)
        others = None if reference is None else _predicted(window, reference)
        for token, logits in rows:
            surprise.append(float(cross_entropy(logits, token)))
            if others is not None:
                _, other = next(others)
                expected.append(float(cross_entropy(other, token)))
                kl.append(float(kl_divergence(other, logits)))
                same.append(bool(top1_agreement(other, logits)))
            step()
    against = None
    if reference is not None:
        against = Divergence(_perplexity(expected), float(np.mean(kl)), float(np.mean(same)))
    return TextScore(len(surprise), _perplexity(surprise), against)


def _predicted(window: Window, predict: Predict) -> Iterator[tuple[int, Array]]:
    """Yield each token that is predicted, and the logits that predict it."""
    for position, logits in enumerate(predict(window.tokens[:-1]), start=1):
        row = np.asarray(logits).reshape(-1)
        if not np.isfinite(row).all():
            raise StoreError("the model gave logits that are no numbers")
        if position >= window.skip:
            yield window.tokens[position], row


def _perplexity(surprise: Sequence[float]) -> float:
    return exp(float(np.mean(surprise)))
