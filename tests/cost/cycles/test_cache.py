"""What a cache misses, against one that is simulated line by line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fewbit.cost.cycles.cache import LINE, Cache


@given(st.integers(1, 3), st.integers(1, 40))
def test_a_buffer_read_in_a_circle(ways: int, lines: int) -> None:
    cache = Cache(ways, sets=8)
    missed = _simulate(cache, list(range(lines)))
    assert abs(cache.missed(lines * LINE) * lines - missed) < 1e-9 or lines > 8 * (ways + 1)
    assert missed == lines or lines <= 8 * (ways + 1)


@given(st.integers(1, 2), st.integers(1, 60), st.integers(1, 40))
def test_a_column(ways: int, count: int, words: int) -> None:
    cache = Cache(ways, sets=8)
    lines = sorted({position * words * 4 // LINE for position in range(count)})
    missed = _simulate(cache, lines)
    assert abs(cache.missed_column(count, words * 4) * len(lines) - missed) < 1e-9


def test_what_fits_is_never_missed() -> None:
    assert Cache(2).size == 8192
    assert Cache(2).missed(8192) == 0
    assert Cache(1).missed(4096 + 64) == 2 * 64 / 4160


def _simulate(cache: Cache, lines: list[int]) -> int:
    """Return misses of a second round over these lines."""
    sets: list[list[int]] = [[] for _ in range(cache.sets)]
    missed = 0
    for turn in range(2):
        for line in lines:
            held = sets[line % cache.sets]
            if line in held:
                held.remove(line)
            elif turn:
                missed += 1
            held.append(line)
            del held[: -cache.ways]
    return missed
