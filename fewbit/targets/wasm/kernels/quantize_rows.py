"""Activations quantized by scales of their own, one for each row, with vectors.

The formula is that of `fewbit.numerics` for 3 bits and more, to the bit. Magnitudes are compared as
integers, which order floats without a sign alike, and in several vectors, because each waits for
the one before. The last vector of a row begins where it ends with the row.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.llvm.values import Value
from fewbit.numerics.formulas import EPS
from fewbit.targets.mcu.kernels.function import Code, Kernel, name_of
from fewbit.targets.wasm.kernels.lanes import FLOATS, ROUNDED_BITS, ROUNDING, WORDS, store_bytes
from fewbit.targets.wasm.kernels.layout import LANES

AT_ONCE = 4
"""Vectors of an iteration."""
BLOCK = AT_ONCE * LANES


@dataclass(frozen=True)
class QuantizeRows:
    """Some rows of at least four floats, to integers up to `most`."""

    rows: int
    length: int
    most: int

    @property
    def name(self) -> str:
        return name_of("quantize", f"{self.rows}x{self.length}", self.most)


def quantize_rows(code: Code, wanted: QuantizeRows) -> Kernel:
    """Return the function that quantizes rows."""
    found = code.find(wanted.name)
    if found is not None:
        return found
    f = Kernel(code.core, wanted.name, "ptr x, ptr q, ptr scale")
    x, q, scale = f.parameters
    length = wanted.length
    with f.loop(0, wanted.rows, carried=[x, q], hot=True) as rows:
        row, to = rows.carried
        multiplier = f.number(float(wanted.most)) / f.bits(_largest(f, row, length), "float")
        f.store(f.number(1.0) / multiplier, scale, rows.index, align=4)
        by = f.broadcast_to(multiplier, LANES)
        if length >= BLOCK:
            with f.loop(0, length - BLOCK + 1, BLOCK, hot=True) as loop:
                _round(f, f.at(row, loop.index), by, f.at(to, loop.index, "i8"), AT_ONCE)
        for first in _rest(length):
            _round(f, f.at(row, first), by, f.at(to, first, "i8"), 1)
        rows.carry(f.at(row, length), f.at(to, length, "i8"))
    return code.add(f)


def _rest(length: int) -> list[int]:
    """Return where vectors begin that are in no block."""
    return [min(first, length - LANES) for first in range(length // BLOCK * BLOCK, length, LANES)]


def _largest(f: Kernel, row: Value, length: int) -> Value:
    """Return the bits of the largest magnitude of a row."""

    def larger(a: Value, b: Value) -> Value:
        return f.intrinsic("smax.v4i32", WORDS, a, b)

    def magnitudes(at: Value) -> Value:
        return f.load(WORDS, at, align=4) & f.constant(WORDS, 0x7FFFFFFF)

    least = f.constant(WORDS, int(EPS.view("int32")))
    most = [least] * AT_ONCE
    if length >= BLOCK:
        with f.loop(0, length - BLOCK + 1, BLOCK, carried=most, hot=True) as loop:
            at = f.at(row, loop.index)
            loop.carry(
                *(larger(magnitudes(f.at(at, LANES * i)), v) for i, v in enumerate(loop.carried))
            )
        most = loop.results
    found = most[0]
    for other in most[1:]:
        found = larger(found, other)
    for first in _rest(length):
        found = larger(magnitudes(f.at(row, first)), found)
    for away in ([2, 3, 0, 1], [1, 0, 3, 2]):
        found = larger(found, f.shuffle(found, away))
    return f.extract(found, 0)


def _round(f: Kernel, x: Value, by: Value, q: Value, vectors: int) -> None:
    """Round vectors of floats; a product is never more than the width holds."""
    found: list[Value] = []
    for vector in range(vectors):
        value = f.load(FLOATS, f.at(x, LANES * vector), align=4) * by
        moved = value + f.constant(FLOATS, ROUNDING)
        found.append(f.bits(moved, WORDS) - f.constant(WORDS, ROUNDED_BITS))
    store_bytes(f, found, (-128, 127), q)
