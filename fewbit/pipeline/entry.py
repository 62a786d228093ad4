"""The functions of a program while it is compiled: its entry, and those of parts that repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from fewbit.errors import UnsupportedError
from fewbit.interpreter.signature import choose_function
from fewbit.ir.symbols import SymbolTable
from fewbit.program.repeats import REPEATED, repeated_functions

if TYPE_CHECKING:
    from torch_mlir.ir import Module

ENTRY = "program.entry"
"""What it is called once there is memory in place of tensors: a name that no C name can meet."""


def entry_of(module: ModuleOp) -> func.FuncOp:
    """Return the entry of a module that is one function and what it calls outside."""
    entry = choose_function(SymbolTable(module), None)
    if not isinstance(entry, func.FuncOp):
        raise UnsupportedError(
            "the entry is a subgraph, not a function", hint="run the pass 'inline' first"
        )
    return entry


def functions_of(module: ModuleOp) -> list[func.FuncOp]:
    """Return the entry and the functions that stand for parts of it which repeat."""
    return [entry_of(module), *repeated_functions(module).values()]


def function_names(module: Module) -> list[str]:
    """Return the names of the same functions, of a module of upstream's."""
    ops = [op for op in module.body.operations if op.operation.name == "func.func"]
    return [ENTRY, *(op.name.value for op in ops if REPEATED in op.operation.attributes)]
