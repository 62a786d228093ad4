"""State: inputs of a program whose new values are among its outputs.

Attributes of the entry function's results say so, `{fewbit.updates = 2, fewbit.initial = @keys}`:
the number of the input, and the constant that it starts from. Whoever runs the program may keep
such a pair in one memory, in which it is then updated.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    SymbolRefAttr,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fewbit.dialects.mico import ConstantOp
from fewbit.interpreter.mico.constants import constant_value
from fewbit.interpreter.signature import choose_function
from fewbit.ir.symbols import SymbolTable, using
from fewbit.program.artifact import STATE_FILE
from fewbit.program.store import WeightStore
from fewbit.program.tensor_file import write

UPDATES = "fewbit.updates"
INITIAL = "fewbit.initial"
Array = np.ndarray[Any, Any]
Updates = Mapping[int, tuple[int, str]]
"""By the number of an output, the input whose new value it is, and the constant it starts from."""


def mark_updates(entry: FuncOp, updates: Updates) -> None:
    """Mark results that update inputs, and the constants that these inputs start from."""
    if not updates:
        return
    attributes = [DictionaryAttr({}) for _ in entry.function_type.outputs]
    for output, (given, initial) in updates.items():
        start = SymbolRefAttr(initial)
        attributes[output] = DictionaryAttr({UPDATES: IntegerAttr(given, i64), INITIAL: start})
    entry.properties["res_attrs"] = ArrayAttr(attributes)


def updates_of(entry: Operation) -> Updates:
    """Return what `mark_updates` left."""
    starts = [attributes.data.get(INITIAL) for attributes in _attributes(entry)]
    return {
        output: (given, start.root_reference.data)
        for output, given in updated_inputs(entry).items()
        if isinstance(start := starts[output], SymbolRefAttr)
    }


def updated_inputs(entry: Operation) -> dict[int, int]:
    """Return, by the number of an output, the number of the input whose new value it is."""
    return {
        output: cast("IntegerAttr[Any]", attributes.data[UPDATES]).value.data
        for output, attributes in enumerate(_attributes(entry))
        if UPDATES in attributes.data
    }


def initial_state(module: ModuleOp, store: WeightStore) -> dict[int, Array]:
    """Return, by the number of an input that is state, the value that it starts from."""
    table = SymbolTable(module)
    entry = choose_function(table, None)
    values: dict[int, Array] = {}
    with using(table):
        for attributes in _attributes(entry):
            start = attributes.data.get(INITIAL)
            if not isinstance(start, SymbolRefAttr):
                continue
            number = cast("IntegerAttr[Any]", attributes.data[UPDATES]).value.data
            constant = table[start.root_reference.data]
            assert isinstance(constant, ConstantOp)
            values[number] = constant_value(constant, store)
    return values


def write_initial_state(values: Mapping[str, Array]) -> dict[str, bytes]:
    """Return a file of what state starts from, by names of inputs; none where that is zeros."""
    if not any(array.any() for array in values.values()):
        return {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / STATE_FILE
        write(path, values, {})
        return {STATE_FILE: path.read_bytes()}


def _attributes(entry: Operation) -> list[DictionaryAttr]:
    given = cast("ArrayAttr[DictionaryAttr] | None", entry.properties.get("res_attrs"))
    return [] if given is None else list(given)
