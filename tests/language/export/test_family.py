"""The order in which other programs have queries and keys."""

from __future__ import annotations

import numpy as np

from fewbit.language.export.family import interleave_halves
from fewbit.language.gguf_file import unpermute


def test_neighbours_rotate_as_halves_do() -> None:
    generator = np.random.default_rng(0)
    heads, width = 3, 8
    q, k = generator.standard_normal((2, heads * width))
    angles = generator.standard_normal(width // 2)

    def turn(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)

    def by_halves(x: np.ndarray) -> np.ndarray:
        rows = x.reshape(heads, width)
        return np.concatenate(turn(rows[:, : width // 2], rows[:, width // 2 :]), axis=1)

    def by_neighbours(x: np.ndarray) -> np.ndarray:
        rows = x.reshape(heads, width)
        return np.concatenate(turn(rows[:, ::2], rows[:, 1::2]), axis=1)

    ours = (by_halves(q) * k.reshape(heads, width)).sum(1)
    pairs = interleave_halves(k, heads).reshape(heads, width)
    theirs = by_neighbours(interleave_halves(q, heads))
    split = np.concatenate([pairs[:, ::2], pairs[:, 1::2]], axis=1)
    np.testing.assert_allclose((theirs * split).sum(1), ours, rtol=1e-12)
    matrix = generator.standard_normal((heads * width, 5))
    np.testing.assert_array_equal(unpermute(interleave_halves(matrix, heads), heads), matrix)
