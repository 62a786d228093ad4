"""The epilogue of integer kernels: a sum stays as it is, or becomes a float, or a byte.

- `i32`: sum + bias, the bias an integer.
- `f32`: clamp(sum · x_scale · w_scale + bias + add, lo, hi), each operation rounded on its own, in
  this order, as the interpreter does it.
- `i8`: clamp(round((sum + bias) · w_scale), lo, hi), half to even, the bias an integer.
- `i32_i8`: y is what `i32` gives, q what `i8` gives.
- `steps`: q is what `f32` is in whole steps, as bytes (`steps.py`); y is the float itself, or null.
- `f32_gelu`, `steps_silu` and their like: the same, of the activation function of what was summed,
  clamp(f(…), lo, hi).
- `f32_largest`: what `f32` gives; and, in 16 places of a thread's own, the largest magnitudes of
  that and of what was there, as integers (`largest_magnitudes.py`).

With scales for groups, sums are scaled already, and floats: bias, add and bounds are left.

What is absent is null, and adds -0: the one number that leaves every other as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal, TypeAlias, cast, get_args

from fewbit.errors import UnsupportedError
from fewbit.kernels.activation import apply_activation
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.largest_magnitudes import larger_magnitudes
from fewbit.kernels.steps import TO_INTEGER, Rounding, packs
from fewbit.kernels.sweep import row_of
from fewbit.numerics.approximations.activations import ACTIVATIONS, Activation
from fewbit.toolchain.isa import Isa

Plain = Literal["i32", "f32", "i8", "i32_i8", "steps"]
Output: TypeAlias = str
"""One of `OUTPUTS`: they follow from the activation functions that there are."""
PLAIN: tuple[Plain, ...] = get_args(Plain)
ACTIVATED: Final = tuple(f"{kind}_{name}" for kind in ("f32", "steps") for name in ACTIVATIONS)
Offset = Literal["rows", "columns", "none"]
"""What sums are to be corrected by: an offset of their row, of their column, or none."""
LARGEST: Final = "f32_largest"
OUTPUTS: Final = (*PLAIN, *ACTIVATED, LARGEST)
SCALED: Final = ("f32", "steps", *ACTIVATED, LARGEST)
"""Outputs with a scale for each row, and with what is added."""


def plain(output: Output) -> Plain:
    """Return the output but for its activation, and but for magnitudes."""
    if output not in OUTPUTS:
        raise UnsupportedError(f"no kernel of integers gives '{output}'")
    return cast(Plain, output if output in PLAIN else output.partition("_")[0])


def activation_of(output: Output) -> Activation | None:
    return cast(Activation, output.partition("_")[2]) if output in ACTIVATED else None


def pointers(output: Output) -> str:
    """Return the parameters that say where outputs go; `steps` points to `Steps.numbers()`."""
    more = {"i32_i8": ", ptr q", "steps": ", ptr q, ptr steps", LARGEST: ", ptr largest"}
    return f"ptr y{more.get(output if output == LARGEST else plain(output), '')}"


def advance(f: Function, output: Output, given: Sequence[Value], place: Value) -> list[Value]:
    """Return the pointers to outputs, advanced to a place."""
    y, *more = given
    if output == LARGEST:
        return [f.at(y, place), *more]
    if not more:
        return [f.at(y, place, "i8" if output == "i8" else "float")]
    q, *steps = more
    return [row_of(f, y, place), f.at(q, place, "i8"), *steps]


@dataclass(frozen=True)
class Columns:
    """What one vector of outputs has in common, down all its rows."""

    scale: Value | None
    bias: Value
    low: Value
    high: Value

    @staticmethod
    def load(
        f: Function,
        output: Output,
        w_scale: Value | None,
        bias: Value,
        column: Value,
        mask: Value | None,
        low: Value,
        high: Value,
    ) -> Columns:
        kind = "float" if output in SCALED else "i32"
        nothing = f.number(-0.0) if output in SCALED else f.constant("i32", 0)
        absent = bias.is_null()
        place = f.select(absent, f.zeros(), f.at(bias, column))
        loaded = f.load_part(place, mask, kind)
        if w_scale is None or output == "i32":
            scale = None
        else:
            scale = f.load_part(f.at(w_scale, column), mask)
        return Columns(
            scale,
            f.select(absent, f.broadcast(nothing), loaded),
            low,
            high,
        )

    def store_integers(
        self,
        f: Function,
        output: Output,
        total: Value,
        to: Sequence[Value],
        place: Value,
        mask: Value | None,
    ) -> None:
        """Store the outputs of one row, where it has no scale of its own."""
        total = total + self.bias
        if output != "i8":
            f.store_part(total, f.at(to[0], place, "i32"), mask)
        if self.scale is None:
            return
        scaled = f.convert("sitofp", total, "float") * self.scale
        whole = self.clamp(f, scaled) + f.broadcast(f.number(TO_INTEGER))
        few = f.convert("trunc", f.bits(whole, total.type), "i8")
        f.store_part(few, f.at(to[-1], place, "i8"), mask)

    def dequantize(self, f: Function, total: Value, x_scale: Value) -> Value:
        assert self.scale is not None
        return f.convert("sitofp", total, "float") * x_scale * self.scale

    def add_bias(self, scaled: Value, add: Value | None) -> Value:
        return scaled + self.bias if add is None else scaled + self.bias + add

    def clamp(self, f: Function, value: Value) -> Value:
        return f.clamp(value, self.low, self.high)


@cache
def finish(isa: Isa, output: Output, grouped: bool = False, offset: Offset = "rows") -> Function:
    """Return the epilogue of a tile: outputs from its sums, in rows of `width`, and offsets."""
    f = Function(
        isa,
        f"fewbit_finish_{'groups_' if grouped else ''}{output}_{offset}",
        "ptr sums, i64 rows, i64 width, ptr offsets, ptr x_scales, ptr w_scale, ptr bias, "
        f"ptr add, {pointers(output)}, i64 y_step, i64 columns, float lo, float hi",
    )
    _Epilogue(f, output, grouped, offset).write()
    return f


@dataclass(frozen=True)
class _Case:
    """What a run gives: floats to add, a place for floats; and whether results are positive."""

    add: bool = False
    floats: bool = True
    positive: bool = False


class _Epilogue:
    """The body of `finish`: a few vectors of columns at once, down all rows."""

    def __init__(self, f: Function, output: Output, grouped: bool, offset: Offset) -> None:
        self.f, self.output, self.grouped, self.offset = f, output, grouped, offset
        sums, rows, width, offsets, x_scales, w_scale, bias, add, *to = f.parameters
        *self.to, self.y_step, self.columns, low, high = to
        self.sums, self.rows, self.width, self.offsets = sums, rows, width, offsets
        self.x_scales, self.bias, self.add = x_scales, bias, add
        self.scale = None if grouped else w_scale
        self.bounds = f.broadcast(low), f.broadcast(high)
        self.activation: Activation | None = activation_of(output)
        self.rounding = Rounding.load(f, self.to[2]) if plain(output) == "steps" else None

    def write(self) -> None:
        """Write the block of each case that there may be."""
        if self.output not in SCALED:
            self._write_block(_Case())
            return
        for add in (False, True):
            for floats in (True,) if self.rounding is None else (True, False):
                with (
                    self.f.when(_is_given(self.add, add)),
                    self.f.when(_is_given(self.to[0], floats)),
                ):
                    self._write_block(_Case(add, floats))

    def _write_block(self, case: _Case) -> None:
        """Write whole vectors of columns, then the columns that are left."""
        f, lanes = self.f, self.f.isa.lanes
        whole = self.columns // lanes * lanes
        if self.activation is not None:
            self._write_each_count(whole, [case])
        elif self.rounding is not None and packs(f.isa):
            bounded = f.load("float", self.to[2], 3).equals(0.0)
            self._write_each_count(whole, [case, replace(case, positive=True)], bounded)
        elif plain(self.output) == "f32":  # a row after another: outputs may be far apart
            self._write_each_count(whole, [case])
        else:
            with f.loop(0, whole, lanes) as loop:
                self._write_rows(loop.index, 1, None, case)
        with f.when(whole < self.columns):
            self._write_rows(whole, 1, f.first_lanes(self.columns - whole), case)

    def _write_each_count(
        self, whole: Value, cases: Sequence[_Case], bounded: Value | None = None
    ) -> None:
        """Write all vectors of a row at once, for each number of vectors that a tile may have."""
        f = self.f
        for vectors in range(1, f.isa.tile_vectors + 1):
            with f.when(whole.equals(vectors * f.isa.lanes)):
                for case in cases:
                    if bounded is None:
                        self._write_rows(f.integer(0), vectors, None, case)
                        continue
                    with f.when(bounded if case.positive else bounded.equals(0)):
                        self._write_rows(f.integer(0), vectors, None, case)

    def _write_rows(self, first: Value, vectors: int, mask: Value | None, case: _Case) -> None:
        """Write a few vectors of columns, down all rows."""
        f, lanes = self.f, self.f.isa.lanes
        at = [first + v * lanes for v in range(vectors)]
        columns = [
            Columns.load(f, self.output, self.scale, self.bias, c, mask, *self.bounds) for c in at
        ]
        largest = [f.load(f"<{lanes} x i32>", self.to[1])] if self.output == LARGEST else []
        with f.loop(0, self.rows, carried=largest) as loop:
            totals = self._load_sums(loop.index, at)
            places = [loop.index * self.y_step + column for column in at]
            if self.output in SCALED:
                results = self._write_scaled(loop.index, columns, totals, places, mask, case)
                loop.carry(*(larger_magnitudes(f, most, results, mask) for most in loop.carried))
            else:
                for c, place, total in zip(columns, places, totals, strict=True):
                    c.store_integers(f, self.output, total, self.to, place, mask)
        for most in loop.results:
            f.store(most, self.to[1])

    def _load_sums(self, row: Value, columns: list[Value]) -> list[Value]:
        """Return the sums of a row, corrected by their offsets."""
        f = self.f
        kind = f.vector if self.grouped else f"<{f.isa.lanes} x i32>"
        loaded = [f.load(kind, f.at(self.sums, row * self.width + column)) for column in columns]
        if self.grouped or self.offset == "none":
            return loaded
        if self.offset == "columns":
            by = [f.load(kind, f.at(self.offsets, column)) for column in columns]
        else:
            by = [f.broadcast(f.load("i32", self.offsets, row))] * len(loaded)
        return [total + other for total, other in zip(loaded, by, strict=True)]

    def _write_scaled(
        self,
        row: Value,
        columns: Sequence[Columns],
        totals: list[Value],
        places: Sequence[Value],
        mask: Value | None,
        case: _Case,
    ) -> list[Value]:
        """Write a row of floats, or of whole steps; return the floats."""
        f = self.f
        if not self.grouped:
            x_scale = f.broadcast(f.load("float", self.x_scales, row))
            totals = [c.dequantize(f, t, x_scale) for c, t in zip(columns, totals, strict=True)]
        more = [f.load_part(f.at(self.add, at), mask) if case.add else None for at in places]
        totals = [c.add_bias(t, m) for c, t, m in zip(columns, totals, more, strict=True)]
        totals = apply_activation(totals, self.activation)
        results = [c.clamp(f, total) for c, total in zip(columns, totals, strict=True)]
        if case.floats:
            for value, place in zip(results, places, strict=True):
                f.store_part(value, f.at(self.to[0], place), mask)
        if self.rounding is not None:
            place = f.at(self.to[1], places[0], "i8")
            self.rounding.store(f, totals, place, mask, case.positive)
        return results


def _is_given(pointer: Value, yes: bool) -> Value:
    absent = pointer.is_null()
    return absent.equals(0) if yes else absent


@cache
def spread_scales(isa: Isa) -> Function:
    """Return the function that writes each row's scale, where one serves `together` rows.

    There is room for whole vectors of scales.
    """
    f = Function(
        isa,
        "fewbit_spread_scales",
        "ptr x_scale, i64 together, i64 row, i64 rows, ptr scales",
    )
    x_scale, together, row, rows, scales = f.parameters
    number, place = row // together, row % together
    alike = place + rows <= together
    one = f.broadcast(f.load("float", x_scale, number))
    with f.loop(0, f.select(alike, rows, 0), isa.lanes) as loop:
        f.store(one, f.at(scales, loop.index))
    with f.loop(0, f.select(alike, 0, rows), carried=[number, place]) as loop:
        number, place = loop.carried
        f.store(f.load("float", x_scale, number), scales, loop.index)
        ends = (place + 1).equals(together)
        loop.carry(f.select(ends, number + 1, number), f.select(ends, 0, place + 1))
    return f
