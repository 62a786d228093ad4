"""How a processor multiplies bytes: this is all that differs between them.

`vnni` multiplies four unsigned bytes with four signed ones and adds all to a sum. Rows that have no
negative number are the unsigned ones. Else weights are, stored as w + 128, so a sum is too large by
128 times the sum of its row; `offsets` gives that, once for a row and all its columns. Weights of
fewer bits are unsigned everywhere, by a smaller bias. `sdot` multiplies four signed bytes with four
signed ones. `madd` widens to 16 bits and multiplies two at once. Elsewhere a product is a product
of 32-bit numbers.

A step of a sum is `isa.step` numbers of a row, and for each column as many weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.tile import Sums
from fewbit.toolchain.isa import Isa

BIAS = 128
"""What unsigned weights are too large by."""
MASKED = 64
"""Bytes of a vector of which a part can be loaded."""


def weights(f: Function, w: Value, v: int) -> Value:
    """Vector v of a panel."""
    return f.load(f"<{f.isa.lanes * f.isa.step} x i8>", w, v)


def numbers(f: Function, row: Value, at: Value) -> Value:
    """One step of a row, in every lane."""
    lanes, step = f.isa.lanes, f.isa.step
    if step == 1:
        return f.broadcast(_widen_factors(f, f.load("i8", f.at(row, at, "i8"))))
    together = f.broadcast(f.load(f"i{8 * step}", f.at(row, at, "i8")))
    spread = f.bits(together, f"<{lanes * step} x i8>")
    return _widen_factors(f, spread)


def multiply(f: Function, x: Value, w: Value, total: Value, unsigned: bool = False) -> Value:
    """total + x · w, a step in each lane; x is `unsigned`, or w is, where one of them must be."""
    return INSTRUCTIONS[f.isa.dot.name](f, x, w, total, unsigned)


def dot(
    f: Function,
    rows: Sequence[Value],
    w: Sequence[Value],
    at: Value,
    sums: Sums,
    unsigned: bool = False,
) -> Sums:
    """One step of all sums of a tile, with a vector of weights for each column of them."""
    wide = [_widen_factors(f, v) for v in w]
    done: Sums = []
    for row, totals in zip(rows, sums, strict=True):
        x = numbers(f, row, at)
        done.append([multiply(f, x, v, t, unsigned) for v, t in zip(wide, totals, strict=True)])
    return done


def _widen_factors(f: Function, factors: Value) -> Value:
    bits = f.isa.dot.factor_bits
    return factors if bits == 8 else f.convert("sext", factors, f"i{bits}")


def widen(f: Function, w: Value) -> Value:
    """Widen a byte of weights in each lane for `multiply_lanes`: 16 bits, and 16 of zeros."""
    if f.isa.dot.name not in PAIRS:
        return f.convert("sext", w, "i32")
    return f.convert("zext", f.convert("sext", w, "i16"), "i32")


def multiply_lanes(f: Function, x: Value, w: Value, total: Value) -> Value:
    """total + x · w for 32-bit lanes that hold a byte each."""
    multiply_pairs = PAIRS.get(f.isa.dot.name)
    if multiply_pairs is None:
        return total + x * w
    words = f"<{2 * f.isa.lanes} x i16>"
    return multiply_pairs(f, f.bits(x, words), f.bits(w, words), total)


@cache
def offsets(isa: Isa, bias: int) -> Function:
    """Subtract the bias times the sum of each row, which a table holds as for tiles."""
    f = Function(
        isa,
        f"fewbit_offsets_i8_{bias}",
        "ptr table, i64 table_step, i64 from, i64 tap_step, i64 rows, i64 taps, i64 depth, "
        "ptr offsets",
    )
    table, table_step, first, tap_step, rows, taps, depth, to = f.parameters
    add_up = _add_quads if isa.dot.factor_bits == 8 else _add_lanes
    with f.loop(0, rows) as loop:
        with f.loop(0, taps, carried=[f.zero(f"<{isa.lanes} x i32>")]) as over_taps:
            tap = over_taps.index
            row = f.load("ptr", table, tap * table_step + loop.index)
            numbers = f.at(row, first + tap * tap_step, "i8")
            over_taps.carry(add_up(f, numbers, depth, bias, over_taps.carried[0]))
        (lanes,) = over_taps.results
        spent = f.processor_call(f"vector.reduce.add.v{isa.lanes}i32", "i32", lanes)
        f.store(f.load("i32", to, loop.index) - spent, to, loop.index)
    return f


def _add_quads(f: Function, row: Value, depth: Value, bias: int, total: Value) -> Value:
    chunk = f.isa.lanes * f.isa.step
    many = f.broadcast(f.constant("i8", bias), chunk)
    masked = chunk == MASKED
    whole = (depth - 1 if masked else depth) // chunk * chunk
    with f.loop(0, whole, chunk, carried=[total]) as along:
        x = f.load(f"<{chunk} x i8>", f.at(row, along.index, "i8"))
        along.carry(multiply(f, x, many, along.carried[0]))
    (total,) = along.results
    if not masked:
        return _add_singly(f, row, whole, depth, bias, total)
    tail = f.bits(f.integer(-1).shift_right(whole + chunk - depth), f"<{chunk} x i1>")
    x = f.load_part(f.at(row, whole, "i8"), tail, "i8")
    return multiply(f, x, many, total)


def _add_lanes(f: Function, row: Value, depth: Value, bias: int, total: Value) -> Value:
    """Whole vectors, and then what is left."""
    lanes = f.isa.lanes
    many, whole = f.broadcast(f.constant("i32", bias)), depth // lanes * lanes
    with f.loop(0, whole, lanes, carried=[total]) as along:
        x = f.convert("sext", f.load(f"<{lanes} x i8>", f.at(row, along.index, "i8")), "i32")
        along.carry(along.carried[0] + x * many)
    return _add_singly(f, row, whole, depth, bias, along.results[0])


def _add_singly(
    f: Function, row: Value, first: Value, depth: Value, bias: int, total: Value
) -> Value:
    with f.loop(first, depth, carried=[total]) as tail:
        x = f.convert("sext", f.load("i8", f.at(row, tail.index, "i8")), "i32")
        alone = f.zero(total.type)
        x = f.insert(alone, x * bias, 0)
        tail.carry(tail.carried[0] + x)
    return tail.results[0]


def _vnni(f: Function, x: Value, w: Value, total: Value, unsigned: bool) -> Value:
    factors = (x, w) if unsigned else (w, x)
    name = f"x86.avx512.vpdpbusd.{f.isa.vector_bits}"
    return f.processor_call(name, total.type, total, *factors)


def _vnni_pairs(f: Function, x: Value, w: Value, total: Value) -> Value:
    name = f"x86.avx512.vpdpwssd.{f.isa.vector_bits}"
    return f.processor_call(name, total.type, total, x, w)


def _sdot(f: Function, x: Value, w: Value, total: Value, unsigned: bool) -> Value:
    return f.processor_call("aarch64.neon.sdot.v4i32.v16i8", total.type, total, w, x)


_MADD = {128: "x86.sse2.pmadd.wd", 256: "x86.avx2.pmadd.wd", 512: "x86.avx512.pmaddw.d.512"}


def _madd(f: Function, x: Value, w: Value, total: Value, unsigned: bool = False) -> Value:
    return total + f.processor_call(_MADD[f.isa.vector_bits], total.type, x, w)


def _plain(f: Function, x: Value, w: Value, total: Value, unsigned: bool) -> Value:
    return total + x * w


Multiply = Callable[[Function, Value, Value, Value, bool], Value]
"""total + x · w, of factors x and w; where one must be unsigned, x is, or else w."""

INSTRUCTIONS: dict[str, Multiply] = {"vnni": _vnni, "sdot": _sdot, "madd": _madd, "plain": _plain}
"""What a processor multiplies by, under the name of its `DotProduct`."""

PAIRS: dict[str, Callable[[Function, Value, Value, Value], Value]] = {
    "vnni": _vnni_pairs,
    "madd": _madd,
}
"""What multiplies pairs of 16-bit numbers; processors without it multiply 32-bit lanes."""
