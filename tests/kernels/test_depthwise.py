"""Depthwise convolutions, on every processor that this machine can execute."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.kernels import Depthwise, Isa
from tests.kernels.convolution import Case, cases, check


@settings(max_examples=80)
@given(case=cases(st.integers(1, 150), depthwise=True), seed=st.integers(0, 2**32))
def test_is_the_convolution(isa: Isa, case: Case, seed: int) -> None:
    check(isa, case, Depthwise, seed)


def test_long_kernel_on_a_line(isa: Isa) -> None:
    case = Case(2, 1, 400, 3, 3, 1, 300, (1, 2), (0, 20, 0, 20), (1, 1), 1, True, True, False, 0)
    check(isa, case, Depthwise, 0)
