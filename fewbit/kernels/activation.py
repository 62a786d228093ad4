"""Activation functions of vectors: the formulas of `numerics/approximations` as instructions.

Each operation is rounded on its own, as in the loops that a program has where no kernel applies
them. Matmuls of integers activate sums before they store them; those of floats, whose tiles are
many, go once more over each tile while it is near.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from fewbit.kernels.emit import Function, Value
from fewbit.llvm.types import F32, I32, Float, scalar, with_element
from fewbit.numerics.approximations.activations import ACTIVATIONS, Activation
from fewbit.numerics.approximations.number import Number, Op
from fewbit.toolchain.isa import Isa


def with_activation(name: str, activation: Activation | None) -> str:
    """Return the symbol of a kernel that ends in an activation."""
    return name if activation is None else f"{name}_{activation}"


def apply_activation(x: Sequence[Value], activation: Activation | None) -> list[Value]:
    """Return the activation of each lane of some vectors; the lanes themselves, if there is none.

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
        rows = zip(*(number._repeat(count) for number in given), strict=True)
        return _Emitted(tuple(_emit(op, *row) for row in rows))

    def _repeat(self, count: int) -> tuple[Value, ...]:
        """Return so many vectors; a constant is one, repeated for all of them."""
        return self.vectors if len(self.vectors) == count else self.vectors * count

    def constant(self, value: float) -> Number:
        first = self.vectors[0]
        number = float(np.float32(value)) if _is_float(first) else int(value)
        return _Emitted((first.function.constant(first.type, number),))


def _is_float(x: Value) -> bool:
    return isinstance(scalar(x.type), Float)


def _emit(op: Op, x: Value, *others: Value) -> Value:
    return _INSTRUCTIONS[op](x, *others)


def _select(condition: Value, yes: Value, no: Value) -> Value:
    return condition.function.select(condition, yes, no)


def _bits(x: Value) -> Value:
    return x.function.bits(x, with_element(x.type, I32))


def _float_of_bits(x: Value) -> Value:
    return x.function.bits(x, with_element(x.type, F32))


_INSTRUCTIONS: Final[Mapping[Op, Callable[..., Value]]] = {
    "add": Value.__add__,
    "sub": Value.__sub__,
    "mul": Value.__mul__,
    "div": Value.__truediv__,
    "and": Value.__and__,
    "or": Value.__or__,
    "xor": Value.__xor__,
    "shift_left": Value.shift_left,
    "shift_right": Value.shift_right_signed,
    "less": Value.__lt__,
    "greater": Value.__gt__,
    "equal": Value.equals,
    "select": _select,
    "negate": Value.__neg__,
    "bits": _bits,
    "float_of_bits": _float_of_bits,
}


@cache
def activate(isa: Isa, activation: Activation) -> Function:
    """Return the function that activates and clamps a part of a matrix in place."""
    f = Function(
        isa,
        f"fewbit_activate_{activation}",
        "ptr y, i64 y_step, i64 rows, i64 columns, float lo, float hi",
    )
    y, y_step, rows, columns, lo, hi = f.parameters
    low, high = f.broadcast(lo), f.broadcast(hi)

    def at(place: Value, vectors: int, mask: Value | None = None) -> None:
        places = [f.at(place, v * isa.lanes) for v in range(vectors)]
        values = apply_activation([f.load_part(each, mask) for each in places], activation)
        for each, value in zip(places, values, strict=True):
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
