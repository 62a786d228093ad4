"""Bodies of named linalg ops: what they compute of one element of each operand.

Elements narrower than the output are converted first, as MLIR's named ops do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerType
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, BlockArgument, Operation, Region, SSAValue

Body = Callable[[Sequence[SSAValue], Attribute], SSAValue]


def _cast(value: SSAValue, target: Attribute, *, unsigned: bool = False) -> SSAValue:
    """Convert a value to the output's element type as MLIR's named ops do."""
    source = value.type
    if source == target:
        return value
    if isinstance(source, AnyFloat) and isinstance(target, AnyFloat):
        cast_op = arith.ExtFOp if source.bitwidth < target.bitwidth else arith.TruncFOp
    elif isinstance(source, IntegerType) and isinstance(target, IntegerType):
        extend_op = arith.ExtUIOp if unsigned else arith.ExtSIOp
        cast_op = extend_op if source.bitwidth < target.bitwidth else arith.TruncIOp
    elif isinstance(source, IntegerType):
        cast_op = arith.UIToFPOp if unsigned else arith.SIToFPOp
    else:
        cast_op = arith.FPToUIOp if unsigned else arith.FPToSIOp
    return cast(Any, cast_op)(value, target).result


def _pick(
    type: Attribute, on_floats: type[Operation], on_integers: type[Operation]
) -> Callable[..., Any]:
    return on_floats if isinstance(type, AnyFloat) else on_integers


def multiply_add(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
    product = _pick(out, arith.MulfOp, arith.MuliOp)(_cast(args[0], out), _cast(args[1], out))
    return _pick(out, arith.AddfOp, arith.AddiOp)(args[-1], product).result


def multiply_add_offsets(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
    """Multiply and add, zero points (the third and fourth argument) subtracted first."""
    lhs = arith.SubiOp(_cast(args[0], out), _cast(args[2], out))
    rhs = arith.SubiOp(_cast(args[1], out), _cast(args[3], out))
    return arith.AddiOp(args[-1], arith.MuliOp(lhs, rhs)).result


def combine(
    on_floats: type[Operation], on_integers: type[Operation], *, unsigned: bool = False
) -> Body:
    def body(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
        element = _cast(args[0], out, unsigned=unsigned)
        return _pick(out, on_floats, on_integers)(args[-1], element).result

    return body


def unary(op: type[Operation], on_integers: type[Operation] | None = None) -> Body:
    def body(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
        return _pick(out, op, on_integers or op)(_cast(args[0], out)).result

    return body


def binary(op: type[Operation], on_integers: type[Operation], *, unsigned: bool = False) -> Body:
    def body(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
        lhs, rhs = (_cast(arg, out, unsigned=unsigned) for arg in args[:2])
        return _pick(out, op, on_integers)(lhs, rhs).result

    return body


def square(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
    value = _cast(args[0], out)
    return _pick(out, arith.MulfOp, arith.MuliOp)(value, value).result


def reciprocal(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
    one = arith.ConstantOp(FloatAttr(1.0, cast(AnyFloat, out)))
    return arith.DivfOp(one, _cast(args[0], out)).result


def region(body: Body, operands: Sequence[SSAValue]) -> Region:
    types = NamedOperation.body_arg_types(operands)

    @Builder.implicit_region(types)
    def region(args: tuple[BlockArgument, ...]) -> None:
        YieldOp(body(args, types[-1]))

    return region
