"""The most that a size can be, where data decides on it.

How many elements a mask chooses, no shape tells. But such a size is that of a slice, cut to the
tensor which it is a slice of, and so are sums and products of such sizes: each has a bound that is
computed from shapes alone. Memory is planned by bounds; what runs has the true sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from fewbit.errors import UnsupportedError
from fewbit.ir.bindings import index_constant, is_block, known_integer
from fewbit.ir.memref_views import VIEWS

if TYPE_CHECKING:
    from torch_mlir.ir import Value

PURE = ("arith.", "affine.", "index.", "math.")
"""Dialects whose ops compute sizes of others."""
DIMS = ("memref.dim", "tensor.dim")
CASTS = ("arith.index_cast", "arith.extsi")
QUOTIENTS = (
    "arith.divsi", "arith.divui", "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui",
)  # fmt: skip

Bound: TypeAlias = "int | Value | None"
"""A number, a value of type index, or None where there is no bound."""


def is_size_computation(op: Any) -> bool:
    """Return whether an op computes sizes, given sizes: of a view, the shape is asked for."""
    return op.name in (*DIMS, *VIEWS) or op.name.startswith(PURE)


def depends_on_data(value: Value) -> bool:
    """Return whether a size is computed from what memory contains, not from shapes alone."""
    from torch_mlir import ir

    owner = value.owner
    if is_block(owner):
        has_size = isinstance(value.type, ir.IndexType | ir.ShapedType)
        return owner.owner.operation.name != "func.func" or not has_size
    if not is_size_computation(owner):
        return True
    return any(map(depends_on_data, owner.operands))


def upper_bound(value: Value) -> Bound:
    """Return the most that a size can be, computed at the insertion point; None if unknown."""
    if (number := known_integer(value)) is not None:
        return number
    if not depends_on_data(value):
        return _as_index(value)
    op = value.owner
    if is_block(op):
        return None
    rule = _RULES.get(op.name)
    return None if rule is None else rule(op)


def planned_size(size: Value) -> int | Value:
    """Return what memory is planned with: a size, or its bound if data decides on it."""
    if not depends_on_data(size):
        return size
    bound = upper_bound(size)
    if bound is None:
        raise UnsupportedError(
            f"the size of a buffer depends on data ({size.owner}), and has no bound",
            hint="this target plans all memory before it runs: cut the tensor to a size that is "
            "known from the shapes of inputs",
        )
    return bound


def as_value(bound: int | Value) -> Value:
    return index_constant(bound) if isinstance(bound, int) else bound


def _as_index(value: Value) -> Value:
    from torch_mlir import ir
    from torch_mlir.dialects import arith

    index = ir.IndexType.get()
    return value if value.type == index else arith.IndexCastOp(index, value).result


def _least(op: Any) -> Bound:
    bounds = [each for each in map(upper_bound, op.operands) if each is not None]
    return _combined("MinSIOp", min, *bounds) if len(bounds) == 2 else next(iter(bounds), None)


def _most(*values: Value) -> Bound:
    a, b = map(upper_bound, values)
    for number, other in ((a, b), (b, a)):
        is_size = other is not None and not isinstance(other, int) and is_nonnegative(other)
        if isinstance(number, int) and number <= 0 and is_size:
            return other
    return _combined("MaxSIOp", max, a, b)


def _largest(op: Any) -> Bound:
    return _most(*op.operands)


def _either(op: Any) -> Bound:
    return _most(*list(op.operands)[1:])


def _same(op: Any) -> Bound:
    return upper_bound(op.operands[0])


def _sum(op: Any) -> Bound:
    return _add(*map(upper_bound, op.operands))


def _difference(op: Any) -> Bound:
    a, b = op.operands
    taken = known_integer(b)
    if taken is None:
        return upper_bound(a) if is_nonnegative(b) else None
    return _add(upper_bound(a), -taken)


def _product(op: Any) -> Bound:
    if not all(map(is_nonnegative, op.operands)):
        return None
    return _mul(*map(upper_bound, op.operands))


def _quotient(op: Any) -> Bound:
    """Divide by a number: upward, which is no less than what any rounding gives."""
    a, b = op.operands
    divisor = known_integer(b)
    if divisor is None or divisor <= 0 or not is_nonnegative(a):
        return None
    return _divide(upper_bound(a), divisor)


def _affine(op: Any) -> Bound:
    from torch_mlir import ir

    map = ir.AffineMapAttr(op.attributes["map"]).value
    if not all(is_nonnegative(each) for each in op.operands):
        return None
    return _expression(map.results[0], list(op.operands), map.n_dims)


def affine_factor(op: Any) -> int | None:
    """Return the factor of an `affine.apply` that multiplies its only operand, else None."""
    from torch_mlir import ir

    (expr,) = ir.AffineMapAttr(op.attributes["map"]).value.results
    if not isinstance(expr, ir.AffineMulExpr) or len(op.operands) != 1:
        return None
    of_operand = isinstance(expr.lhs, ir.AffineDimExpr | ir.AffineSymbolExpr)
    return expr.rhs.value if of_operand and isinstance(expr.rhs, ir.AffineConstantExpr) else None


def _expression(expr: Any, operands: list[Any], dims: int) -> Bound:
    """Return the bound of an affine expression, where it grows with its operands."""
    from torch_mlir import ir

    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    if isinstance(expr, ir.AffineDimExpr):
        return upper_bound(operands[expr.position])
    if isinstance(expr, ir.AffineSymbolExpr):
        return upper_bound(operands[dims + expr.position])
    if isinstance(expr, ir.AffineAddExpr):
        return _add(*(_expression(each, operands, dims) for each in (expr.lhs, expr.rhs)))
    if not isinstance(expr.rhs, ir.AffineConstantExpr) or expr.rhs.value < 0:
        return None
    left, number = _expression(expr.lhs, operands, dims), expr.rhs.value
    if isinstance(expr, ir.AffineMulExpr):
        return _mul(left, number)
    if isinstance(expr, ir.AffineModExpr):
        return number - 1
    return _divide(left, number)


def _dimension(op: Any) -> Bound:
    """Return the bound of a dimension: of memory that is allocated with this size, that size's."""
    from torch_mlir import ir

    source, axis = op.operands[0], known_integer(op.operands[1])
    if axis is None or is_block(source.owner):
        return None
    if source.owner.name not in ("memref.alloc", "tensor.empty"):
        return None
    type = ir.ShapedType(source.type)
    before = [i for i in range(axis) if type.is_dynamic_dim(i)]
    return upper_bound(source.owner.operands[len(before)])


_RULES: dict[str, Callable[[Any], Any]] = {
    "arith.minsi": _least,
    "arith.maxsi": _largest,
    "arith.select": _either,
    "arith.addi": _sum,
    "arith.subi": _difference,
    "arith.muli": _product,
    "affine.apply": _affine,
    **dict.fromkeys(DIMS, _dimension),
    **dict.fromkeys(CASTS, _same),
    **dict.fromkeys(QUOTIENTS, _quotient),
}


def is_nonnegative(value: Value) -> bool:
    """Return whether a number is known not to be negative."""
    if (number := known_integer(value)) is not None:
        return number >= 0
    op = value.owner
    if is_block(op):
        return op.owner.operation.name == "func.func"
    if op.name in DIMS:
        return True
    if op.name == "arith.maxsi":
        return any(map(is_nonnegative, op.operands))
    if op.name in ("arith.addi", "arith.muli", "arith.minsi", *CASTS, *QUOTIENTS):
        return all(map(is_nonnegative, op.operands))
    return op.name == "arith.select" and all(map(is_nonnegative, list(op.operands)[1:]))


def _add(a: Bound, b: Bound) -> Bound:
    return _combined("AddIOp", int.__add__, a, b)


def _mul(a: Bound, b: Bound) -> Bound:
    return _combined("MulIOp", int.__mul__, a, b)


def _divide(a: Bound, divisor: int) -> Bound:
    return _combined("CeilDivSIOp", lambda x, y: -(-x // y), a, divisor)


def _combined(name: str, known: Callable[[int, int], int], a: Bound, b: Bound) -> Bound:
    """Return what an op of arith makes of two bounds, if both are there."""
    from torch_mlir.dialects import arith

    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return known(a, b)
    return getattr(arith, name)(as_value(a), as_value(b)).result
