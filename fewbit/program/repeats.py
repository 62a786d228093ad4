"""Functions that stand for parts of a program which repeat, and the calls of them.

Attributes say what `outline-repeats` knows of them. A function has the number of its calls and the
names of the constants that it reads, those of the first call; another call names its own, in the
same order. A result is the new value of an argument, `{fewbit.updates = 1}`, as in the entry, or
has the sizes of one, `{fewbit.sized_like = 0}`, or sizes that are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation

from fewbit.program.state import UPDATES

REPEATED = "fewbit.repeated"
CONSTANTS = "fewbit.constants"
SIZED_LIKE = "fewbit.sized_like"


def repeated_name(number: int) -> str:
    """Return what a function is called: a name that no C name can meet."""
    return f"program.repeated_{number}"


def repeated_functions(module: ModuleOp) -> dict[str, FuncOp]:
    """Return the functions that stand for parts, by name."""
    ops = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    return {op.sym_name.data: op for op in ops if REPEATED in op.attributes}


def calls_of_repeated(entry: FuncOp, functions: Mapping[str, FuncOp]) -> list[CallOp]:
    """Return the calls of such functions, in their order."""
    calls = [op for op in entry.body.block.ops if isinstance(op, CallOp)]
    return [call for call in calls if call.callee.root_reference.data in functions]


def count_of(op: Operation) -> int:
    """Return how often the function that an op is in is called."""
    function = _function_of(op)
    if function is None or REPEATED not in function.attributes:
        return 1
    return cast("IntegerAttr[Any]", function.attributes[REPEATED]).value.data


def replacements_for(op: Operation) -> list[dict[str, str]]:
    """Return the constants that each call of the function that an op is in reads for others."""
    function = _function_of(op)
    module = None if function is None else function.parent_op()
    if function is None or REPEATED not in function.attributes or not isinstance(module, ModuleOp):
        return [{}]
    named = {function.sym_name.data: function}
    entries = [
        each for each in module.body.block.ops if isinstance(each, FuncOp) and each.body.blocks
    ]
    calls = [call for entry in entries for call in calls_of_repeated(entry, named)]
    return [names_for(call, function) for call in calls]


def _function_of(op: Operation) -> FuncOp | None:
    above: Operation | None = op
    while above is not None and not isinstance(above, FuncOp):
        above = above.parent_op()
    return above


def names_for(call: CallOp, function: FuncOp) -> dict[str, str]:
    """Return the constants that a call reads in place of others."""
    if CONSTANTS not in call.attributes:
        return {}
    read = cast("ArrayAttr[StringAttr]", function.attributes[CONSTANTS])
    given = cast("ArrayAttr[SymbolRefAttr]", call.attributes[CONSTANTS])
    return {
        old.data: new.root_reference.data
        for old, new in zip(read, given, strict=True)
        if old.data != new.root_reference.data
    }


def mark_results(function: FuncOp, updates: Mapping[int, int], like: Mapping[int, int]) -> None:
    """Say of results which arguments they update, and which have their sizes."""
    marks: list[dict[str, Attribute]] = [{} for _ in function.function_type.outputs]
    for name, numbers in ((UPDATES, updates), (SIZED_LIKE, like)):
        for result, argument in numbers.items():
            marks[result][name] = IntegerAttr(argument, i64)
    function.properties["res_attrs"] = ArrayAttr([DictionaryAttr(mark) for mark in marks])


def sized_like(function: FuncOp) -> dict[int, int]:
    """Return, by the number of a result, the argument that has its sizes."""
    marks = cast("ArrayAttr[DictionaryAttr]", function.properties["res_attrs"])
    numbers = {i: mark.data.get(SIZED_LIKE) for i, mark in enumerate(marks)}
    return {
        i: cast("IntegerAttr[Any]", number).value.data
        for i, number in numbers.items()
        if number is not None
    }
