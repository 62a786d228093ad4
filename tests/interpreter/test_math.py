"""math against the standard library and exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import InterpretError
from fewbit.interpreter import floats
from tests.interpreter.programs import apply, f32

FUNCTIONS: dict[str, tuple[Callable[[float], float], tuple[float, float]]] = {
    "acos": (math.acos, (-1, 1)),
    "acosh": (math.acosh, (1, 50)),
    "asin": (math.asin, (-1, 1)),
    "asinh": (math.asinh, (-50, 50)),
    "atan": (math.atan, (-50, 50)),
    "atanh": (math.atanh, (-0.99, 0.99)),
    "cbrt": (lambda x: math.copysign(abs(x) ** (1 / 3), x), (-9, 9)),
    "cos": (math.cos, (-9, 9)),
    "cosh": (math.cosh, (-9, 9)),
    "erf": (math.erf, (-4, 4)),
    "erfc": (math.erfc, (-4, 9)),
    "exp": (math.exp, (-80, 80)),
    "exp2": (lambda x: 2.0**x, (-80, 80)),
    "expm1": (math.expm1, (-9, 9)),
    "log": (math.log, (1e-9, 1e9)),
    "log10": (math.log10, (1e-9, 1e9)),
    "log1p": (math.log1p, (-0.9, 9)),
    "log2": (math.log2, (1e-9, 1e9)),
    "rsqrt": (lambda x: 1 / math.sqrt(x), (1e-9, 1e9)),
    "sin": (math.sin, (-9, 9)),
    "sinh": (math.sinh, (-9, 9)),
    "sqrt": (math.sqrt, (0, 1e9)),
    "tan": (math.tan, (-1.5, 1.5)),
    "tanh": (math.tanh, (-9, 9)),
}


WITHOUT_FORMULA = ("acosh", "asinh", "sqrt")
"""What processors or libraries compute: rounded once."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float_function_is_near_the_true_value(name: str) -> None:
    """Formulas are those of targets; tests/numerics/approximations has their errors, one by one."""
    compute, (low, high) = FUNCTIONS[name]
    numbers = np.random.default_rng(3).uniform(low, high, 200).astype(np.float32)
    given = apply(f"math.{name}", ["f32"], "f32", numbers)
    wanted = np.array([compute(float(x)) for x in numbers])
    assert given.dtype == np.float32
    np.testing.assert_allclose(given, wanted, 5e-7, 1e-7 if name in ("cos", "sin") else 0)
    if name in WITHOUT_FORMULA:
        np.testing.assert_array_max_ulp(given, wanted.astype(np.float32), maxulp=1)
        assert np.mean(given == wanted.astype(np.float32)) > 0.98


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_float64_are_those_of_the_library(name: str) -> None:
    compute, (low, high) = FUNCTIONS[name]
    numbers = np.random.default_rng(4).uniform(low, high, 200)
    given = apply(f"math.{name}", ["f64"], "f64", numbers)
    np.testing.assert_allclose(given, [compute(float(x)) for x in numbers], 1e-14)


def test_erf_is_accurate_in_float64_everywhere() -> None:
    rng = np.random.default_rng(0)
    numbers = np.concatenate(
        [
            rng.uniform(-6.5, 6.5, 20000),
            10.0 ** rng.uniform(-300, 1, 5000),
            np.arange(0, 6, 1 / 128),
            [0.0, -0.0, math.inf, -math.inf, 30.0, 5e-324],
        ]
    )
    given = floats.erf(numbers)
    wanted = np.array([math.erf(x) for x in numbers])
    np.testing.assert_allclose(given, wanted, rtol=4e-16, atol=0)
    assert np.array_equal(np.signbit(given), np.signbit(numbers))
    assert np.isnan(floats.erf(np.array([math.nan])))[0]


TIES = [0.5, -0.5, 1.5, -1.5, 2.5, 0.49999997, -0.3, 8388609.0, 1e20]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("round", [1, -1, 2, -2, 3, 0, -0.0, 8388609.0, 1e20]),
        ("roundeven", [0, -0.0, 2, -2, 2, 0, -0.0, 8388609.0, 1e20]),
        ("trunc", [0, -0.0, 1, -1, 2, 0, -0.0, 8388609.0, 1e20]),
        ("ceil", [1, -0.0, 2, -1, 3, 1, -0.0, 8388609.0, 1e20]),
        ("floor", [0, -1, 1, -2, 2, 0, -1, 8388609.0, 1e20]),
        ("absf", [abs(x) for x in TIES]),
    ],
)
def test_rounding(name: str, expected: list[float]) -> None:
    given = apply(f"math.{name}", ["f32"], "f32", TIES)
    assert given.tolist() == f32(expected).tolist()
    assert np.array_equal(np.signbit(given), np.signbit(f32(expected)))


def test_rounding_in_the_smaller_floats() -> None:
    assert apply("math.round", ["f16"], "f16", [0.5, 2.5]).tolist() == [1, 3]
    assert apply("math.roundeven", ["f16"], "f16", [0.5, 2.5]).tolist() == [0, 2]


def exact_fma(a: float, b: float, c: float, dtype: Any) -> float:
    """The rounded value, found among the neighbours of a first guess."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    guess = dtype(float(exact))
    around = [np.nextafter(guess, dtype(-np.inf)), guess, np.nextafter(guess, dtype(np.inf))]

    def distance(x: Any) -> tuple[Fraction, int]:
        bits = int(x.view({4: np.int32, 8: np.int64}[x.itemsize]))
        return abs(Fraction(float(x)) - exact), bits & 1

    return float(min(around, key=distance))


@settings(max_examples=60)
@given(st.tuples(*[st.floats(-1e6, 1e6, width=32)] * 3))
def test_fma_rounds_once(numbers: tuple[float, float, float]) -> None:
    columns = [[n] for n in numbers]
    assert apply("math.fma", ["f32"] * 3, "f32", *columns)[0] == exact_fma(*numbers, np.float32)
    assert apply("math.fma", ["f64"] * 3, "f64", *columns)[0] == exact_fma(*numbers, np.float64)


def test_fma_where_two_roundings_would_differ() -> None:
    # The product is just above a tie of float32, by less than float64 can hold in the sum.
    a, b, c = 1 + 2.0**-12, 1 + 2.0**-12, 2.0**-60
    exact = exact_fma(a, b, c, np.float32)
    assert exact != float(np.float32(a * b + c))
    assert apply("math.fma", ["f32"] * 3, "f32", [a], [b], [c])[0] == exact


def test_powers() -> None:
    given = apply("math.powf", ["f32", "f32"], "f32", [2, -8, -8, 0, 1], [10, 3, 0.5, 0, math.nan])
    assert np.array_equal(given, f32([1024, -512, math.nan, 1, 1]), equal_nan=True)
    given = apply("math.fpowi", ["f32", "i64"], "f32", [3, -2, 2], [3, 3, -2])
    assert given.tolist() == [27, -8, 0.25]
    given = apply("math.ipowi", ["i8", "i8"], "i8", [3, -1, -1, 1, 2, 2], [5, -3, -2, -9, -1, 7])
    assert given.tolist() == [-13, -1, 1, 1, 0, -128]
    with pytest.raises(InterpretError, match="negative power of zero"):
        apply("math.ipowi", ["i8", "i8"], "i8", [0], [-1])


@settings(max_examples=30)
@given(
    width=st.sampled_from([1, 3, 8, 16, 31, 64]),
    numbers=st.lists(st.integers(0, (1 << 64) - 1), min_size=1),
)
def test_bit_counts(width: int, numbers: list[int]) -> None:
    numbers = [n & ((1 << width) - 1) for n in numbers] + [0]
    signed = [n - (1 << width) if n >> (width - 1) and width > 1 else n for n in numbers]
    mask = (1 << width) - 1

    def counts(name: str) -> list[int]:
        given = apply(f"math.{name}", [f"i{width}"], f"i{width}", signed)
        return [int(x) & mask for x in given]

    assert counts("ctpop") == [n.bit_count() & mask for n in numbers]
    assert counts("ctlz") == [(width - n.bit_length()) & mask for n in numbers]
    trailing = [((n & -n).bit_length() - 1 if n else width) for n in numbers]
    assert counts("cttz") == [t & mask for t in trailing]


def test_absi_wraps_at_the_smallest_integer() -> None:
    assert apply("math.absi", ["i8"], "i8", [-128, -5, 7]).tolist() == [-128, 5, 7]


def test_other_functions_of_two_floats() -> None:
    given = apply("math.atan2", ["f32", "f32"], "f32", [1, -1, 0], [1, -1, -1])
    assert given.tolist() == f32([math.pi / 4, -3 * math.pi / 4, math.pi]).tolist()
    assert apply("math.copysign", ["f32", "f32"], "f32", [1, 2], [-0.0, 5]).tolist() == [-1, 2]


def test_clamp_and_classification() -> None:
    given = apply("math.clampf", ["f32"] * 3, "f32", [5, -5, 0.5], [0, 0, 0], [1, 1, 1])
    assert given.tolist() == [1, 0, 0.5]
    numbers = [1.0, math.inf, math.nan]
    assert apply("math.isnan", ["f32"], "i1", numbers).tolist() == [False, False, True]
    assert apply("math.isinf", ["f32"], "i1", numbers).tolist() == [False, True, False]
    assert apply("math.isfinite", ["f32"], "i1", numbers).tolist() == [True, False, False]
