"""Depthwise convolutions of bytes, on every processor that this machine can execute."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.kernels import IntegerDepthwise, Isa
from tests.kernels.convolution import Case, cases
from tests.kernels.integer.epilogue import Wanted, wanted
from tests.kernels.integer.images import check


@settings(max_examples=80)
@given(case=cases(st.integers(1, 150), depthwise=True), want=wanted(), seed=st.integers(0, 2**32))
def test_is_the_convolution(isa: Isa, case: Case, want: Wanted, seed: int) -> None:
    check(isa, case, want, IntegerDepthwise, seed)


@settings(max_examples=60)
@given(
    size=st.tuples(st.integers(1, 9), st.integers(1, 14), st.integers(40, 200)),
    steps=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    pad=st.tuples(*[st.integers(1, 2)] * 4),
    down=st.integers(1, 2),
    gap=st.sampled_from([0, 3]),
    want=wanted(),
    seed=st.integers(0, 2**32),
)
def test_three_by_three(
    isa: Isa,
    size: tuple[int, int, int],
    steps: tuple[int, int],
    pad: tuple[int, int, int, int],
    down: int,
    gap: int,
    want: Wanted,
    seed: int,
) -> None:
    """The kernel that most networks have; some processors have a tile of its own for it."""
    h, w, c = size
    h = max(h, 2 * down + 1 - pad[0] - pad[2])
    made = (want.bias, want.add, want.clamped)
    case = Case(2, h, w, c, c, 3, 3, steps, pad, (down, 1), 1, *made, gap)
    check(isa, case, want, IntegerDepthwise, seed)


def test_long_kernel_on_a_line(isa: Isa) -> None:
    case = Case(2, 1, 400, 3, 3, 1, 300, (1, 2), (0, 20, 0, 20), (1, 1), 1, True, True, False, 0)
    check(isa, case, Wanted("f32", True, True, False, False, 9), IntegerDepthwise, 0)
