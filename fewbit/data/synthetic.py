"""Made-up data that can be learnt, for where no real data is at hand.

Each class has a pattern of its own, drawn from the seed, and an example is that pattern disturbed.
A number measured on these says that something works, never how good it is on a real task. One
example in five is in the test part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbit.data.split import Split
from fewbit.errors import UsageError

TEST_SHARE = 5
NOISE = 0.5
COARSE = 4
TONES = 3
SUCCESSORS = 4


def synthetic_images(
    shape: tuple[int, int, int] = (1, 28, 28), classes: int = 10, n: int = 1000, seed: int = 0
) -> Split:
    """A pattern of blocks for each class, with noise; float32 [n, *shape]."""
    rng = _generator(classes, n, seed)
    channels, height, width = shape
    coarse = rng.standard_normal((classes, channels, COARSE, COARSE))
    rows = np.arange(height) * COARSE // height
    columns = np.arange(width) * COARSE // width
    patterns = coarse[:, :, rows[:, None], columns]
    labels = rng.integers(classes, size=n)
    images = patterns[labels] + NOISE * rng.standard_normal((n, *shape))
    return _split(images.astype(np.float32), labels)


def synthetic_audio(length: int = 8000, classes: int = 10, n: int = 1000, seed: int = 0) -> Split:
    """A chord of three tones for each class, at random phases, with noise; float32 [n, 1, length].

    At 8 kHz the tones lie between 200 and 2,000 Hz.
    """
    rng = _generator(classes, n, seed)
    tones = rng.uniform(200, 2000, (classes, TONES)) / 8000
    labels = rng.integers(classes, size=n)
    phases = rng.uniform(0, 1, (n, TONES))
    sound = NOISE * rng.standard_normal((n, length))
    for tone in range(TONES):
        turns = tones[labels, tone, None] * np.arange(length) + phases[:, tone, None]
        sound += np.sin(2 * np.pi * turns)
    return _split(sound[:, None].astype(np.float32) / TONES, labels)


def synthetic_tokens(
    length: int = 16, vocabulary: int = 512, n: int = 1000, seed: int = 0
) -> Split:
    """Text in which each token has four successors, one likelier than the rest together.

    `x` is tokens and `y` the token after each, both int64 [n, length].
    """
    rng = _generator(vocabulary, n, seed)
    successors = rng.integers(vocabulary, size=(vocabulary, SUCCESSORS))
    choices = rng.choice(SUCCESSORS, size=(length, n), p=(0.7, 0.1, 0.1, 0.1))
    tokens = np.empty((n, length + 1), dtype=np.int64)
    tokens[:, 0] = rng.integers(vocabulary, size=n)
    for place in range(length):
        tokens[:, place + 1] = successors[tokens[:, place], choices[place]]
    return _split(tokens[:, :-1], tokens[:, 1:])


def _generator(classes: int, n: int, seed: int) -> np.random.Generator:
    if classes < 2 or n < TEST_SHARE:
        raise UsageError(f"data need 2 classes and {TEST_SHARE} examples, not {classes} and {n}")
    return np.random.default_rng(seed)


def _split(x: NDArray[Any], y: NDArray[np.int64]) -> Split:
    test = len(x) // TEST_SHARE
    return Split(x[test:], y[test:], x[:test], y[:test])
