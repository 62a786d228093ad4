"""The function that a program starts with, while it is compiled."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from fewbit.errors import UnsupportedError
from fewbit.interpreter.signature import choose_function
from fewbit.ir.symbols import SymbolTable

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
