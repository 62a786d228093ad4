"""Activation functions of vectors: the formulas of `numerics/approximations` as instructions.

Each operation is rounded on its own, as in the loops that a program has where no kernel applies
them. Products of integers activate sums before they store them; those of floats, whose tiles are
many, go once more over each tile while it is near.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.isa import Isa
from fewbit.numerics.approximations.activations import ACTIVATIONS, Activation
from fewbit.numerics.approximations.number import Number, Op

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


def activated(x: Value, activation: Activation | None) -> Value:
    """The function of each lane; the lanes themselves, if there is none."""
    if activation is None:
        return x
    result = ACTIVATIONS[activation](_Emitted(x))
    assert isinstance(result, _Emitted)
    return result.value


@dataclass(frozen=True, eq=False)
class _Emitted(Number):
    """Numbers that a kernel computes: a vector of floats, integers or conditions."""

    value: Value

    def emit(self, op: Op, *operands: Number) -> Number:
        others = [number.value for number in operands if isinstance(number, _Emitted)]
        return _Emitted(_emit(op, self.value, *others))

    def constant(self, value: float) -> Number:
        f, kind = self.value.function, self.value.type
        element = "float" if _is_float(self.value) else "i32"
        number = str(f.number(float(np.float32(value)))) if element == "float" else str(int(value))
        lanes = ", ".join([f"{element} {number}"] * f.isa.lanes)
        return _Emitted(Value(f, kind, f"<{lanes}>"))


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

    def at(place: Value, mask: Value | None) -> None:
        done = activated(f.load_part(place, mask), activation)
        f.store_part(f.clamp(done, low, high), place, mask)

    whole = columns // isa.lanes * isa.lanes
    with f.loop(0, rows) as down:
        row = f.at(y, down.index * y_step)
        with f.loop(0, whole, isa.lanes) as across:
            at(f.at(row, across.index), None)
        with f.when(whole < columns):
            at(f.at(row, whole), f.first_lanes(columns - whole))
    return f
