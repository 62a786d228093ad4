"""The first stages of every target that compiles layers as kernel ops: `mico`, then `kernel`."""

from __future__ import annotations

from xdsl.dialects import func

from fewbit.errors import UnsupportedError
from fewbit.interpreter.signature import choose_function
from fewbit.ir.symbols import SymbolTable
from fewbit.program import Program
from fewbit.targets.own_passes import run_own_passes
from fewbit.transforms import pipelines
from fewbit.transforms.fold_batch_norm import fold_batch_norm
from fewbit.transforms.fold_flatten import fold_flatten
from fewbit.transforms.fold_weights import fold_weights


def copy_of(program: Program) -> Program:
    """The program as it was given, to be changed; weights are shared."""
    return Program(program.module.clone(), program.store, program.recipe)


def to_kernels(program: Program, fold: bool = True) -> Program:
    """One function, whose layers are kernel ops with channels last.

    `fold`: what depends on weights alone is computed; else a layer still shows its few-bit weights.
    """
    run_own_passes(program.module, ("inline",))
    program = fold_batch_norm(program)
    run_own_passes(program.module, pipelines.CPU_KERNELS)
    program = fold_flatten(program)
    return fold_weights(program) if fold else program


def entry_of(program: Program) -> func.FuncOp:
    found = choose_function(SymbolTable(program.module), None)
    if not isinstance(found, func.FuncOp):
        raise UnsupportedError(
            "the entry is a subgraph, not a function", hint="run the pass 'inline' first"
        )
    return found
