"""Expressions over sizes, as torch's tracer has them in sympy, as ops of arith on indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import sympy
from torch.utils._sympy import functions
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, i1
from xdsl.ir import Operation, SSAValue

_FOLDED: dict[Any, Callable[[SSAValue, SSAValue], Operation]] = {
    sympy.Add: arith.AddiOp,
    sympy.Mul: arith.MuliOp,
    sympy.Max: arith.MaxSIOp,
    sympy.Min: arith.MinSIOp,
    functions.Max: arith.MaxSIOp,
    functions.Min: arith.MinSIOp,
    sympy.And: arith.AndIOp,
    sympy.Or: arith.OrIOp,
    functions.FloorDiv: arith.FloorDivSIOp,
    functions.CleanDiv: arith.FloorDivSIOp,
    functions.Mod: arith.RemSIOp,
}
_COMPARED: dict[Any, str] = {
    sympy.Eq: "eq",
    sympy.Ne: "ne",
    sympy.Lt: "slt",
    sympy.Le: "sle",
    sympy.Gt: "sgt",
    sympy.Ge: "sge",
}


def write_expression(
    expr: Any, sizes: Mapping[Any, SSAValue], ops: list[Operation]
) -> SSAValue | None:
    """Add ops that compute an expression of sizes; None where it has a function without an op."""
    if expr in sizes:
        return sizes[expr]
    if expr.is_Integer:
        return _add(arith.ConstantOp(IntegerAttr(int(expr), IndexType())), ops)
    if expr in (True, False):
        return _add(arith.ConstantOp(IntegerAttr(int(bool(expr)), i1)), ops)
    parts = [write_expression(argument, sizes, ops) for argument in expr.args]
    values = [part for part in parts if part is not None]
    if not values or len(values) < len(parts):
        return None
    kind: Any = expr.func
    if kind in _COMPARED:
        return _add(arith.CmpiOp(values[0], values[1], _COMPARED[kind]), ops)
    if kind is sympy.Not:
        true = _add(arith.ConstantOp(IntegerAttr(1, i1)), ops)
        return _add(arith.XOrIOp(values[0], true), ops)
    if kind is sympy.Pow:
        return _power(values[0], expr.args[1], ops)
    if kind is functions.PythonMod:
        return _remainder(values[0], values[1], ops)
    if kind not in _FOLDED:
        return None
    build = _FOLDED[kind]
    return reduce(lambda a, b: _add(build(a, b), ops), values)


def _remainder(dividend: SSAValue, divisor: SSAValue, ops: list[Operation]) -> SSAValue:
    """Return Python's remainder, which has the sign of the divisor."""
    quotient = _add(arith.FloorDivSIOp(dividend, divisor), ops)
    return _add(arith.SubiOp(dividend, _add(arith.MuliOp(quotient, divisor), ops)), ops)


def _power(base: SSAValue, exponent: Any, ops: list[Operation]) -> SSAValue | None:
    if not exponent.is_Integer or not 0 < int(exponent) <= 8:
        return None
    factors = [base] * int(exponent)
    return reduce(lambda a, b: _add(arith.MuliOp(a, b), ops), factors)


def _add(op: Operation, ops: list[Operation]) -> SSAValue:
    ops.append(op)
    return op.results[0]
