"""Numbers that a trace computes from sizes, integers (i64) and floats (f64), as ops of arith."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.fx import Node
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import Float64Type, FloatAttr, i64
from xdsl.ir import Operation, SSAValue

if TYPE_CHECKING:
    from fewbit.frontends.torch.emit import Emitter

Build = Callable[[SSAValue, SSAValue], Operation]
f64 = Float64Type()
_torch = cast(Any, torch)

_INTEGER_OPS: dict[Any, Build] = {
    operator.add: arith.AddiOp,
    operator.sub: arith.SubiOp,
    operator.mul: arith.MuliOp,
    cast(Any, operator).floordiv: arith.FloorDivSIOp,
    _torch.sym_max: arith.MaxSIOp,
    _torch.sym_min: arith.MinSIOp,
    operator.eq: partial(arith.CmpiOp, arg="eq"),
    operator.ne: partial(arith.CmpiOp, arg="ne"),
    operator.lt: partial(arith.CmpiOp, arg="slt"),
    operator.le: partial(arith.CmpiOp, arg="sle"),
    operator.gt: partial(arith.CmpiOp, arg="sgt"),
    operator.ge: partial(arith.CmpiOp, arg="sge"),
}
_FLOAT_OPS: dict[Any, Build] = {
    operator.add: arith.AddfOp,
    operator.sub: arith.SubfOp,
    operator.mul: arith.MulfOp,
    cast(Any, operator).truediv: arith.DivfOp,
}
_ROUNDED: dict[Any, Callable[[SSAValue], Operation] | None] = {
    math.trunc: None,
    _torch.sym_int: None,
    math.floor: math_dialect.FloorOp,
    math.ceil: math_dialect.CeilOp,
}
"""How a float is rounded before what is left of its fraction is cut off."""


def emit_number(emitter: Emitter, node: Node) -> SSAValue | None:
    """The number that a node computes of others; None where it is no such node."""
    if not node.args or not all(_is_number(arg) for arg in node.args):
        return None
    integers = all(_is_integer(arg) for arg in node.args)
    if node.target in _INTEGER_OPS and integers:
        lhs, rhs = (emitter.value(arg) for arg in node.args)
        return emitter.add(_INTEGER_OPS[node.target](lhs, rhs)).results[0]
    if node.target is operator.mod and integers:
        return _remainder(emitter, *node.args)
    if node.target is _torch.sym_float:
        return _float(emitter, node.args[0])
    if node.target in _ROUNDED:
        return _round(emitter, _ROUNDED[node.target], node.args[0])
    if node.target in _FLOAT_OPS:
        lhs, rhs = (_float(emitter, arg) for arg in node.args)
        return emitter.add(_FLOAT_OPS[node.target](lhs, rhs)).results[0]
    return None


def _remainder(emitter: Emitter, dividend: Any, divisor: Any) -> SSAValue:
    """Return Python's remainder, which has the sign of the divisor; of sizes, it is MLIR's."""
    a, b = emitter.value(dividend), emitter.value(divisor)
    if _is_natural(dividend) and _is_natural(divisor):
        return emitter.add(arith.RemSIOp(a, b)).results[0]
    quotient = emitter.add(arith.FloorDivSIOp(a, b)).results[0]
    whole = emitter.add(arith.MuliOp(quotient, b)).results[0]
    return emitter.add(arith.SubiOp(a, whole)).results[0]


def _round(
    emitter: Emitter, before: Callable[[SSAValue], Operation] | None, argument: Any
) -> SSAValue:
    if _is_integer(argument):
        return emitter.value(argument)
    value = _float(emitter, argument)
    if before is not None:
        value = emitter.add(before(value)).results[0]
    return emitter.add(arith.FPToSIOp(value, i64)).results[0]


def _float(emitter: Emitter, argument: Any) -> SSAValue:
    if not isinstance(argument, Node):
        return emitter.add(arith.ConstantOp(FloatAttr(float(argument), f64))).results[0]
    value = emitter.value(argument)
    return value if value.type == f64 else emitter.add(arith.SIToFPOp(value, f64)).results[0]


def _is_number(value: Any) -> bool:
    known = value.meta.get("val") if isinstance(value, Node) else value
    return isinstance(known, int | float | torch.SymInt | torch.SymFloat)


def _is_natural(value: Any) -> bool:
    """Tell whether the trace knows that an integer is not negative."""
    known: Any = value.meta.get("val") if isinstance(value, Node) else value
    if isinstance(known, torch.SymInt):
        return bool(cast(Any, known).node.expr.is_nonnegative)
    return bool(known >= 0)


def _is_integer(value: Any) -> bool:
    known = value.meta.get("val") if isinstance(value, Node) else value
    return isinstance(known, int | torch.SymInt)
