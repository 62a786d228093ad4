from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from fewbit.reduce.search import halves_first, search


def without_one(numbers: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for at in range(len(numbers)):
        yield numbers[:at] + numbers[at + 1 :]


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_what_is_left_is_what_fails(needed: set[int], others: set[int]) -> None:
    heard: list[int] = []
    smallest = search(
        tuple(sorted(needed | others)),
        without_one,
        lambda part: needed <= set(part),
        lambda part: heard.append(len(part)),
    )
    assert set(smallest) == needed
    assert heard == sorted(heard, reverse=True)


@given(st.integers(0, 100))
def test_halves_come_first(count: int) -> None:
    order = halves_first(count)
    assert sorted(order) == list(range(count))
    assert not order or order[0] == count // 2
