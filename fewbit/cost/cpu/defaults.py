"""Coefficients where nothing was measured, in cycles: those of one Ice Lake server, rounded.

They are also where a fit starts, and what it keeps to where its samples say nothing.
"""

from __future__ import annotations

CLOCK = 2.5e9
"""Cycles in a second, taken for any processor."""

CYCLES: dict[str, float] = {
    "f32.calls": 30, "f32.rows": 4, "f32.located": 4, "f32.table": 28, "f32.edges": 16,
    "f32.steps": 1, "f32.taps": 2, "f32.tiles": 50, "f32.finish": 3,
    "i8.calls": 60, "i8.rows": 8, "i8.located": 10, "i8.table": 14, "i8.pointers": 8,
    "i8.lines": 12, "i8.chunks": 3, "i8.bytes": 3, "i8.offsets": 3, "i8.steps": 1, "i8.fields": 1,
    "i8.taps": 2,
    "i8.apart": 0.8, "i8.apart_loads": 2.5, "i8.parts": 30, "i8.tiles": 12, "i8.groups": 3.5,
    "i8.finish.f32": 9, "i8.finish.i8": 8, "i8.finish.i32": 5,
    "dw32.calls": 40, "dw32.together": 40, "dw32.taps": 0.5, "dw32.weights": 0.5,
    "dw32.dots": 1.6, "dw32.finish": 8,
    "dw8.calls": 60, "dw8.together": 45, "dw8.chunks": 80, "dw8.columns": 3, "dw8.taps": 0.5,
    "dw8.weights": 1.6, "dw8.dots": 1.4, "dw8.finish.f32": 8, "dw8.finish.i8": 7,
    "dw8.finish.i32": 5, "dw8.finish_columns.f32": 9, "dw8.finish_columns.i8": 8,
    "dw8.finish_columns.i32": 5,
    "rows.calls": 17, "rows.rows": 15, "rows.vectors": 3.2,
}  # fmt: skip
"""Cycles of one count of each term."""

FACTORS: dict[str, float] = {
    "f32.weights": 1.3, "f32.panel": 0.3, "f32.x": 1.5, "f32.y": 3,
    "i8.weights": 1.15, "i8.panel": 0.4, "i8.x": 4, "i8.y": 3,
    "dw32.x": 1.5, "dw32.y": 2, "dw8.x": 3, "dw8.y": 2, "rows.x": 2.4, "rows.y": 1,
}  # fmt: skip
"""Factors on the time to read memory, by term."""

READ_CYCLES = (
    (32 << 10, 1 / 64),
    (64 << 10, 1 / 50),
    (1 << 20, 1 / 45),
    (2 << 20, 1 / 12),
    (8 << 20, 1 / 10),
    (32 << 20, 1 / 5.5),
    (64 << 20, 1 / 4.5),
)
"""Cycles to read a byte, by the memory in use."""


def cycles_of(term: str) -> float:
    """Return the cycles of a term; those of small work where it was not measured."""
    return CYCLES.get(term, 4.0)


def factor_of(term: str) -> float:
    return FACTORS.get(term, 1.5)
