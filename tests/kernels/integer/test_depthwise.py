"""Depthwise convolutions of bytes, on every processor that this machine can execute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import UnsupportedError
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


STEPS = wanted(("steps",))


@settings(max_examples=40)
@given(
    case=cases(st.integers(1, 150), depthwise=True),
    want=STEPS,
    bits=st.integers(1, 7),
    seed=st.integers(0, 2**32),
)
def test_few_bits(isa: Isa, case: Case, want: Wanted, bits: int, seed: int) -> None:
    check(isa, case, want, IntegerDepthwise, seed, bits)


@settings(max_examples=20)
@given(
    c=st.sampled_from([64, 200, 1023, 1088, 2100]),
    want=STEPS,
    bits=st.integers(1, 8),
    seed=st.integers(0, 2**32),
)
def test_blocks_of_channels(isa: Isa, c: int, want: Wanted, bits: int, seed: int) -> None:
    """More channels of 3x3 kernels than there is room for at once."""
    case = Case(1, 5, 6, c, c, 3, 3, (1, 1), (1, 1, 1, 1), (1, 1), 1, True, True, False, 0)
    check(isa, case, want, IntegerDepthwise, seed, bits)


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize(("c", "kh", "kw"), [(1, 1, 1), (70, 3, 3), (2100, 3, 3), (65, 12, 12)])
def test_pack_is_undone(isa: Isa, bits: int, c: int, kh: int, kw: int) -> None:
    kernel, rng = IntegerDepthwise(isa, "f32", bits), np.random.default_rng(0)
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)
    weight = rng.integers(low, high, (c, 1, kh, kw)).astype(np.int8)
    weight = np.where(weight < 0, -1, 1).astype(np.int8) if bits == 1 else weight
    packed = kernel.pack(weight)
    assert np.array_equal(kernel.unpack(packed, c, kh, kw), weight)
    unit = 8 * isa.lanes * isa.step
    blocks = 1 + c * kh * kw // 9000
    assert packed.nbytes <= weight.size * bits / 8 + (blocks * unit if bits < 8 else kh * kw * 15)


def test_kernels_that_do_not_fit_stay_bytes() -> None:
    kernel = IntegerDepthwise(Isa.of("x86-64-v3"), "f32", 4)
    assert kernel.fits(12, 12)
    assert not kernel.fits(13, 12)
    with pytest.raises(UnsupportedError, match="13x12"):
        kernel.pack(np.ones((3, 1, 13, 12), np.int8))


@pytest.mark.on_few
def test_long_kernel_on_a_line(isa: Isa) -> None:
    case = Case(2, 1, 400, 3, 3, 1, 300, (1, 2), (0, 20, 0, 20), (1, 1), 1, True, True, False, 0)
    check(isa, case, Wanted("f32", True, True, False, False, 9), IntegerDepthwise, 0)
