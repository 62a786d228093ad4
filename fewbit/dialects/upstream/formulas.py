"""Which formula of `numerics/approximations` computes an op of the math dialect, in float32.

`expand-math` writes it as arithmetic into a program, and the interpreter evaluates it, so that both
give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from fewbit.dialects.upstream.math import ErfcOp
from fewbit.numerics.approximations import Number, circular, formulas, powers

Formula: TypeAlias = Callable[..., Number]

FORMULAS: Final[Mapping[type[Operation], Formula]] = {
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


def product_formula(op: math.PowFOp | math.FPowIOp) -> Formula | None:
    """Return the power of the first operand as products, where the second is a small constant."""
    exponent = _constant_value(op.rhs)
    if exponent is None or not exponent.is_integer() or abs(exponent) > powers.LARGEST_PRODUCT:
        return None
    whole = int(exponent)

    def power(x: Number) -> Number:
        return powers.power_of_integer(x, whole)

    return power


def _constant_value(value: SSAValue) -> float | None:
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp):
        return None
    attribute = owner.value
    if isinstance(attribute, FloatAttr | IntegerAttr):
        return float(cast(Any, attribute).value.data)
    return None
