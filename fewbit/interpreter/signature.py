"""Which function runs, and whether the inputs fit it.

Inputs are checked and never converted, save one case: unsigned integers are taken for signless
ones of the same width, bit for bit, because a signless type holds both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import i8, i16, i32, i64
from xdsl.dialects.func import CallOp as FuncCallOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from fewbit.dialects.graph import CallOp as GraphCallOp
from fewbit.dialects.graph import SubgraphOp
from fewbit.dialects.mico import element_width
from fewbit.errors import InterpretError
from fewbit.interpreter.integers import wrap
from fewbit.interpreter.values import (
    Value,
    bit_width,
    dtype_of,
    element_type,
    mismatch,
    shape_of,
)
from fewbit.ir.locations import place_of

Function: TypeAlias = FuncOp | SubgraphOp

USUAL_NAMES = ("main", "forward")


def choose_function(symbols: Mapping[str, Operation], name: str | None) -> Function:
    """Return the function `name`, or the module's entry: a usual name, or one that none calls."""
    functions = {n: op for n, op in symbols.items() if isinstance(op, FuncOp | SubgraphOp)}
    if name is not None:
        if name not in functions:
            raise InterpretError(f"the module has no function @{name}", hint=_listing(functions))
        return functions[name]
    for usual in USUAL_NAMES:
        if usual in functions:
            return functions[usual]
    called = {callee for op in functions.values() for callee in _callees(op)}
    entries = [op for n, op in functions.items() if n not in called and _is_public(op)]
    if len(entries) != 1:
        raise InterpretError(
            "the module has no single entry; say which function to run", hint=_listing(functions)
        )
    return entries[0]


def _is_public(op: Function) -> bool:
    if isinstance(op, SubgraphOp):
        return True
    visibility = op.sym_visibility
    return bool(op.body.blocks) and (visibility is None or visibility.data == "public")


def _callees(function: Function) -> list[str]:
    return [
        op.callee.root_reference.data
        for op in function.walk()
        if isinstance(op, FuncCallOp | GraphCallOp)
    ]


def _listing(functions: Mapping[str, Operation]) -> str:
    if not functions:
        return "it has no func.func and no graph.subgraph"
    return "it has " + ", ".join(f"@{name}" for name in sorted(functions))


def check_arguments(function: Function, args: Sequence[Any]) -> list[Value]:
    """Return the inputs as arrays; an error names the input, what it must be and what it is."""
    name = function.sym_name.data
    types = function.function_type.inputs.data
    if len(args) != len(types):
        wanted = ", ".join(str(t) for t in types) or "none"
        raise InterpretError(
            f"@{name} takes {len(types)} inputs, {len(args)} given",
            place=place_of(function),
            hint=f"its inputs are {wanted}",
        )
    blocks = function.body.blocks
    names: Sequence[SSAValue | None] = blocks[0].args if blocks else [None] * len(types)
    return [
        _check_argument(function, i, argument, type, arg)
        for i, (argument, type, arg) in enumerate(zip(names, types, args, strict=True))
    ]


def _check_argument(
    function: Function, index: int, argument: SSAValue | None, type: Attribute, given: Any
) -> Value:
    hint = None if argument is None else argument.name_hint
    label = f"input {index}" + (f" (%{hint})" if hint else "") + f" of @{function.sym_name.data}"
    value = _as_array(given, type)
    if value.dtype == object:
        raise InterpretError(
            f"{label}: expected {type}, given {given.__class__.__name__}",
            place=place_of(function),
        )
    value = _as_signless(value, type)
    wrong = mismatch(value, type)
    if wrong is None and not _in_range(value, type):
        wrong = f"expected {type}, given values from {value.min()} to {value.max()}"
    if wrong is None:
        return value
    same_kind = value.dtype == dtype_of(type)
    raise InterpretError(
        f"{label}: {wrong}",
        place=place_of(function),
        hint=None if same_kind else f"convert it with .astype({str(dtype_of(type))!r})",
    )


def _as_array(given: Any, type: Attribute) -> Value:
    """Convert an input; a plain number becomes a scalar of the wanted type, where it is one."""
    if not isinstance(given, int | float) or shape_of(type) != ():
        return np.asarray(given)
    dtype = dtype_of(type)
    if dtype.kind == "b":
        exact = given in (0, 1)
    elif dtype.kind in "iu":
        limits = np.iinfo(dtype)
        exact = isinstance(given, int) and limits.min <= given <= limits.max
    else:
        exact = True
    return np.asarray(given, dtype) if exact else np.asarray(given)


def _in_range(value: Value, type: Attribute) -> bool:
    """Return whether integers that are held in more bits than their type has fit the type."""
    few_bit = element_width(type)
    if few_bit is not None:
        return few_bit.holds(value)
    if value.dtype.kind != "i":
        return True
    width = bit_width(type)
    return width >= 8 * value.dtype.itemsize or bool(np.all(wrap(value, width) == value))


def _as_signless(value: Value, type: Attribute) -> Value:
    element, dtype = element_type(type), dtype_of(type)
    if element not in (i8, i16, i32, i64):
        return value
    if value.dtype.kind != "u" or dtype.kind != "i" or value.dtype.itemsize != dtype.itemsize:
        return value
    return value.view(dtype)
