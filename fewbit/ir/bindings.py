"""Upstream MLIR, through the bindings in the torch-mlir wheel: its passes, its ops, its LLVM IR.

Programs cross over as text in generic form, in which there are no weights. What fails in there
comes back as one error that names the pass, with MLIR's own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import ModuleOp

from fewbit.errors import PassError, Place
from fewbit.ir.generic_text import generic_text

if TYPE_CHECKING:
    from torch_mlir.ir import AffineExpr, Block, Context, MLIRError, Module, OpView, Value
    from torch_mlir.passmanager import PassManager
    from typing_extensions import TypeIs


@cache
def mlir_context() -> Context:
    """Return a context that knows every upstream dialect; one serves the whole process."""
    from torch_mlir import ir
    from torch_mlir._mlir_libs import _mlirRegisterEverything as everything  # pyright: ignore[reportPrivateUsage]

    context = ir.Context()
    registry = ir.DialectRegistry()
    everything.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    everything.register_llvm_translations(context)
    return context


def to_mlir(module: ModuleOp, stage: str | None = None) -> Module:
    """Convert a module, which may hold upstream dialects only, to upstream MLIR."""
    return parse_mlir(generic_text(module), stage)


def parse_mlir(text: str, stage: str | None = None) -> Module:
    from torch_mlir import ir

    try:
        return ir.Module.parse(text, mlir_context())
    except ir.MLIRError as e:
        what = f"upstream MLIR does not take the program: {_first_diagnostic(e)}"
        raise PassError(what, place=Place(stage=stage)) from e


def run_upstream(module: Module, pipeline: str, anchor: str = "builtin.module") -> None:
    """Run upstream passes in place, such as `canonicalize,func.func(affine-scalrep)`."""
    from torch_mlir import ir

    with mlir_context():
        manager = _pass_manager(f"{anchor}({pipeline})", pipeline)
        try:
            manager.run(module.operation)
        except ir.MLIRError as e:
            what = f"the pass failed: {_first_diagnostic(e)}"
            raise PassError(what, place=Place(stage=pipeline)) from e


def check_upstream(pipeline: str) -> None:
    """Refuse a pass that upstream's MLIR does not have, or not with these options."""
    with mlir_context():
        _pass_manager(f"builtin.module({pipeline})", pipeline)


def _pass_manager(text: str, pipeline: str) -> PassManager:
    from torch_mlir.passmanager import PassManager

    try:
        return PassManager.parse(text)
    except ValueError as e:
        raise PassError(
            f"upstream MLIR has no such pass: {e}",
            place=Place(stage=pipeline),
            hint="write passes as mlir-opt does: name{option=value}, func.func(name)",
        ) from e


def verify_upstream(module: Module, stage: str | None = None) -> None:
    """Check a module by the rules of its ops."""
    from torch_mlir import ir

    with mlir_context():
        try:
            module.operation.verify()
        except ir.MLIRError as e:
            what = f"the program is not valid: {_first_diagnostic(e)}"
            raise PassError(what, place=Place(stage=stage)) from e


def to_llvm_ir(module: Module) -> str:
    """Translate a module in the llvm dialect to the text of LLVM IR."""
    from torch_mlir.dialects import llvm

    with mlir_context():
        return llvm.translate_module_to_llvmir(module.operation)


def walk(op: OpView | Module) -> Iterator[OpView]:
    """Yield an op and all within it; who changes them while walking needs a list."""
    yield cast("OpView", op)  # whoever walks a module asks for its `operation` only
    for region in op.operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from walk(inner)


def find_function(module: Module, name: str) -> OpView:
    for op in module.body.operations:
        if op.operation.name == "func.func" and op.name.value == name:
            return op
    raise KeyError(name)


def update_type(function: OpView) -> None:
    """Give a function the type of the arguments that its block has now."""
    from torch_mlir import ir

    types = [argument.type for argument in function.entry_block.arguments]
    type = ir.FunctionType.get(types, function.type.results)
    function.attributes["function_type"] = ir.TypeAttr.get(type)


def add_operands(call: OpView, values: Sequence[Value]) -> None:
    """Replace a call that has no results by one that is given more."""
    from torch_mlir import ir
    from torch_mlir.dialects import func

    with ir.InsertionPoint(call), call.operation.location:
        func.CallOp([], call.operation.attributes["callee"], [*call.operation.operands, *values])
    call.operation.erase()


def is_block(owner: object) -> TypeIs[Block]:
    """Return whether a value's owner is a block, whose argument it is."""
    from torch_mlir import ir

    return isinstance(owner, ir.Block)


def is_constant(value: Value) -> bool:
    owner = value.owner
    return not is_block(owner) and owner.name == "arith.constant"


def known_integer(value: Value) -> int | None:
    """Return the integer that a constant holds; None for what is no constant."""
    from torch_mlir import ir

    return ir.IntegerAttr(value.owner.attributes["value"]).value if is_constant(value) else None


def dims_of(expr: AffineExpr) -> set[int]:
    """The dimensions that an affine expression depends on."""
    from torch_mlir import ir

    if isinstance(expr, ir.AffineBinaryExpr):
        return dims_of(expr.lhs) | dims_of(expr.rhs)
    return {expr.position} if isinstance(expr, ir.AffineDimExpr) else set()


def loop_kinds(op: OpView) -> list[str]:
    """Return what each loop of a `linalg.generic` is: "parallel" or "reduction".

    The bindings have no class for the attribute, so it is compared with those that it may be.
    """
    from torch_mlir import ir

    context = op.operation.context
    known = {
        ir.Attribute.parse(f"#linalg.iterator_type<{kind}>", context): kind
        for kind in ("parallel", "reduction")
    }
    return [known[kind] for kind in op.operation.attributes["iterator_types"]]


def index_constant(value: int) -> Value:
    """Create an index constant at the insertion point."""
    from torch_mlir import ir
    from torch_mlir.dialects import arith

    return arith.ConstantOp(ir.IndexType.get(), value).result


def _first_diagnostic(e: MLIRError) -> str:
    """Return what MLIR reports first; what follows are notes on the same fault."""
    if diagnostics := e.error_diagnostics:
        return f"{diagnostics[0].location}: {diagnostics[0].message}"
    return str(e).splitlines()[0]
