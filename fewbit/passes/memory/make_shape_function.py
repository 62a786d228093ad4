"""The shapes of outputs as a function of the shapes of inputs.

It is what is left of the whole program when only the sizes of its results are asked for, and
everything that the program asserts about sizes is checked in it, before anything runs.

    func.func @main_shapes(%x_dim0: index) -> (index, i1)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from xdsl.context import Context
from xdsl.dialects import arith, bufferization, cf, func, memref, scf, tensor
from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    i1,
)
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.dialects.mico import GetConstantOp
from fewbit.errors import UnsupportedError
from fewbit.ir.bindings import (
    find_function,
    known_integer,
    mlir_context,
    run_upstream,
    to_mlir,
    update_type,
    walk,
)
from fewbit.pipeline.context import compile_context
from fewbit.pipeline.entry import entry_of
from fewbit.program.signature import signature_of

if TYPE_CHECKING:
    from torch_mlir.ir import Module

RESOLVE = "canonicalize,cse,resolve-ranked-shaped-type-result-dims,canonicalize,cse"


@dataclass(frozen=True)
class ShapeFunction:
    """The function that computes the shapes of outputs, in an upstream module of its own."""

    module: Module


@dataclass(frozen=True)
class MakeShapeFunction(ModulePass):
    """Write the function that computes the shapes of outputs, if any are dynamic."""

    name = "make-shape-function"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if signature_of(op).is_dynamic:
            compile_context(ctx).put(ShapeFunction(shape_function(op, entry_of(op))))


def shape_function(module: ModuleOp, entry: func.FuncOp) -> Module:
    """Return a module with `<entry>_shapes`, of the entry as it is on tensors."""
    asked = ModuleOp([_ask_sizes(entry)])
    shapes = to_mlir(asked, "shapes")
    run_upstream(shapes, RESOLVE)
    run_upstream(shapes, RESOLVE)
    _take_sizes(shapes, f"{entry.sym_name.data}_shapes")
    run_upstream(shapes, "canonicalize,cse")
    return shapes


def _ask_sizes(entry: func.FuncOp) -> func.FuncOp:
    """Return a copy of the entry that gives the dynamic sizes of results, and its assertions."""
    asking = entry.clone()
    asking.properties["sym_name"] = StringAttr(f"{entry.sym_name.data}_shapes")
    # They say which result is the new value of which input; sizes are no such results.
    asking.properties.pop("arg_attrs", None)
    asking.properties.pop("res_attrs", None)
    returned = asking.body.block.last_op
    assert isinstance(returned, func.ReturnOp)
    new_ops: list[Operation] = []
    results: list[SSAValue] = []
    for value in returned.operands:
        for axis, size in enumerate(_sizes(value.type)):
            if size < 0:
                number = arith.ConstantOp(IntegerAttr(axis, IndexType()))
                dim = tensor.DimOp(value, number.result)
                new_ops += [number, dim]
                results.append(dim.results[0])
    holds: SSAValue
    new_ops.append(true := arith.ConstantOp(IntegerAttr(1, i1)))
    holds = true.result
    for op in list(asking.body.block.ops):
        if isinstance(op, cf.AssertOp):
            new_ops.append(both := arith.AndIOp(holds, op.arg))
            holds = both.result
            Rewriter.erase_op(op)
    for op in list(asking.walk()):
        _ask_sizes_only(op)
    end = func.ReturnOp(*results, holds)
    Rewriter.insert_op([*new_ops, end], InsertPoint.before(returned))
    Rewriter.erase_op(returned)
    inputs, outputs = asking.body.block.arg_types, [v.type for v in end.operands]
    asking.properties["function_type"] = FunctionType.from_lists(list(inputs), outputs)
    return asking


def _ask_sizes_only(op: Operation) -> None:
    """Take from an op what has no part in sizes, so that nothing keeps it alive."""
    if isinstance(op, cf.AssertOp) or (isinstance(op, func.CallOp) and not op.results):
        # Loops keep the sizes that they are given, and those are checked outside. A kernel fills
        # memory whose size is known without it.
        Rewriter.erase_op(op)
    elif isinstance(op, GetConstantOp):
        Rewriter.replace_op(op, tensor.EmptyOp([], op.result.type))
    elif isinstance(op, tensor.DimOp) and isinstance(op.source.owner, scf.ForOp):
        loop = op.source.owner
        op.operands[0] = loop.iter_args[loop.results.index(cast(Any, op.source))]
    elif isinstance(op, bufferization.ToTensorOp) and isinstance(op.memref.owner, memref.AllocOp):
        sizes = op.memref.owner.dynamic_sizes
        Rewriter.replace_op(op, tensor.EmptyOp(list(sizes), op.tensor.type))


def _sizes(type: Any) -> tuple[int, ...]:
    return type.get_shape() if isinstance(type, TensorType) else ()


def _take_sizes(module: Module, name: str) -> None:
    """Replace the function's tensors by their dynamic sizes."""
    from torch_mlir import ir

    with mlir_context(), ir.Location.unknown():
        function = find_function(module, name)
        block = function.entry_block
        tensors = list(block.arguments)
        dims: dict[tuple[Any, int], Any] = {}
        for tensor_value in tensors:
            type = tensor_value.type
            if isinstance(type, ir.RankedTensorType):
                for axis in range(type.rank):
                    if type.is_dynamic_dim(axis):
                        added = block.add_argument(ir.IndexType.get(), ir.Location.unknown())
                        dims[tensor_value, axis] = added
        for op in list(walk(function)):
            if op.operation.name == "tensor.dim":
                _replace_dim(op, dims)
        for i in reversed(range(len(tensors))):
            if list(block.arguments[i].uses):
                raise UnsupportedError(
                    "a size depends on what the inputs contain, not only on their shapes (input "
                    f"{i})",
                    hint="this target needs to know all sizes before it runs; give a mask of the "
                    "full size instead, or end the model before that op",
                )
            block.erase_argument(i)
        update_type(function)


def _replace_dim(op: Any, dims: dict[tuple[Any, int], Any]) -> None:
    source, number = op.operation.operands
    axis = known_integer(number)
    if axis is not None and (source, axis) in dims:
        op.operation.results[0].replace_all_uses_with(dims[source, axis])
        op.operation.erase()
