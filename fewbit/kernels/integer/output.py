"""What becomes of a sum: the sum itself, a float, or a byte for the next layer.

- `i32`: the sum.
- `f32`: clamp(sum · x_scale · w_scale + bias + add, lo, hi), each operation rounded on its own, in
  this order, as the interpreter does it.
- `i8`: clamp(round((sum + bias) · w_scale), lo, hi), half to even, the bias an integer.

With scales for groups, sums are scaled already, and floats: bias, add and bounds are left.

What is absent is null, and adds -0: the one number that leaves every other as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.isa import Isa

Output = Literal["i32", "f32", "i8"]
ELEMENT: dict[Output, str] = {"i32": "i32", "f32": "float", "i8": "i8"}
_TO_INTEGER = 1.5 * 2.0**23
"""Added and subtracted, it leaves a small float rounded half to even."""


@dataclass(frozen=True)
class Columns:
    """What one vector of outputs has in common, down all its rows."""

    scale: Value | None
    bias: Value | None
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
        if output == "i32":
            return Columns(None, None, low, high)
        kind = "float" if output == "f32" else "i32"
        nothing = f.number(-0.0) if output == "f32" else Value(f, "i32", "0")
        absent = bias.is_null()
        place = f.select(absent, f.zeros(), f.at(bias, column))
        loaded = f.load_part(place, mask, kind)
        return Columns(
            None if w_scale is None else f.load_part(f.at(w_scale, column), mask),
            f.select(absent, f.broadcast(nothing), loaded),
            low,
            high,
        )

    def finish(self, f: Function, total: Value, x_scale: Value | None, add: Value | None) -> Value:
        """The outputs of one row."""
        if self.scale is None or self.bias is None:
            return total
        if x_scale is None:
            scaled = f.convert("sitofp", total + self.bias, "float") * self.scale
            bounded = f.clamp(scaled, self.low, self.high)
            magic = f.broadcast(f.number(_TO_INTEGER))
            return f.convert("fptosi", bounded + magic - magic, "i8")
        return self.end(f, f.convert("sitofp", total, "float") * x_scale * self.scale, add)

    def end(self, f: Function, scaled: Value, add: Value | None) -> Value:
        """The outputs of one row, of sums that are scaled."""
        assert self.bias is not None
        scaled = scaled + self.bias
        return f.clamp(scaled if add is None else scaled + add, self.low, self.high)


@cache
def finish(isa: Isa, output: Output, grouped: bool = False) -> Function:
    """Outputs of a tile: of its sums, of `columns` in rows of `width`."""
    f = Function(
        isa,
        f"fewbit_finish_{'groups_' if grouped else ''}{output}",
        "ptr sums, i64 rows, i64 width, ptr offsets, ptr x_scales, ptr w_scale, ptr bias, "
        "ptr add, ptr y, i64 y_step, i64 columns, float lo, float hi",
    )
    sums, rows, width, offsets, x_scales, w_scale, bias, add, y, y_step, columns, lo, hi = (
        f.parameters
    )
    element, lanes = ELEMENT[output], isa.lanes
    low, high = f.broadcast(lo), f.broadcast(hi)

    def down(column: Value, mask: Value | None, adds: bool) -> None:
        scale = None if grouped else w_scale
        common = Columns.load(f, output, scale, bias, column, mask, low, high)
        with f.loop(0, rows) as loop:
            row = loop.index
            here = f.at(sums, row * width + column)
            place = row * y_step + column
            added = f.load_part(f.at(add, place), mask) if adds else None
            if grouped:
                result = common.end(f, f.load(f.vector, here), added)
            else:
                total = f.load(f"<{lanes} x i32>", here) + f.broadcast(f.load("i32", offsets, row))
                scale = f.broadcast(f.load("float", x_scales, row)) if output == "f32" else None
                result = common.finish(f, total, scale, added)
            f.store_part(result, f.at(y, place, element), mask)

    def across(adds: bool) -> None:
        whole = columns // lanes * lanes
        with f.loop(0, whole, lanes) as loop:
            down(loop.index, None, adds)
        with f.when(whole < columns):
            down(whole, f.first_lanes(columns - whole), adds)

    if output != "f32":
        across(adds=False)
        return f
    with f.when(add.is_null()):
        across(adds=False)
    with f.when(add.is_null().equals(0)):
        across(adds=True)
    return f


@cache
def spread_scales(isa: Isa) -> Function:
    """The scale of each row from `row` on, of which each serves `together` of them."""
    f = Function(
        isa,
        "fewbit_spread_scales",
        "ptr x_scale, i64 together, i64 row, i64 rows, ptr scales",
    )
    x_scale, together, row, rows, scales = f.parameters
    with f.loop(0, rows, carried=[row // together, row % together]) as loop:
        number, place = loop.carried
        f.store(f.load("float", x_scale, number), scales, loop.index)
        ends = (place + 1).equals(together)
        loop.carry(f.select(ends, number + 1, number), f.select(ends, 0, place + 1))
    return f
