"""Functions of the math dialect as arithmetic, which LLVM turns into vector code.

A call of the math library is one number at a time, and needs that library. The formulas of
`numerics/approximations` have no branches and no tables, so that a loop over them is vectorized.
Here they run on values of the program instead of numpy arrays: each operation emits an op.

Scalars of f32 are replaced; f16 and bf16 are computed in f32. f64 is left to the math library, and
so is what processors have instructions for (ceil, floor, round, sqrt, …).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects.upstream.math import ErfcOp
from fewbit.numerics.approximations import Number, circular, formulas, powers
from fewbit.numerics.approximations.number import Op
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import Lowering, lower_ops

Formula: TypeAlias = Callable[..., Number]

_FORMULAS: Final[Mapping[type[Operation], Formula]] = {
    math.AcosOp: circular.acos,
    math.AsinOp: circular.asin,
    math.AtanOp: circular.atan,
    math.Atan2Op: circular.atan2,
    math.AtanhOp: circular.atanh,
    math.CbrtOp: powers.cbrt,
    math.CosOp: circular.cos,
    math.CoshOp: formulas.cosh,
    math.ErfOp: formulas.erf,
    ErfcOp: formulas.erfc,
    math.ExpOp: formulas.exp,
    math.Exp2Op: formulas.exp2,
    math.ExpM1Op: formulas.expm1,
    math.LogOp: formulas.log,
    math.Log10Op: formulas.log10,
    math.Log1pOp: formulas.log1p,
    math.Log2Op: formulas.log2,
    math.RsqrtOp: powers.rsqrt,
    math.SinOp: circular.sin,
    math.SinhOp: formulas.sinh,
    math.TanOp: circular.tan,
    math.TanhOp: formulas.tanh,
}


@dataclass(frozen=True)
class ExpandMath(ModulePass):
    """Turn exp, log, tanh, sin and their like into arithmetic."""

    name = "expand-math"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        table: dict[type[Operation], Lowering] = {
            kind: _by(formula) for kind, formula in _FORMULAS.items()
        }
        lower_ops(op, {**table, math.PowFOp: _powf, math.FPowIOp: _fpowi})


def _by(formula: Formula) -> Lowering:
    def lower(op: Operation) -> Sequence[SSAValue] | None:
        return _in_f32(op.results[0].type, formula, op.operands)

    return lower


def _in_f32(
    type: Attribute, formula: Formula, floats: Sequence[SSAValue]
) -> Sequence[SSAValue] | None:
    if not isinstance(type, Float32Type | Float16Type | BFloat16Type):
        return None
    result = formula(*(_Emitted(s.to_float(value, f32)) for value in floats))
    return [s.to_float(cast(_Emitted, result).value, type)]


def _powf(op: math.PowFOp) -> Sequence[SSAValue] | None:
    exponent = _constant_value(op.rhs)
    if exponent is None or not _is_short(exponent):
        return _in_f32(op.result.type, powers.powf, op.operands)
    return _in_f32(op.result.type, _raising_to(int(exponent)), [op.lhs])


def _fpowi(op: math.FPowIOp) -> Sequence[SSAValue] | None:
    exponent = _constant_value(op.rhs)
    if exponent is not None and _is_short(exponent):
        return _in_f32(op.result.type, _raising_to(int(exponent)), [op.lhs])

    def power(x: Number) -> Number:
        # Integers of up to 53 bits are exact in f64.
        return powers.power(x, _Emitted(s.to_float(op.rhs, f64)))

    return _in_f32(op.result.type, power, [op.lhs])


def _raising_to(exponent: int) -> Formula:
    def power(x: Number) -> Number:
        return powers.power_of_integer(x, exponent)

    return power


def _is_short(exponent: float) -> bool:
    return exponent.is_integer() and abs(exponent) <= powers.LARGEST_PRODUCT


def _constant_value(value: SSAValue) -> float | None:
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp):
        return None
    attribute = owner.value
    if isinstance(attribute, FloatAttr | IntegerAttr):
        return float(cast(Any, attribute).value.data)
    return None


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
class _Emitted(Number):
    """A number that is computed when the program runs."""

    value: SSAValue

    def emit(self, op: Op, *operands: Number) -> Number:
        values = [number.value for number in (self, *operands) if isinstance(number, _Emitted)]
        return _Emitted(_OPS[op](*values))

    def constant(self, value: float) -> Number:
        return _Emitted(s.constant(value, self.value.type))
