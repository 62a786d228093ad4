"""arith against Python's integers and fractions, for every width."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import InterpretError
from tests.interpreter.programs import apply, f32, run

WIDTHS = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 33, 63, 64])


def to_signed(number: int, width: int) -> int:
    number &= (1 << width) - 1
    return number - (1 << width) if number >> (width - 1) else number


def to_unsigned(number: int, width: int) -> int:
    return number & ((1 << width) - 1)


def truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


Pair = Callable[[int, int, int], int]


def on_signed(compute: Callable[[int, int], int]) -> Pair:
    return lambda a, b, w: compute(to_signed(a, w), to_signed(b, w))


def on_unsigned(compute: Callable[[int, int], int]) -> Pair:
    return lambda a, b, w: compute(to_unsigned(a, w), to_unsigned(b, w))


EXPECTED: dict[str, Pair] = {
    "addi": on_signed(lambda a, b: a + b),
    "subi": on_signed(lambda a, b: a - b),
    "muli": on_signed(lambda a, b: a * b),
    "andi": on_signed(lambda a, b: a & b),
    "ori": on_signed(lambda a, b: a | b),
    "xori": on_signed(lambda a, b: a ^ b),
    "minsi": on_signed(min),
    "maxsi": on_signed(max),
    "minui": on_unsigned(min),
    "maxui": on_unsigned(max),
    "divsi": on_signed(truncated),
    "divui": on_unsigned(lambda a, b: a // b),
    "floordivsi": on_signed(lambda a, b: a // b),
    "ceildivsi": on_signed(lambda a, b: -(-a // b)),
    "ceildivui": on_unsigned(lambda a, b: -(-a // b)),
    "remsi": on_signed(lambda a, b: a - b * truncated(a, b)),
    "remui": on_unsigned(lambda a, b: a % b),
    "shli": lambda a, b, w: a << to_unsigned(b, w) if to_unsigned(b, w) < w else 0,
    "shrui": lambda a, b, w: to_unsigned(a, w) >> to_unsigned(b, w),
    "shrsi": lambda a, b, w: to_signed(a, w) >> min(to_unsigned(b, w), w - 1),
}
DIVISIONS = {"divsi", "divui", "floordivsi", "ceildivsi", "ceildivui", "remsi", "remui"}


def wrap_to_width(numbers: list[int], width: int) -> list[int]:
    return [to_unsigned(n, 1) if width == 1 else to_signed(n, width) for n in numbers]


@pytest.mark.parametrize("name", EXPECTED)
@settings(max_examples=8)
@given(data=st.data(), width=WIDTHS)
def test_integer_op_is_twos_complement(name: str, data: st.DataObject, width: int) -> None:
    edges = [0, 1, -1, 2, width, width - 1, 1 << (width - 1), (1 << (width - 1)) - 1]
    number = st.one_of(st.sampled_from(edges), st.integers(0, (1 << width) - 1))
    pairs = data.draw(st.lists(st.tuples(number, number), min_size=1, max_size=20))
    if name in DIVISIONS:
        pairs = [(a, b) for a, b in pairs if to_unsigned(b, width)] or [(1, 1)]
    lhs, rhs = ([pair[i] for pair in pairs] for i in (0, 1))
    type = f"i{width}"
    given = apply(
        f"arith.{name}", [type, type], type, wrap_to_width(lhs, width), wrap_to_width(rhs, width)
    )
    wanted = [EXPECTED[name](a, b, width) for a, b in pairs]
    assert given.astype(object).tolist() == wrap_to_width(wanted, width)


@pytest.mark.parametrize("name", sorted(DIVISIONS))
def test_division_by_zero_is_an_error(name: str) -> None:
    with pytest.raises(InterpretError, match=f"arith.{name}.*divides by zero"):
        apply(f"arith.{name}", ["i32", "i32"], "i32", [4, 1], [2, 0])


COMPARISONS: dict[int, tuple[Callable[[int, int], bool], bool]] = {
    0: (lambda a, b: a == b, True), 1: (lambda a, b: a != b, True),
    2: (lambda a, b: a < b, True), 3: (lambda a, b: a <= b, True),
    4: (lambda a, b: a > b, True), 5: (lambda a, b: a >= b, True),
    6: (lambda a, b: a < b, False), 7: (lambda a, b: a <= b, False),
    8: (lambda a, b: a > b, False), 9: (lambda a, b: a >= b, False),
}  # fmt: skip


@pytest.mark.parametrize("predicate", COMPARISONS)
@settings(max_examples=6)
@given(data=st.data(), width=WIDTHS)
def test_cmpi(predicate: int, data: st.DataObject, width: int) -> None:
    number = st.integers(0, (1 << width) - 1)
    pairs = data.draw(st.lists(st.tuples(number, number), min_size=1, max_size=20))
    compare, signed = COMPARISONS[predicate]
    view = to_signed if signed else to_unsigned
    lhs, rhs = (wrap_to_width([pair[i] for pair in pairs], width) for i in (0, 1))
    given = apply(
        "arith.cmpi", [f"i{width}"] * 2, "i1", lhs, rhs, properties=f"predicate = {predicate} : i64"
    )  # fmt: skip
    assert given.tolist() == [compare(view(a, width), view(b, width)) for a, b in pairs]


FLOATS = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan]
FLOAT_PAIRS = [(a, b) for a in FLOATS for b in FLOATS]
PREDICATES: list[Callable[[float, float], bool]] = [
    lambda a, b: False, lambda a, b: a == b, lambda a, b: a > b, lambda a, b: a >= b,
    lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a < b or a > b, lambda a, b: True,
]  # fmt: skip


@pytest.mark.parametrize("predicate", range(16))
def test_cmpf(predicate: int) -> None:
    given = apply(
        "arith.cmpf", ["f32", "f32"], "i1", *zip(*FLOAT_PAIRS, strict=True),
        properties=f"predicate = {predicate} : i64, fastmath = #arith.fastmath<none>",
    )  # fmt: skip

    def expected(a: float, b: float) -> bool:
        unordered = math.isnan(a) or math.isnan(b)
        if predicate < 8:
            return not unordered and PREDICATES[predicate](a, b)
        order = [1, 2, 3, 4, 5, 6]  # ueq, ugt, uge, ult, ule, une
        if predicate == 14:
            return unordered
        return predicate == 15 or unordered or PREDICATES[order[predicate - 8]](a, b)

    assert given.tolist() == [expected(a, b) for a, b in FLOAT_PAIRS]


def test_float_minimum_and_maximum_agree_on_nan_and_signed_zero() -> None:
    columns = list(zip(*FLOAT_PAIRS, strict=True))

    def result(name: str) -> list[float]:
        return apply(f"arith.{name}", ["f32", "f32"], "f32", *columns).tolist()

    def above(a: float, b: float) -> float:
        return a if (a, math.copysign(1, a)) >= (b, math.copysign(1, b)) else b

    def same(given: list[float], wanted: list[float]) -> bool:
        return [struct.pack("f", g) for g in given if g == g] == [
            struct.pack("f", w) for w in wanted if w == w
        ] and [g != g for g in given] == [w != w for w in wanted]

    nan = math.nan
    propagating = [nan if a != a or b != b else above(a, b) for a, b in FLOAT_PAIRS]
    assert same(result("maximumf"), propagating)
    lower = [nan if a != a or b != b else -above(-a, -b) for a, b in FLOAT_PAIRS]
    assert same(result("minimumf"), lower)
    numbers = [b if a != a else a if b != b else max(a, b) for a, b in FLOAT_PAIRS]
    assert np.array_equal(result("maxnumf"), numbers, equal_nan=True)
    numbers = [b if a != a else a if b != b else min(a, b) for a, b in FLOAT_PAIRS]
    assert np.array_equal(result("minnumf"), numbers, equal_nan=True)


@pytest.mark.parametrize(
    ("name", "compute"),
    [("addf", np.add), ("subf", np.subtract), ("mulf", np.multiply), ("divf", np.divide)],
)
@pytest.mark.parametrize("type", ["f16", "f32", "f64"])
def test_float_op_rounds_to_its_type(name: str, compute: Any, type: str) -> None:
    rng = np.random.default_rng(1)
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[type]
    lhs, rhs = (rng.normal(size=50).astype(dtype) for _ in range(2))
    given = apply(f"arith.{name}", [type, type], type, lhs, rhs)
    assert given.dtype == dtype
    wide = compute(lhs.astype(np.longdouble), rhs.astype(np.longdouble))
    assert np.array_equal(given, wide.astype(dtype))


def test_remf_has_the_sign_of_the_dividend() -> None:
    given = apply("arith.remf", ["f32", "f32"], "f32", [5.5, -5.5, 5.5], [2, 2, -2])
    assert given.tolist() == [1.5, -1.5, 1.5]


@settings(max_examples=30)
@given(source=WIDTHS, target=WIDTHS, numbers=st.lists(st.integers(0, (1 << 64) - 1), min_size=1))
def test_integer_casts(source: int, target: int, numbers: list[int]) -> None:
    numbers = [to_unsigned(n, source) for n in numbers]
    if source == target:
        return
    names = ["trunci"] if target < source else ["extsi", "extui"]
    for name in names:
        given = apply(f"arith.{name}", [f"i{source}"], f"i{target}", wrap_to_width(numbers, source))
        view = to_signed if name == "extsi" else to_unsigned
        assert given.astype(object).tolist() == wrap_to_width(
            [view(n, source) for n in numbers], target
        )


def test_index_casts() -> None:
    assert apply("arith.index_cast", ["i8"], "index", [-1, 5]).tolist() == [-1, 5]
    assert apply("arith.index_castui", ["i8"], "index", [-1, 5]).tolist() == [255, 5]
    assert apply("arith.index_cast", ["index"], "i8", [300, -1]).tolist() == [44, -1]


def test_float_to_integer_truncates_and_saturates() -> None:
    numbers = [1.9, -1.9, 1e30, -1e30, math.nan, math.inf, 127.5, -128.9]
    signed = apply("arith.fptosi", ["f32"], "i8", numbers)
    assert signed.tolist() == [1, -1, 127, -128, 0, 127, 127, -128]
    unsigned = apply("arith.fptoui", ["f32"], "i8", [1.9, -3.0, 255.7, 1e9, math.nan])
    assert unsigned.view(np.uint8).tolist() == [1, 0, 255, 255, 0]
    wide = apply("arith.fptosi", ["f64"], "i64", [2.0**63, -(2.0**63), 2.0**62])
    assert wide.tolist() == [2**63 - 1, -(2**63), 2**62]
    wide = apply("arith.fptoui", ["f64"], "i64", [2.0**64, 2.0**63, -1.0])
    assert wide.view(np.uint64).tolist() == [2**64 - 1, 2**63, 0]


def test_integer_to_float_rounds_once() -> None:
    assert apply("arith.sitofp", ["i1"], "f32", [1, 0]).tolist() == [-1.0, 0.0]
    assert apply("arith.uitofp", ["i1"], "f32", [1, 0]).tolist() == [1.0, 0.0]
    assert apply("arith.uitofp", ["i8"], "f32", [-1]).tolist() == [255.0]
    tie = 2**24 + 1
    assert apply("arith.sitofp", ["i64"], "f32", [tie, tie + 2]).tolist() == [2**24, tie + 3]


def test_float_casts_round_once() -> None:
    # Just above a tie of bfloat16, by less than float32 can hold.
    number = 1 + 2**-8 + 2**-40
    (given,) = run(
        """func.func @main(%x: f64) -> bf16 {
             %0 = arith.truncf %x : f64 to bf16
             func.return %0 : bf16 }""",
        np.float64(number),
    )
    assert given.dtype == ml_dtypes.bfloat16
    assert float(given) == 1 + 2**-7
    assert apply("arith.truncf", ["f64"], "f16", [1e6, 1 + 2**-12]).tolist() == [math.inf, 1]
    assert apply("arith.extf", ["f16"], "f64", [0.1]).tolist() == [float(np.float16(0.1))]


def test_bitcast() -> None:
    assert apply("arith.bitcast", ["f32"], "i32", [1.0]).tolist() == [0x3F800000]
    assert apply("arith.bitcast", ["i16"], "f16", [0x3C00]).tolist() == [1.0]


def test_select_takes_either_side_whole() -> None:
    given = apply("arith.select", ["i1", "f32", "f32"], "f32", [1, 0], [1, 2], [3, 4])
    assert given.tolist() == [1.0, 4.0]


@settings(max_examples=20)
@given(
    width=st.sampled_from([1, 7, 8, 16, 32, 64]),
    pairs=st.lists(st.tuples(*[st.integers(0, (1 << 64) - 1)] * 2), min_size=1),
)
def test_extended_ops_give_all_bits(width: int, pairs: list[tuple[int, int]]) -> None:
    pairs = [(to_unsigned(a, width), to_unsigned(b, width)) for a, b in pairs]
    type = f"i{width}"
    text = """func.func @main(%a: tensor<?x{t}>, %b: tensor<?x{t}>)
          -> (tensor<?x{t}>, tensor<?x{r}>) {{
        %l, %h = "arith.{n}"(%a, %b)
          : (tensor<?x{t}>, tensor<?x{t}>) -> (tensor<?x{t}>, tensor<?x{r}>)
        func.return %l, %h : tensor<?x{t}>, tensor<?x{r}> }}"""
    from tests.interpreter.programs import column

    lhs, rhs = (column(type, wrap_to_width([p[i] for p in pairs], width)) for i in (0, 1))
    for name, view in (("mului_extended", to_unsigned), ("mulsi_extended", to_signed)):
        low, high = run(text.format(t=type, r=type, n=name), lhs, rhs)
        products = [view(a, width) * view(b, width) for a, b in pairs]
        assert low.astype(object).tolist() == wrap_to_width(products, width)
        assert high.astype(object).tolist() == wrap_to_width([p >> width for p in products], width)
    total, carry = run(text.format(t=type, r="i1", n="addui_extended"), lhs, rhs)
    assert total.astype(object).tolist() == wrap_to_width([a + b for a, b in pairs], width)
    assert carry.tolist() == [a + b >= 1 << width for a, b in pairs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("arith.constant 7 : i4", np.int8(7)),
        ("arith.constant -1 : i4", np.int8(-1)),
        ("arith.constant true", np.True_),
        ("arith.constant 0x7FC00000 : f32", np.float32(np.nan)),
        ("arith.constant dense<[1, -2]> : tensor<2xi3>", np.array([1, -2], np.int8)),
        ("arith.constant dense<5> : tensor<2x2xi64>", np.full((2, 2), 5)),
        ("arith.constant dense<[true, false]> : tensor<2xi1>", np.array([True, False])),
        ('arith.constant dense<"0x0000803F000000C0"> : tensor<2xf32>', f32([1, -2])),
        ("arith.constant dense<1.5> : tensor<2xbf16>", np.full(2, 1.5, ml_dtypes.bfloat16)),
        ("arith.constant dense<> : tensor<0xf32>", np.zeros(0, np.float32)),
    ],
)
def test_constants(text: str, expected: Any) -> None:
    type = text.rsplit(" : ", 1)[1] if " : " in text else "i1"
    (given,) = run(f"func.func @main() -> {type} {{ %0 = {text} \n func.return %0 : {type} }}")
    assert given.dtype == expected.dtype
    assert np.array_equal(given, expected, equal_nan=given.dtype.kind == "f")


def test_a_resource_without_its_data_is_an_error() -> None:
    with pytest.raises(InterpretError, match="resource 'weights' is not in the module"):
        run("""func.func @main() -> tensor<2xf32> {
                 %0 = arith.constant dense_resource<weights> : tensor<2xf32>
                 func.return %0 : tensor<2xf32> }""")
