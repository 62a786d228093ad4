"""Activation functions of vectors: the formulas of `numerics/approximations` as instructions.

Each operation is rounded on its own, as in the loops that a program has where no kernel applies
them. Products of integers activate sums before they store them; those of floats, whose tiles are
many, go once more over each tile while it is near.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from fewbit.kernels.emit import Function, Value
from fewbit.numerics.approximations.activations import ACTIVATIONS, Activation
from fewbit.numerics.approximations.number import Number, Op
from fewbit.toolchain.isa import Isa

_BINARY: Final[Mapping[Op, str]] = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "div",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "shift_left": "shl",
    "shift_right": "ashr",
}
_COMPARED: Final[Mapping[Op, tuple[str, str]]] = {
    "less": ("olt", "slt"),
    "greater": ("ogt", "sgt"),
    "equal": ("oeq", "eq"),
}


def named(name: str, activation: Activation | None) -> str:
    """The name of a function that ends in an activation."""
    return name if activation is None else f"{name}_{activation}"


def activated(x: Sequence[Value], activation: Activation | None) -> list[Value]:
    """The function of each lane of some vectors; the lanes themselves, if there is none.

    Operations on several vectors take turns, so that one need not wait for the one before it.
    """
    if activation is None or not x:
        return list(x)
    result = ACTIVATIONS[activation](_Emitted(tuple(x)))
    assert isinstance(result, _Emitted)
    return list(result.vectors)


@dataclass(frozen=True, eq=False)
class _Emitted(Number):
    """Numbers that a kernel computes: vectors of floats, integers or conditions."""

    vectors: tuple[Value, ...]

    def emit(self, op: Op, *operands: Number) -> Number:
        given = [self, *(number for number in operands if isinstance(number, _Emitted))]
        count = max(len(number.vectors) for number in given)
        rows = zip(*(number._repeated(count) for number in given), strict=True)
        return _Emitted(tuple(_emit(op, *row) for row in rows))

    def _repeated(self, count: int) -> tuple[Value, ...]:
        """A constant is one vector, for all of them."""
        return self.vectors if len(self.vectors) == count else self.vectors * count

    def constant(self, value: float) -> Number:
        first = self.vectors[0]
        f, is_float = first.function, _is_float(first)
        number = (
            f.number(float(np.float32(value))) if is_float else Value(f, "i32", str(int(value)))
        )
        lanes = ", ".join([f"{number.type} {number}"] * f.isa.lanes)
        return _Emitted((Value(f, first.type, f"<{lanes}>"),))


def _is_float(x: Value) -> bool:
    return "float" in x.type


def _emit(op: Op, x: Value, *others: Value) -> Value:
    f = x.function
    if op in _BINARY:
        name = f"f{_BINARY[op]}" if _is_float(x) else _BINARY[op]
        return f.set(x.type, f"{name} {x.type} {x}, {others[0]}")
    if op in _COMPARED:
        of_floats, of_integers = _COMPARED[op]
        how = f"fcmp {of_floats}" if _is_float(x) else f"icmp {of_integers}"
        return f.set(f"<{f.isa.lanes} x i1>", f"{how} {x.type} {x}, {others[0]}")
    return _OTHERS[op](f, x, *others)


def _negated(f: Function, x: Value) -> Value:
    return f.set(x.type, f"fneg {x.type} {x}")


def _bits(f: Function, x: Value) -> Value:
    return f.bits(x, f"<{f.isa.lanes} x i32>")


def _float_of_bits(f: Function, x: Value) -> Value:
    return f.bits(x, f.vector)


_OTHERS: Final[Mapping[Op, Callable[..., Value]]] = {
    "select": Function.select,
    "negate": _negated,
    "bits": _bits,
    "float_of_bits": _float_of_bits,
}


@cache
def activate(isa: Isa, activation: Activation) -> Function:
    """A part of a matrix in place: the function of each number, and then the bounds."""
    f = Function(
        isa,
        f"fewbit_activate_{activation}",
        "ptr y, i64 y_step, i64 rows, i64 columns, float lo, float hi",
    )
    y, y_step, rows, columns, lo, hi = f.parameters
    low, high = f.broadcast(lo), f.broadcast(hi)

    def at(place: Value, vectors: int, mask: Value | None = None) -> None:
        places = [f.at(place, v * isa.lanes) for v in range(vectors)]
        done = activated([f.load_part(each, mask) for each in places], activation)
        for each, value in zip(places, done, strict=True):
            f.store_part(f.clamp(value, low, high), each, mask)

    together = isa.tile_vectors * isa.lanes
    many, whole = columns // together * together, columns // isa.lanes * isa.lanes
    with f.loop(0, rows) as down:
        row = f.at(y, down.index * y_step)
        with f.loop(0, many, together) as across:
            at(f.at(row, across.index), isa.tile_vectors)
        with f.loop(many, whole, isa.lanes) as across:
            at(f.at(row, across.index), 1)
        with f.when(whole < columns):
            at(f.at(row, whole), 1, f.first_lanes(columns - whole))
    return f
