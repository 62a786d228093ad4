"""Plans are valid, and no larger than they must be in cases that are known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fewbit.passes.memory.arena import Buffer, lower_bound, overlaps, plan


@st.composite
def buffers(draw: st.DrawFn) -> list[Buffer]:
    def one() -> Buffer:
        first = draw(st.integers(0, 20))
        return Buffer(draw(st.integers(0, 1000)), first, first + draw(st.integers(0, 8)))

    return [one() for _ in range(draw(st.integers(0, 20)))]


@given(buffers(), st.sampled_from([1, 16, 64]))
def test_no_two_live_buffers_overlap(given_buffers: list[Buffer], alignment: int) -> None:
    made = plan(given_buffers, alignment)
    assert overlaps(given_buffers, made.offsets) == []
    assert all(offset % alignment == 0 for offset in made.offsets)
    ends = [o + b.size for o, b in zip(made.offsets, given_buffers, strict=True)]
    assert made.peak >= max(ends, default=0)
    assert made.peak >= lower_bound(given_buffers)
    assert made.peak <= sum(-(-b.size // alignment) * alignment for b in given_buffers)


@given(buffers())
def test_no_order_of_buffers_matters_for_validity(given_buffers: list[Buffer]) -> None:
    assert plan(given_buffers).peak == plan(list(given_buffers)).peak
    assert overlaps(given_buffers[::-1], plan(given_buffers[::-1]).offsets) == []


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=12))
def test_chain_needs_its_largest_pair(sizes: list[int]) -> None:
    """Layer after layer, where each reads what the one before wrote."""
    chain = [Buffer(size * 64, i, i + 1) for i, size in enumerate(sizes)]
    assert plan(chain).peak == lower_bound(chain)


def test_oracle_sees_what_is_wrong() -> None:
    pair = [Buffer(100, 0, 2), Buffer(50, 2, 3)]
    assert overlaps(pair, [0, 64]) == [(0, 1)]
    assert overlaps(pair, [0, 100]) == []
    assert overlaps([Buffer(100, 0, 1), Buffer(50, 2, 3)], [0, 64]) == []


def test_nothing_needs_nothing() -> None:
    assert plan([]).peak == 0
    assert lower_bound([]) == 0


def test_residual_connection() -> None:
    """x lives on while two layers run beside it."""
    block = [Buffer(640, 0, 3), Buffer(640, 1, 2), Buffer(640, 2, 3), Buffer(640, 3, 4)]
    assert plan(block).peak == lower_bound(block) == 3 * 640
