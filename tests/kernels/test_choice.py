"""Every pair of widths, by the kernel that is chosen for it: exact on every processor."""

from __future__ import annotations

from itertools import product

import pytest

from fewbit.kernels import BitConv2d, BitMatmul, IntegerConv2d, IntegerMatmul, Isa
from fewbit.kernels.choice import integer_conv2d, integer_matmul
from tests.kernels.conftest import HOST, RUNNABLE
from tests.kernels.convolution import Case
from tests.kernels.integer import images, test_matmul
from tests.kernels.integer.conftest import STAND_INS, stand_in
from tests.kernels.integer.epilogue import Wanted

TERNARY = 1.58
WIDTHS = (1, TERNARY, *range(2, 9))
PAIRS = list(product(WIDTHS, WIDTHS))
SUMS = Wanted("i32", False, False, False, False, 1)
LOWEST = Wanted("i32", False, False, False, True, 1)
SIZES = [(5, 37, 99), (1, 17, 64)]
MORE_SIZES = [(1, 1, 1), (3, 70, 31), (13, 64, 128), (40, 5, 257), (9, 133, 1030)]
CASES = [Case(1, 4, 5, 34, 19, 3, 2, (1, 2), (1, 1, 1, 0), (1, 1), 1, False, False, False, 0)]
MORE_CASES = [
    Case(2, 5, 4, 3, 40, 3, 3, (1, 1), (1, 1, 1, 1), (1, 1), 1, False, False, False, 0),
    Case(1, 6, 6, 64, 33, 1, 1, (2, 1), (0, 0, 0, 0), (1, 1), 2, False, False, False, 3),
    Case(1, 9, 7, 96, 8, 2, 3, (1, 1), (2, 1, 0, 2), (3, 2), 1, False, False, False, 0),
]


def check(isa: Isa, sizes: list[tuple[int, int, int]], cases: list[Case], want: Wanted) -> None:
    for x, w in PAIRS:
        widths = (2 if x == TERNARY else int(x), 2 if w == TERNARY else int(w))
        for size in sizes:
            kernel = integer_matmul(isa, "i32", *widths, size[2])
            test_matmul.check_pair(kernel, size, want, 0, 1, x, w)
        for case in cases:
            taps = (case.c, case.kh, case.kw)
            rows = (case.stride[0], case.dilation[0])
            image = integer_conv2d(isa, "i32", *widths, taps, case.w, *rows)
            images.check_pair(image, case, want, 0, x, w)


@pytest.mark.parametrize("name", [HOST, STAND_INS[-1]])
def test_every_pair(name: str) -> None:
    check(stand_in(name), SIZES, CASES, SUMS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*RUNNABLE, "host", *STAND_INS])
def test_every_pair_in_more_sizes(name: str) -> None:
    check(stand_in(name), MORE_SIZES, MORE_CASES, SUMS)
    check(stand_in(name), SIZES, CASES, LOWEST)


def test_bits_are_counted_where_that_is_faster() -> None:
    def chosen(name: str, x: int, w: int, k: int = 256) -> type:
        return type(integer_matmul(Isa.of(name), "f32", x, w, k))

    assert chosen("x86-64-v4-popcnt", 1, 1) is chosen("x86-64-v4-popcnt", 1, 2) is BitMatmul
    assert chosen("x86-64-v4-popcnt", 2, 2) is chosen("x86-64-v4-vnni", 1, 1) is IntegerMatmul
    assert chosen("x86-64-v3", 1, 1) is chosen("aarch64-dotprod", 1, 1) is BitMatmul
    assert chosen("aarch64-dotprod", 2, 1) is chosen("x86-64-v3", 1, 8) is IntegerMatmul
    assert chosen("x86-64-v3", 1, 1, 31) is chosen("x86-64-v3", 1, 1, 33) is IntegerMatmul
    assert chosen("x86-64-v3", 1, 1, 1 << 20) is IntegerMatmul


def test_an_image_must_be_of_known_width_and_fit() -> None:
    def chosen(c: int, width: int) -> type:
        return type(integer_conv2d(Isa.of("x86-64-v3"), "f32", 1, 1, (c, 3, 3), width))

    assert chosen(64, 56) is BitConv2d
    assert chosen(64, -1) is chosen(64, 5000) is chosen(16, 56) is IntegerConv2d
