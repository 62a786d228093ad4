"""Upstream MLIR, through the bindings in the torch-mlir wheel: its passes, and its way to LLVM IR.

Programs cross over as text in generic form, in which there are no weights. What fails in there
comes back as one error that names the pass, with MLIR's own words.
"""
# pyright: basic, reportAttributeAccessIssue=false

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from fewbit.errors import PassError, Place
from fewbit.ir.text import print_module

if TYPE_CHECKING:
    from torch_mlir.ir import Context, Module


@cache
def mlir_context() -> Context:
    """A context that knows every upstream dialect; one serves the whole process."""
    from torch_mlir import ir
    from torch_mlir._mlir_libs import _mlirRegisterEverything as everything

    context = ir.Context()
    registry = ir.DialectRegistry()
    everything.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    everything.register_llvm_translations(context)
    return context


def to_mlir(module: ModuleOp, stage: str | None = None) -> Module:
    """The module in upstream MLIR; it may hold upstream dialects only."""
    return parse_mlir(print_module(module, generic=True, locations=True), stage)


def parse_mlir(text: str, stage: str | None = None) -> Module:
    from torch_mlir import ir

    try:
        return ir.Module.parse(text, mlir_context())
    except ir.MLIRError as e:
        raise PassError(
            f"upstream MLIR does not take the program: {_first(e)}", place=Place(stage=stage)
        ) from e


def run_upstream(module: Module, pipeline: str, anchor: str = "builtin.module") -> None:
    """Run upstream passes in place, such as `canonicalize,func.func(affine-scalrep)`."""
    from torch_mlir import ir
    from torch_mlir.passmanager import PassManager

    with mlir_context():
        try:
            manager = PassManager.parse(f"{anchor}({pipeline})")
        except ValueError as e:
            raise PassError(
                f"upstream MLIR has no such pass: {e}",
                place=Place(stage=pipeline),
                hint="write passes as mlir-opt does: name{option=value}, func.func(name)",
            ) from e
        try:
            manager.run(module.operation)
        except ir.MLIRError as e:
            raise PassError(f"the pass failed: {_first(e)}", place=Place(stage=pipeline)) from e


def to_llvm_ir(module: Module) -> str:
    """The text of LLVM IR of a module in the llvm dialect."""
    from torch_mlir.dialects import llvm

    with mlir_context():
        return llvm.translate_module_to_llvmir(module.operation)


def _first(e: Any) -> str:
    """What MLIR reports first: the rest are notes on the same fault."""
    diagnostics = getattr(e, "error_diagnostics", ())
    if diagnostics:
        return f"{diagnostics[0].location}: {diagnostics[0].message}"
    return str(e).splitlines()[0]
