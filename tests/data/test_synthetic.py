"""Synthetic data: shapes, seeds, and patterns that depend on the class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from fewbit.data import Split, synthetic_audio, synthetic_images, synthetic_tokens
from fewbit.errors import UsageError

MAKERS: list[Callable[[int], Split]] = [
    lambda seed: synthetic_images(n=20, seed=seed),
    lambda seed: synthetic_audio(length=100, n=20, seed=seed),
    lambda seed: synthetic_tokens(n=20, seed=seed),
]


@pytest.mark.parametrize("make", MAKERS, ids=["images", "audio", "tokens"])
def test_the_seed_decides(make: Callable[[int], Split]) -> None:
    first, same, other = make(1), make(1), make(2)
    assert np.array_equal(first.train_x, same.train_x)
    assert np.array_equal(first.test_y, same.test_y)
    assert not np.array_equal(first.train_x, other.train_x)


def test_images_have_the_shape_asked_for() -> None:
    data = synthetic_images((3, 10, 6), classes=4, n=50)
    assert data.train_x.shape == (40, 3, 10, 6)
    assert data.test_x.shape == (10, 3, 10, 6)
    assert data.train_x.dtype == np.float32
    assert data.train_y.dtype == np.int64
    assert set(data.train_y.tolist()) == {0, 1, 2, 3}


def test_images_of_a_class_are_alike() -> None:
    data = synthetic_images(classes=3, n=300)
    means = np.stack([data.train_x[data.train_y == c].mean(0) for c in range(3)])
    nearest = ((data.test_x[:, None] - means) ** 2).sum((2, 3, 4)).argmin(1)
    assert (nearest == data.test_y).mean() > 0.95


def test_audio_of_a_class_has_its_spectrum_in_both_parts() -> None:
    data = synthetic_audio(length=800, classes=3, n=150)
    assert data.train_x.shape == (120, 1, 800)
    train, test = (np.abs(np.fft.rfft(x[:, 0])) for x in (data.train_x, data.test_x))
    means = np.stack([train[data.train_y == c].mean(0) for c in range(3)])
    nearest = ((test[:, None] - means) ** 2).sum(2).argmin(1)
    assert (nearest == data.test_y).mean() > 0.95


def test_each_token_is_followed_by_few() -> None:
    data = synthetic_tokens(length=20, vocabulary=10, n=500)
    assert data.train_x.shape == data.train_y.shape == (400, 20)
    assert np.array_equal(data.train_x[:, 1:], data.train_y[:, :-1])
    for token in range(10):
        after = Counter(map(int, data.train_y[data.train_x == token]))
        assert len(after) <= 4
        assert after.most_common(1)[0][1] / after.total() > 0.6


@pytest.mark.parametrize(("classes", "n"), [(1, 100), (10, 4)])
def test_too_little_is_refused(classes: int, n: int) -> None:
    with pytest.raises(UsageError, match="need 2 classes and 5 examples"):
        synthetic_images(classes=classes, n=n)
