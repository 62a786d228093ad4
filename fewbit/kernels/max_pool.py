"""The largest value of each window of a channels-last (NHWC) image.

    void fewbit_max_pool_f32(ptr x, ptr y, ptr sizes, i64 thread, i64 threads)
    void fewbit_max_pool_i8(the same)
    void fewbit_max_pool_steps(ptr x, ptr y, ptr q, ptr steps, ptr sizes, i64 thread, i64 threads)

`sizes` are those of a depthwise convolution. What is outside the image is left out. With `steps`, q
is the result of floats in whole steps, as bytes; y may be null.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Literal

from fewbit.kernels.depthwise import neighbours
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.image import Sizes
from fewbit.kernels.integer.output import advance, pointers
from fewbit.kernels.kernel import Kernel
from fewbit.kernels.steps import Rounding
from fewbit.toolchain.isa import Isa

Pooled = Literal["f32", "i8", "steps"]
VECTORS = 4
"""Vectors of channels that are taken together; one register of bytes is as many."""


@dataclass(frozen=True)
class MaxPool(Kernel):
    """Max pooling with any kernel, stride and padding, of floats or of bytes."""

    output: Pooled = "f32"

    @property
    def symbol(self) -> str:
        return f"fewbit_max_pool_{self.output}"

    def function(self) -> Function:
        element = "i8" if self.output == "i8" else "float"
        parameters = f"ptr x, {pointers(self.output)}, ptr sizes, i64 thread, i64 threads"
        f = Function(self.isa, self.symbol, parameters, public=True)
        x, *outputs, sizes, thread, threads = f.parameters
        s = Sizes.load(f, sizes)
        with neighbours(f, s, thread, threads, 1) as p:
            f.call(
                max_tile(self.isa, self.output),
                f.at(x, p.x, element),
                s.w * s.x_stride,
                s.x_stride,
                p.rows,
                p.columns,
                *advance(f, self.output, outputs, p.pixel * s.y_stride),
                s.c,
            )
        return f


@cache
def max_tile(isa: Isa, output: Pooled) -> Function:
    """Return the function for all channels of one window of `rows` by `columns` pixels."""
    f = Function(
        isa,
        f"fewbit_max_tile_{output}",
        f"ptr x, i64 row_step, i64 column_step, i64 rows, i64 columns, {pointers(output)}, i64 c",
    )
    x, row_step, column_step, rows, columns, y, *bytes_, c = f.parameters
    integer, lanes = output == "i8", isa.lanes
    element = "i8" if integer else "float"
    lowest = f.constant("i8", -128) if integer else f.number(-inf)
    rounding = Rounding.load(f, bytes_[1]) if bytes_ else None

    def largest(channel: Value, width: int, vectors: int, mask: Value | None) -> list[Value]:
        kind = f"<{width} x {element}>"
        starts = [f.broadcast(lowest, width)] * vectors
        with f.loop(0, rows, carried=starts) as down:
            row = f.at(x, down.index * row_step + channel, element)
            with f.loop(0, columns, carried=down.carried) as along:
                pixel = f.at(row, along.index * column_step, element)
                seen = [
                    f.load(kind, pixel, v) if mask is None else f.load_part(pixel, mask, element)
                    for v in range(vectors)
                ]
                along.carry(*map(larger, seen, along.carried))
            down.carry(*along.results)
        return down.results

    def larger(a: Value, b: Value) -> Value:
        """Return the larger one; b, where that is NaN, and a, where that is."""
        most = f.select(a > b, a, b)
        return most if integer else f.select(a.differs(a), a, most)

    def store(value: Value, at: Value, mask: Value | None) -> None:
        if rounding is None:
            f.store_part(value, f.at(y, at, element), mask)
            return
        f.store_part(rounding.bytes_of(f, value), f.at(bytes_[0], at, "i8"), mask)
        with f.when(y.is_null().equals(0)):
            f.store_part(value, f.at(y, at), mask)

    together = lanes * VECTORS
    width, vectors = (together, 1) if integer else (lanes, VECTORS)
    whole, full = c // together * together, c // lanes * lanes
    with f.loop(0, whole, together) as loop:
        for v, value in enumerate(largest(loop.index, width, vectors, None)):
            store(value, loop.index + v * lanes, None)
    with f.loop(whole, full, lanes) as loop:
        store(largest(loop.index, lanes, 1, None)[0], loop.index, None)
    with f.when(full < c):
        mask = f.first_lanes(c - full)
        store(largest(full, lanes, 1, mask)[0], full, mask)
    return f
