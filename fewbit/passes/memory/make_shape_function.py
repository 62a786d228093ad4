"""The shapes of outputs as a function of the shapes of inputs.

It is what is left of the whole program when only the sizes of its results are asked for, and
everything that the program asserts about sizes is checked in it, before anything runs. Where data
decides on a size, as on how many elements a mask chooses, the function gives the most that it can
be, and the size is *counted*: the run tells it.

    func.func @main_shapes(%x_dim0: index) -> (index, i1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.codegen.interface import Interface
from fewbit.dialects.mico import GetConstantOp
from fewbit.errors import UnsupportedError
from fewbit.ir.bindings import (
    find_function,
    is_block,
    known_integer,
    mlir_context,
    run_upstream,
    to_mlir,
    update_type,
    walk,
)
from fewbit.passes.linalg.assert_sizes import slices_by_data
from fewbit.passes.memory.size_bounds import as_value, depends_on_data, upper_bound
from fewbit.passes.memory.size_proofs import always_holds
from fewbit.pipeline.context import compile_context
from fewbit.pipeline.entry import entry_of
from fewbit.program.repeats import calls_of_repeated, repeated_functions, sized_like
from fewbit.program.signature import signature_of

if TYPE_CHECKING:
    from torch_mlir.ir import Module, Value

RESOLVE = "canonicalize,cse,resolve-ranked-shaped-type-result-dims,canonicalize,cse"


@dataclass(frozen=True)
class ShapeFunction:
    """The function that computes the shapes of outputs, in an upstream module of its own."""

    module: Module
    counted: tuple[tuple[int, int], ...] = ()
    """Outputs, by number, and their dimensions whose sizes only a run knows."""


@dataclass(frozen=True)
class MakeShapeFunction(ModulePass):
    """Write the function that computes the shapes of outputs, if any are dynamic."""

    name = "make-shape-function"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        entry, known = entry_of(op), compile_context(ctx)
        is_dynamic = signature_of(op).is_dynamic
        if not is_dynamic and not slices_by_data(entry):
            return
        shapes = shape_function(entry)
        if is_dynamic:
            known.put(shapes)
        interface = known.find(Interface)
        if shapes.counted and interface is not None:
            known.put(replace(interface, counted=shapes.counted))


def shape_function(entry: func.FuncOp) -> ShapeFunction:
    """Return a module with `<entry>_shapes`, of the entry as it is on tensors."""
    asked = ModuleOp([_ask_sizes(entry)])
    name = f"{entry.sym_name.data}_shapes"
    shapes = to_mlir(asked, "shapes")
    run_upstream(shapes, RESOLVE)
    run_upstream(shapes, RESOLVE)
    _take_sizes(shapes, name)
    counted = _bound_sizes(shapes, name, _dynamic_places(entry))
    run_upstream(shapes, "canonicalize,cse")
    _drop_inputs(shapes, name, len(entry.body.block.args))
    run_upstream(shapes, "canonicalize,cse")
    return ShapeFunction(shapes, counted)


def _dynamic_places(entry: func.FuncOp) -> list[tuple[int, int]]:
    """Return the dynamic dimensions of results, as numbers of results and dimensions."""
    types = enumerate(entry.function_type.outputs)
    return [(i, axis) for i, type in types for axis, n in enumerate(_sizes(type)) if n < 0]


def _ask_sizes(entry: func.FuncOp) -> func.FuncOp:
    """Return a copy of the entry that gives the dynamic sizes of results, and its assertions."""
    asking = entry.clone()
    asking.properties["sym_name"] = StringAttr(f"{entry.sym_name.data}_shapes")
    # They say which result is the new value of which input; sizes are no such results.
    asking.properties.pop("arg_attrs", None)
    asking.properties.pop("res_attrs", None)
    module = entry.parent_op()
    assert isinstance(module, ModuleOp)
    _open_calls(asking, repeated_functions(module))
    _hold_scalars(asking)
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
    asserted: list[SSAValue] = []
    for op in list(asking.body.block.ops):
        if isinstance(op, cf.AssertOp):
            asserted.append(op.arg)
            Rewriter.erase_op(op)
    holds = _all_of(asserted, new_ops)
    for op in list(asking.walk()):
        _ask_sizes_only(op)
    end = func.ReturnOp(*results, holds)
    Rewriter.insert_op([*new_ops, end], InsertPoint.before(returned))
    Rewriter.erase_op(returned)
    _drop_dead(asking)
    inputs, outputs = asking.body.block.arg_types, [v.type for v in end.operands]
    asking.properties["function_type"] = FunctionType.from_lists(list(inputs), outputs)
    return asking


def _open_calls(asking: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> None:
    """Put what the first call of a function does in its place, and sizes in place of the others.

    All calls have the same sizes, so what is asserted in one holds in all.
    """
    seen: set[str] = set()
    for call in calls_of_repeated(asking, functions):
        name = call.callee.root_reference.data
        function = functions[name]
        if name in seen:
            like = sized_like(function)
            new_ops = [
                tensor.EmptyOp([], result.type)
                for i, result in enumerate(call.results)
                if i not in like
            ]
            empty = iter(new_ops)
            results = [
                call.operands[like[i]] if i in like else next(empty).tensor
                for i in range(len(call.results))
            ]
            Rewriter.replace_op(call, new_ops, results)
            continue
        seen.add(name)
        block = function.body.block
        values: dict[SSAValue, SSAValue] = dict(zip(block.args, call.operands, strict=True))
        copies = [op.clone(values) for op in block.ops]
        end = copies.pop()
        Rewriter.replace_op(call, copies, list(end.operands))
        end.erase()


def _all_of(conditions: Sequence[SSAValue], new_ops: list[Operation]) -> SSAValue:
    """Return whether all hold, as a tree: a chain of thousands is deeper than Python recurses."""
    if not conditions:
        new_ops.append(true := arith.ConstantOp(IntegerAttr(1, i1)))
        return true.result
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    left, right = _all_of(conditions[:half], new_ops), _all_of(conditions[half:], new_ops)
    new_ops.append(both := arith.AndIOp(left, right))
    return both.result


def _drop_dead(asking: func.FuncOp) -> None:
    """Drop what computes no size, most of a program, before it is handed over to upstream."""
    for op in asking.walk():
        if isinstance(op, tensor.DimOp):
            op.operands[0] = _same_size(op.source)
    for op in reversed(list(asking.body.block.ops)):
        if op.results and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


def _same_size(value: SSAValue) -> SSAValue:
    """Return the tensor that a result of loops is written over, which has its sizes."""
    while isinstance(value.owner, LinalgStructuredOperation):
        value = value.owner.outputs[value.owner.results.index(cast(Any, value))]
    return value


def _hold_scalars(asking: func.FuncOp) -> None:
    """Take numbers out of tensors, so that no input is taken for a size."""
    block = asking.body.block
    for i, value in enumerate(list(block.args)):
        if not isinstance(value.type, TensorType):
            held = block.insert_arg(TensorType(value.type, []), i)
            read = tensor.ExtractOp(held, [], value.type)
            Rewriter.insert_op(read, InsertPoint.at_start(block))
            value.replace_all_uses_with(read.result)
            block.erase_arg(value)


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
    """Give the function the dynamic sizes of its tensors as arguments behind them."""
    from torch_mlir import ir

    with mlir_context(), ir.Location.unknown():
        function = find_function(module, name)
        block = function.entry_block
        dims: dict[tuple[Any, int], Any] = {}
        for tensor_value in list(block.arguments):
            type = tensor_value.type
            if isinstance(type, ir.RankedTensorType):
                for axis in range(type.rank):
                    if type.is_dynamic_dim(axis):
                        added = block.add_argument(ir.IndexType.get(), ir.Location.unknown())
                        dims[tensor_value, axis] = added
        for op in list(walk(function)):
            if op.operation.name == "tensor.dim":
                _replace_dim(op, dims)
        update_type(function)


def _bound_sizes(
    module: Module, name: str, places: Sequence[tuple[int, int]]
) -> tuple[tuple[int, int], ...]:
    """Give bounds in place of sizes that data decides on; return which these are.

    What is asserted of such sizes must be true whatever they are, or it stays and is refused.
    """
    from torch_mlir import ir

    counted: list[tuple[int, int]] = []
    with mlir_context(), ir.Location.unknown():
        block = find_function(module, name).entry_block
        end = block.operations[len(block.operations) - 1].operation
        for i, place in enumerate(places):
            if not depends_on_data(end.operands[i]):
                continue
            with ir.InsertionPoint(end):
                bound = upper_bound(end.operands[i])
                if bound is None:
                    raise UnsupportedError(
                        f"dimension {place[1]} of output {place[0]} depends on what the inputs "
                        "contain, not only on their shapes, and has no bound",
                        hint="this target needs to know all sizes before it runs, or how large "
                        "they can be; cut it to a size that the shapes of inputs tell, give a mask "
                        "of the full size instead, or end the model before that op",
                    )
                end.operands[i] = as_value(bound)
            counted.append(place)
        with ir.InsertionPoint(end):
            end.operands[len(places)] = _without_proven(end.operands[len(places)])
    return tuple(counted)


def _without_proven(condition: Value) -> Value:
    """Return a condition without the parts that read data, and are true whatever that is."""
    from torch_mlir import ir
    from torch_mlir.dialects import arith

    if not depends_on_data(condition):
        return condition
    if always_holds(condition):
        return arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result
    owner = condition.owner
    if is_block(owner) or owner.name != "arith.andi":
        return condition
    return arith.AndIOp(*map(_without_proven, owner.operands)).result


def _drop_inputs(module: Module, name: str, count: int) -> None:
    """Take the program's inputs from the function, of which it reads sizes only."""
    from torch_mlir import ir

    with mlir_context(), ir.Location.unknown():
        function = find_function(module, name)
        block = function.entry_block
        for i in reversed(range(count)):
            if list(block.arguments[i].uses):
                raise UnsupportedError(
                    "sizes that depend on what the inputs contain must be equal, or fit together, "
                    f"which only a run would tell (input {i})",
                    hint="this target needs to know that all sizes fit before it runs; choose by "
                    "one mask, use a mask of the full size, or end the model before that op",
                )
            block.erase_argument(i)
        update_type(function)


def _replace_dim(op: Any, dims: dict[tuple[Any, int], Any]) -> None:
    source, number = op.operation.operands
    axis = known_integer(number)
    if axis is not None and (source, axis) in dims:
        op.operation.results[0].replace_all_uses_with(dims[source, axis])
        op.operation.erase()
