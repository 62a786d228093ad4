"""Outputs with an activation or with magnitudes; plain ones are tested by kernel."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.kernels import BitMatmul, IntegerConv2d, IntegerDepthwise, IntegerMatmul, Isa
from fewbit.kernels.integer.output import ACTIVATED, LARGEST, PLAIN, Output, activation_of, plain
from tests.kernels.convolution import Case, cases
from tests.kernels.integer.epilogue import Wanted, wanted
from tests.kernels.integer.images import check as check_image
from tests.kernels.integer.test_matmul import check, check_pair
from tests.kernels.machine import SOME_OUTPUTS
from tests.kernels.test_matmul import sizes

SEEDS = st.integers(0, 2**32)


def test_names() -> None:
    assert [activation_of(output) for output in PLAIN] == [None] * len(PLAIN)
    assert [plain(output) for output in PLAIN] == list(PLAIN)
    assert {(plain(o), activation_of(o)) for o in ACTIVATED} == {
        (kind, name) for kind in ("f32", "steps") for name in ("silu", "gelu", "gelu_tanh")
    }


@pytest.mark.on_few
@settings(max_examples=40)
@given(size=sizes(), want=wanted((*ACTIVATED, LARGEST)), seed=SEEDS, gap=st.integers(0, 2))
def test_products(isa: Isa, size: tuple[int, int, int], want: Wanted, seed: int, gap: int) -> None:
    check(isa, size, want, seed, gap)


@pytest.mark.on_few
@settings(max_examples=30)
@given(case=cases(st.integers(1, 40)), want=wanted(SOME_OUTPUTS), seed=SEEDS)
def test_convolutions(isa: Isa, case: Case, want: Wanted, seed: int) -> None:
    check_image(isa, case, want, IntegerConv2d, seed)


@settings(max_examples=30)
@given(case=cases(st.integers(1, 150), depthwise=True), want=wanted(SOME_OUTPUTS), seed=SEEDS)
def test_depthwise_convolutions(isa: Isa, case: Case, want: Wanted, seed: int) -> None:
    check_image(isa, case, want, IntegerDepthwise, seed)


@pytest.mark.parametrize("output", SOME_OUTPUTS)
@settings(max_examples=10)
@given(size=sizes().filter(lambda size: size[2] > 0), add=st.booleans(), seed=SEEDS)
def test_few_bits(
    isa: Isa, output: Output, size: tuple[int, int, int], add: bool, seed: int
) -> None:
    want = Wanted(output, True, add, False, False, 3)
    check_pair(IntegerMatmul(isa, output, 4), size, want, seed, 0, 8, 4)
    check_pair(BitMatmul(isa, output), size, want, seed, 0, 1, 1)
