"""Formulas of `numerics/approximations`, on values of a program: each operation emits an op.

`expand-math` replaces ops of the math dialect by their formulas. Before that, exp and its like are
ops of their own, which other targets know: activation functions are written with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, IntegerType, f32, f64, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from fewbit.dialects.upstream.formulas import FORMULAS, Formula
from fewbit.numerics.approximations import Number
from fewbit.numerics.approximations.activations import ACTIVATIONS, Activation
from fewbit.numerics.approximations.number import Op
from fewbit.passes.linalg.building import scalars as s

_INTEGERS: Final[Mapping[Attribute, IntegerType]] = {f32: i32, f64: i64}
_FLOATS: Final[Mapping[Attribute, AnyFloat]] = {i32: f32, i64: f64}


def _result(emit: Callable[..., Operation]) -> Callable[..., SSAValue]:
    return lambda *operands: emit(*operands).results[0]


def _bits(x: SSAValue) -> SSAValue:
    return arith.BitcastOp(x, _INTEGERS[x.type]).result


def _float_of_bits(x: SSAValue) -> SSAValue:
    return arith.BitcastOp(x, _FLOATS[x.type]).result


def _float_of_integer(x: SSAValue) -> SSAValue:
    return s.to_float(x, _FLOATS[x.type])


def _low_word(x: SSAValue) -> SSAValue:
    return s.to_integer(x, i32)


def _wide(x: SSAValue) -> SSAValue:
    return s.to_float(x, f64)


def _less(x: SSAValue, y: SSAValue) -> SSAValue:
    return s.compare(x, "lt", y)


def _greater(x: SSAValue, y: SSAValue) -> SSAValue:
    return s.compare(x, "gt", y)


def _equal(x: SSAValue, y: SSAValue) -> SSAValue:
    return s.compare(x, "eq", y)


_OPS: Final[Mapping[Op, Callable[..., SSAValue]]] = {
    "add": s.add,
    "sub": s.sub,
    "mul": s.mul,
    "div": s.div,
    "negate": _result(arith.NegfOp),
    "magnitude": s.magnitude,
    "floor": _result(math.FloorOp),
    "sqrt": _result(math.SqrtOp),
    "and": _result(arith.AndIOp),
    "or": _result(arith.OrIOp),
    "xor": _result(arith.XOrIOp),
    "shift_left": _result(arith.ShLIOp),
    "shift_right": _result(arith.ShRSIOp),
    "less": _less,
    "greater": _greater,
    "equal": _equal,
    "select": s.select,
    "bits": _bits,
    "float_of_bits": _float_of_bits,
    "float_of_integer": _float_of_integer,
    "low_word": _low_word,
    "wide": _wide,
    "narrow": s.to_float,
}


@dataclass(frozen=True, eq=False)
class Emitted(Number):
    """A number that is computed when the program runs, by arithmetic alone."""

    value: SSAValue

    def emit(self, op: Op, *operands: Number) -> Number:
        values = [number.value for number in (self, *operands) if isinstance(number, Emitted)]
        return self.same(_OPS[op](*values))

    def constant(self, value: float) -> Number:
        return self.same(s.constant(value, self.value.type))

    def same(self, value: SSAValue) -> Number:
        """Return another number of this kind."""
        return type(self)(value)


_OP_OF: Final[Mapping[Formula, type[Operation]]] = {f: op for op, f in FORMULAS.items()}


@dataclass(frozen=True, eq=False)
class WithMath(Emitted):
    """A number whose functions are ops of the math dialect."""

    def apply(self, formula: Callable[[Number], Number]) -> Number:
        return self.same(cast(Callable[..., Operation], _OP_OF[formula])(self.value).results[0])


def activate(x: SSAValue, activation: Activation) -> SSAValue:
    """Return the function of a scalar, by the operations that kernels do."""
    return cast(WithMath, ACTIVATIONS[activation](WithMath(x))).value
