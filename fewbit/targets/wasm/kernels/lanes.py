"""What becomes of accumulators in lanes: the epilogues of microcontrollers, four channels at once.

The table of channels has its columns one after another, so that four neighbours are one load.
Integers are bounded by the instructions that narrow them, where their bounds are those of bytes;
floats are bounded before they are rounded, which gives the same, and rounded by adding a number so
large that no fraction is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fewbit.llvm.types import F32, I8, I16, I32, I64, Vector
from fewbit.llvm.values import Value
from fewbit.targets.mcu.kernels.epilogue import UPPER, Epilogue
from fewbit.targets.mcu.kernels.function import Kernel
from fewbit.targets.wasm.kernels.layout import LANES

Array = np.ndarray[Any, Any]
WORDS, FLOATS = Vector(LANES, I32), Vector(LANES, F32)
HALVES, BYTES = Vector(8, I16), Vector(16, I8)
ROUNDING = 12582912.0
"""1.5 · 2^23: what is added to it has whole steps."""
ROUNDED_BITS = 0x4B400000


def table_of(epilogue: Epilogue, columns: dict[str, Array], channels: int) -> Array:
    """Return the table of channels as bytes."""
    rows = epilogue.table(columns, channels).view(np.uint32).reshape(channels, -1)
    return np.ascontiguousarray(rows.T).reshape(-1).view(np.int8)


def load_channels(
    f: Kernel, epilogue: Epilogue, table: Value, n: int, channel: Value, vectors: int
) -> list[dict[str, Value]]:
    """Load what the table of n channels has of some, vector by vector."""
    is_float = epilogue.kind == "floats"
    kinds = {name: FLOATS if name == "scale" else WORDS for name in epilogue.fields}
    if is_float:
        kinds = dict.fromkeys(epilogue.fields, FLOATS)
    base = f.at(table, channel, I32)
    return [
        {
            name: f.load(kinds[name], f.at(base, place * n + LANES * vector, I32), align=4)
            for place, name in enumerate(epilogue.fields)
        }
        for vector in range(vectors)
    ]


def store_outputs(
    f: Kernel,
    epilogue: Epilogue,
    accs: Sequence[Value],
    given: Sequence[dict[str, Value]],
    x_scale: Value | None,
    place: Value,
) -> None:
    """Store what vectors of accumulators become: to `y` floats and sums, to `q` integers."""
    if epilogue.kind == "floats":
        assert x_scale is not None
        _store_floats(f, epilogue, accs, given, f.broadcast_to(x_scale, LANES), place)
        return
    found = [integers_of(f, epilogue, acc, each) for acc, each in zip(accs, given, strict=True)]
    if epilogue.kind == "sums":
        for vector, value in enumerate(found):
            f.store(value, f.at(f.parameter("y"), place + LANES * vector, I32), align=4)
        return
    store_bytes(f, found, epilogue.bounds, f.at(f.parameter("q"), place, "i8"))


def integers_of(f: Kernel, epilogue: Epilogue, acc: Value, given: dict[str, Value]) -> Value:
    """Return the integers of accumulators, not yet bounded."""
    total = acc + given["bias"] if epilogue.has_bias else acc
    if epilogue.kind == "sums":
        return total
    if epilogue.chain is not None:
        return epilogue.chain.apply(f, total, given)
    if epilogue.kind == "scaled":
        product = f.convert("sitofp", total, F32) * given["scale"]
        return round_lanes(f, product, epilogue.bounds)
    total = total.shift_left(_splat(f, epilogue.raised)) if epilogue.raised else total
    return _shift_product(f, epilogue, total, given)


def round_lanes(f: Kernel, value: Value, bounds: tuple[int, int]) -> Value:
    """Return the nearest integers, ties to even, between two bounds."""
    low, high = (f.constant(FLOATS, float(end)) for end in bounds)
    value = f.select(value < low, low, value)
    value = f.select(value < high, value, high)
    sum = value + f.constant(FLOATS, ROUNDING)
    return f.bits(sum, WORDS) - _splat(f, ROUNDED_BITS)


def _shift_product(f: Kernel, epilogue: Epilogue, total: Value, given: dict[str, Value]) -> Value:
    """Return products with multipliers over a power of two, rounded half to even."""
    low, high = (_products(f, total, given["multiplier"], half) for half in (0, 2))
    rest = f.shuffle(low, [0, 2, 4, 6], high)
    upper = f.shuffle(low, [1, 3, 5, 7], high)
    upper = upper | f.convert("zext", rest.differs(f.zero(WORDS)), I32)
    one = _splat(f, 1)
    if epilogue.shift is None:
        down = given["shift"] - _splat(f, UPPER)
        half = one.shift_left(down - one) - one
    else:
        down = _splat(f, epilogue.shift - UPPER)
        half = _splat(f, (1 << epilogue.shift - UPPER - 1) - 1)
    odd = upper.shift_right(down) & one
    return (upper + half + odd).shift_right_signed(down)


def _products(f: Kernel, a: Value, b: Value, first: int) -> Value:
    """Return two products of 64 bits, as words."""
    wide = [f.convert("sext", f.shuffle(each, [first, first + 1]), I64) for each in (a, b)]
    return f.bits(wide[0] * wide[1], WORDS)


def _store_floats(
    f: Kernel,
    epilogue: Epilogue,
    accs: Sequence[Value],
    given: Sequence[dict[str, Value]],
    x_scale: Value,
    place: Value,
) -> None:
    steps: list[Value] = []
    for vector, (acc, each) in enumerate(zip(accs, given, strict=True)):
        at = place + LANES * vector
        value = f.convert("sitofp", acc, F32) * x_scale * each["scale"]
        if epilogue.has_bias:
            value = value + each["bias"]
        if epilogue.has_add:
            value = value + f.load(FLOATS, f.at(f.parameter("add"), at, F32), align=4)
        if epilogue.gives_floats or epilogue.is_binary:
            low, high = (
                None if b is None else f.constant(FLOATS, b) for b in epilogue.float_bounds
            )
            value = value if low is None else f.select(value < low, low, value)
            value = value if high is None else f.select(value > high, high, value)
        if epilogue.gives_floats:
            f.store(value, f.at(f.parameter("y"), at, F32), align=4)
        if epilogue.step is None:
            continue
        if epilogue.is_binary:
            is_positive = value >= f.constant(FLOATS, 0.0)
            steps.append(f.select(is_positive, _splat(f, 1), _splat(f, -1)))
        else:
            whole = value / f.constant(FLOATS, float(np.float32(epilogue.step)))
            steps.append(round_lanes(f, whole, epilogue.bounds))
    if steps:
        store_bytes(f, steps, (-128, 127), f.at(f.parameter("q"), place, "i8"))


def store_bytes(f: Kernel, words: Sequence[Value], bounds: tuple[int, int], to: Value) -> None:
    """Store integers as bytes, between two bounds; to narrow them bounds them to those of bytes."""
    low, high = bounds
    bounded: list[Value] = []
    for value in words:
        if low > -128:
            value = f.intrinsic("smax.v4i32", WORDS, value, _splat(f, low))
        if high < 127:
            value = f.intrinsic("smin.v4i32", WORDS, value, _splat(f, high))
        bounded.append(value)
    for first in range(0, len(bounded), LANES):
        some = bounded[first : first + LANES]
        halves = [_narrow(f, some[i : i + 2]) for i in range(0, len(some), 2)]
        name = "wasm.narrow.signed.v16i8.v8i16"
        narrow = f.intrinsic(name, BYTES, halves[0], halves[-1])
        _store_words(f, narrow, len(some), f.at(to, first * LANES, "i8"))


def _narrow(f: Kernel, words: Sequence[Value]) -> Value:
    return f.intrinsic("wasm.narrow.signed.v8i16.v4i32", HALVES, words[0], words[-1])


def _store_words(f: Kernel, narrow: Value, words: int, to: Value) -> None:
    """Store the first words of a vector of bytes."""
    if words == LANES:
        f.store(narrow, to, align=1)
        return
    if words >= 2:
        f.store(f.extract(f.bits(narrow, Vector(2, I64)), 0), to, align=1)
    if words % 2:
        last = f.extract(f.bits(narrow, WORDS), words - 1)
        f.store(last, f.at(to, LANES * (words - 1), "i8"), align=1)


def _splat(f: Kernel, value: int) -> Value:
    return f.constant(WORDS, value)
