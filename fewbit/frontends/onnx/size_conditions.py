"""Comparisons of sizes, by which exporters choose between branches whose results differ in shape.

They are tensors of the program like other comparisons, and known as conditions besides. Where a
program cannot have both branches, it has the one that the sizes of the example take, and checks
that the sizes at run time take it, too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch.utils._sympy import numbers, value_ranges

from fewbit.frontends.onnx.sizes import objects
from fewbit.frontends.onnx.table import Call
from fewbit.frontends.onnx.values import Size, Traced, expression_of

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Equal": operator.eq,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
}
_OPPOSITES: dict[Any, Callable[[Any, Any], Any]] = {
    operator.eq: operator.ne,
    operator.ne: operator.eq,
    operator.lt: operator.ge,
    operator.ge: operator.lt,
    operator.gt: operator.le,
    operator.le: operator.gt,
}
_SAME_TRUTH = ("Cast", "Squeeze", "Unsqueeze", "Reshape")


@dataclass(frozen=True)
class SizeCondition:
    """Two sizes, and how they are compared."""

    compare: Callable[[Any, Any], Any]
    a: Size
    b: Size

    def holds(self) -> bool | None:
        """Return whether the sizes of the example meet it; None where they depend on data."""
        a, b = _example(self.a), _example(self.b)
        return None if a is None or b is None else bool(self.compare(a, b))

    def requirement(self) -> Any:
        """Return what sizes must meet so that it is as with the example's; unequal ones stay so.

        That a size is not 1 is nothing that a tracer of torch could be asked to keep: it says so of
        its own accord.
        """
        if self.compare not in (operator.eq, operator.ne):
            compare = self.compare if self.holds() else _OPPOSITES[self.compare]
            return compare(self.a, self.b)
        a, b = _example(self.a), _example(self.b)
        if a == b:
            return self.a == self.b
        return self.a > self.b if cast(int, a) > cast(int, b) else self.a < self.b


def _example(size: Size) -> int | None:
    if not isinstance(size, torch.SymInt):
        return int(size)
    known: Any = cast(Any, size).node
    return int(known.hint) if known.has_hint() else None


def is_checked(requirement: Any) -> bool:
    """Return whether a program checks it; 2 as a bound of an input's size is torch's habit."""
    if not isinstance(requirement, torch.SymBool):
        return True
    expression = expression_of(cast(Any, requirement))
    return _is_certain(expression, 0) or not _is_certain(expression, 2)


def _is_certain(expression: Any, least: int) -> bool:
    any_size: Any = cast(Any, value_ranges).ValueRanges(least, cast(Any, numbers).int_oo)
    ranges = dict.fromkeys(expression.free_symbols, any_size)
    bounds: Any = cast(Any, value_ranges).bound_sympy(expression, ranges)
    return bool(bounds.is_singleton() and bounds.lower == True)  # noqa: E712  # a value of sympy's


def size_condition(call: Call) -> SizeCondition | None:
    """The condition that a call gives; None where it is about anything but two sizes."""
    if call.op in _COMPARISONS:
        arrays = [objects(value) for value in call.inputs]
        items = [array.flat[0] for array in arrays if array is not None and array.size == 1]
        return SizeCondition(_COMPARISONS[call.op], *items) if len(items) == 2 else None
    value = call.input(0)
    condition = value.condition if isinstance(value, Traced) else None
    if condition is not None and call.op == "Not":
        return replace(condition, compare=_OPPOSITES[condition.compare])
    return condition if call.op in _SAME_TRUTH else None
