"""Products of bytes are exact, and their outputs have the bits that numpy gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fewbit.kernels import BitMatmul, IntegerMatmul, Isa
from fewbit.kernels.integer.fields import takes_unsigned
from tests.kernels.integer.epilogue import Epilogue, Outputs, Wanted, wanted
from tests.kernels.machine import address, compiled_integer, guarded, integer_call, on_threads
from tests.kernels.test_matmul import sizes

BARE = Wanted("i32", False, False, False, True, 1)


def check(
    isa: Isa, size: tuple[int, int, int], want: Wanted, seed: int, gap: int = 1, bits: int = 8
) -> None:
    kernel = IntegerMatmul(isa, want.output, bits, unsigned=want.unsigned)
    check_pair(kernel, size, want, seed, gap, 8, bits)


def check_pair(
    kernel: IntegerMatmul | BitMatmul,
    size: tuple[int, int, int],
    want: Wanted,
    seed: int,
    gap: int,
    x_bits: float,
    w_bits: float,
) -> None:
    """Rows of x and y are `gap` further apart than they must be."""
    m, n, k = size
    rng = np.random.default_rng(seed)
    x, weight = want.integers(rng, (m, k + gap), x_bits), want.weights(rng, (n, k), w_bits)
    epilogue = Epilogue(want, rng, (m, n + gap))
    packed, call = guarded(kernel.pack(weight)), integer_call(kernel)
    expected = epilogue.of(x[:, :k].astype(np.int64) @ weight.T.astype(np.int64))
    for threads in (1, 2, 3):
        y = Outputs(want, (m, n + gap))
        given = [address(x), k + gap, address(packed), *epilogue.scales()]
        given += [*y.arguments(epilogue), n + gap]
        on_threads(
            threads, lambda t, ts, given=given: call(*given, m, n, k, *epilogue.bounds, t, ts)
        )
        y.check(expected, slice(n))
        y.check_untouched(slice(n, None))


@settings(max_examples=80)
@given(size=sizes(), want=wanted(), seed=st.integers(0, 2**32), gap=st.integers(0, 2))
@example((200, 140, 4099), BARE, 0, 0)
@example((1, 1, 1), BARE, 0, 0)
def test_is_the_product(
    isa: Isa, size: tuple[int, int, int], want: Wanted, seed: int, gap: int
) -> None:
    check(isa, size, want, seed, gap)


@settings(max_examples=40)
@given(size=sizes(), want=wanted(), seed=st.integers(0, 2**32))
def test_without_negative_numbers(
    isa: Isa, size: tuple[int, int, int], want: Wanted, seed: int
) -> None:
    if takes_unsigned(isa, 8):
        check(isa, size, replace(want, unsigned=True), seed)


@pytest.mark.on_few
@settings(max_examples=80)
@given(
    size=sizes(),
    want=wanted(),
    bits=st.integers(1, 7),
    seed=st.integers(0, 2**32),
    gap=st.integers(0, 2),
)
@example((200, 140, 4099), BARE, 1, 0, 0)
@example((100, 70, 2111), BARE, 3, 0, 0)
@example((2, 70, 4099), BARE, 7, 0, 1)
@example((1, 1, 1), BARE, 1, 0, 0)
def test_few_bits(
    isa: Isa, size: tuple[int, int, int], want: Wanted, bits: int, seed: int, gap: int
) -> None:
    check(isa, size, want, seed, gap, bits)


def test_adds_in_place(isa: Isa) -> None:
    want = Wanted("f32", True, True, False, False, 5)
    rng = np.random.default_rng(0)
    x, weight = want.integers(rng, (50, 70)), want.integers(rng, (33, 70))
    epilogue = Epilogue(want, rng, (50, 33))
    (expected,) = epilogue.of(x.astype(np.int64) @ weight.T.astype(np.int64))
    assert epilogue.add is not None
    packed = IntegerMatmul(isa).pack(weight)
    given = [address(x), 70, address(packed), *epilogue.scales()]
    compiled_integer(isa)[IntegerMatmul, "f32"](
        *given, address(epilogue.add), 33, 50, 33, 70, *epilogue.bounds, 0, 1
    )
    assert np.array_equal(epilogue.add, expected)


def test_rounds_half_to_even(isa: Isa) -> None:
    x = np.arange(-6, 7, dtype=np.int8)[:, None].copy()
    weight, half = np.ones((1, 1), np.int8), np.array([0.5], np.float32)
    y = np.zeros((13, 1), np.int8)
    packed = IntegerMatmul(isa).pack(weight)
    compiled_integer(isa)[IntegerMatmul, "i8"](
        address(x), 1, address(packed), None, 1, address(half), None, None, address(y), 1, 13, 1, 1,
        -128.0, 127.0, 0, 1,
    )  # fmt: skip
    assert y.ravel().tolist() == [-3, -2, -2, -2, -1, 0, 0, 0, 1, 2, 2, 2, 3]


def test_what_is_absent_keeps_the_sign_of_zero(isa: Isa) -> None:
    x, weight = np.zeros((2, 4), np.int8), np.ones((3, 4), np.int8)
    scale, negative = np.ones(2, np.float32), np.full(3, -1, np.float32)
    y = np.ones((2, 3), np.float32)
    packed = IntegerMatmul(isa).pack(weight)
    compiled_integer(isa)[IntegerMatmul, "f32"](
        address(x), 4, address(packed), address(scale), 1, address(negative), None, None,
        address(y), 3, 2, 3, 4, -np.inf, np.inf, 0, 1,
    )  # fmt: skip
    assert np.signbit(y).all()
