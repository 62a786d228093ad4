"""What is true of sizes whatever the data is, by the ops that compute them.

A slice is cut to the tensor that it is a slice of, by PyTorch's rules: where it begins and ends may
count from the end, and is moved inside. Of sizes that only a run knows, none of this folds away by
constants. Here each size is reduced to the one that it must be equal to, and compared by that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from fewbit.ir.bindings import is_block, known_integer
from fewbit.passes.memory.size_bounds import CASTS, QUOTIENTS, affine_factor, is_nonnegative

if TYPE_CHECKING:
    from torch_mlir.ir import Value

Known: TypeAlias = "int | Value"
"""A number, or a value that no other is known to be equal to."""

_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_SWAPPED = {"sge": "sle", "sgt": "slt"}


def always_holds(condition: Value) -> bool:
    """Return whether a condition on sizes is true whatever they are."""
    return _Proof().holds(condition) is True


class _Proof:
    def __init__(self) -> None:
        self._known: dict[Any, Known] = {}
        self._products: dict[tuple[Known, int], Value] = {}
        """The first value that was seen of each product with a number."""

    def holds(self, condition: Value) -> bool | None:
        """Return whether a condition is true or false; None where it may be either."""
        if (number := known_integer(condition)) is not None:
            return number != 0
        op = condition.owner
        if is_block(op):
            return None
        if op.name in ("arith.ori", "arith.andi"):
            decisive = op.name == "arith.ori"
            parts = [self.holds(each) for each in op.operands]
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
        return self._compare(op) if op.name == "arith.cmpi" else None

    def _compare(self, op: Any) -> bool | None:
        kind, (a, b) = _PREDICATES[_number(op.attributes["predicate"])], op.operands
        if kind in _SWAPPED:
            kind, a, b = _SWAPPED[kind], b, a
        a, b = self.settled(a), self.settled(b)
        if kind == "eq":
            return True if a == b else None
        if kind == "sle":
            return True if self.at_most(a, b) else None
        if kind != "slt":
            return None
        if self.at_most(b, a):
            return False
        less = self._plus_one(a)
        return True if less is not None and self.at_most(less, b) else None

    def settled(self, value: Value) -> Known:
        """Return what a size must be equal to."""
        if value not in self._known:
            self._known[value] = self._settle(value)
        return self._known[value]

    def _settle(self, value: Value) -> Known:
        if (number := known_integer(value)) is not None:
            return number
        op = value.owner
        if is_block(op):
            return value
        if op.name in CASTS:
            return self.settled(op.operands[0])
        if op.name == "arith.select":
            chosen = self.holds(op.operands[0])
            return value if chosen is None else self.settled(op.operands[1 if chosen else 2])
        if op.name in ("arith.minsi", "arith.maxsi"):
            return self._extreme(value, op)
        if op.name in ("arith.addi", "arith.subi"):
            a, b = map(self.settled, op.operands)
            if b == 0:
                return a
            return b if a == 0 and op.name == "arith.addi" else value
        if op.name in QUOTIENTS:
            return self._quotient(value, op)
        if (factors := self._factors(value)) is not None:
            return self._products.setdefault(factors, value)
        return value

    def _quotient(self, value: Value, op: Any) -> Known:
        """Return the other factor, where a product is divided by one of its factors."""
        product, divisor = map(self.settled, op.operands)
        factors = self._factors(product)
        if divisor == 0 or factors is None or divisor != factors[1]:
            return value
        return factors[0]

    def _factors(self, value: Known) -> tuple[Known, int] | None:
        """Return what is multiplied by a number, and that number."""
        if isinstance(value, int) or is_block(value.owner):
            return None
        op = value.owner
        if op.name == "affine.apply":
            number = affine_factor(op)
            return None if number is None else (self.settled(op.operands[0]), number)
        if op.name != "arith.muli":
            return None
        a, b = map(self.settled, op.operands)
        if isinstance(a, int):
            a, b = b, a
        return (a, b) if isinstance(b, int) else None

    def _extreme(self, value: Value, op: Any) -> Known:
        """Return the smaller or larger of two, if it is known which that is."""
        a, b = map(self.settled, op.operands)
        is_min = op.name == "arith.minsi"
        if self.at_most(a, b):
            return a if is_min else b
        if self.at_most(b, a):
            return b if is_min else a
        return value

    def _plus_one(self, value: Known) -> Known | None:
        """Return the number from which 1 is taken to get this one."""
        if isinstance(value, int):
            return value + 1
        op = value.owner
        if is_block(op) or op.name not in ("arith.subi", "arith.addi"):
            return None
        taken = self.settled(op.operands[1])
        return self.settled(op.operands[0]) if taken == _one_less(op) else None

    def at_most(self, a: Known, b: Known) -> bool:
        """Return whether one number is never larger than another."""
        if a == b:
            return True
        if isinstance(a, int) and isinstance(b, int):
            return a <= b
        if isinstance(a, int) and a <= 0 and not isinstance(b, int) and self.nonnegative(b):
            return True
        upper, lower = self._operands(b, "arith.maxsi"), self._operands(a, "arith.minsi")
        if any(self.at_most(a, each) for each in upper):
            return True
        if any(self.at_most(each, b) for each in lower):
            return True
        below, above = self._operands(b, "arith.minsi"), self._operands(a, "arith.maxsi")
        return (bool(below) and all(self.at_most(a, each) for each in below)) or (
            bool(above) and all(self.at_most(each, b) for each in above)
        )

    def nonnegative(self, value: Known) -> bool:
        if isinstance(value, int):
            return value >= 0
        op = value.owner
        if is_block(op) or is_nonnegative(value):
            return is_nonnegative(value)
        if op.name in ("arith.addi", "arith.muli", "arith.minsi", *QUOTIENTS):
            return all(self.nonnegative(self.settled(each)) for each in op.operands)
        return False

    def _operands(self, value: Known, name: str) -> list[Known]:
        if isinstance(value, int) or is_block(value.owner) or value.owner.name != name:
            return []
        return [self.settled(each) for each in value.owner.operands]


def _one_less(op: Any) -> int:
    return 1 if op.name == "arith.subi" else -1


def _number(attribute: Any) -> int:
    from torch_mlir import ir

    return ir.IntegerAttr(attribute).value
