"""Inputs, outputs and weights of the entry function as memory that the caller gives.

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32>
    func.func @main(%x: memref<4xf32>, %y: memref<4xf32>, %weights: memref<128xi8>)

A constant is a view of the weights at an offset. Tensors inside are read from memory that nobody
else writes (`restrict`), and results are materialized in the memory of outputs, which bufferization
uses as their place from the start where it can. State, an input whose new value is an output, is
read and written in the output's memory. The function gives nothing back, so nothing has to be
allocated for its caller. Where only a run knows the size of an output, the caller gives memory for
the most that it can be; the elements lie at its start without gaps, and the size is written to one
more memory, behind those of outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.builder import Builder, ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import arith, bufferization, func, memref, scf
from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    Signedness,
    TensorType,
    UnitAttr,
    i8,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from fewbit.dialects.mico import ConstantOp, GetConstantOp
from fewbit.dialects.upstream.tensor import BitcastOp
from fewbit.errors import UnsupportedError
from fewbit.ir.locations import place_of
from fewbit.ir.symbols import SymbolTable, using
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_index,
    size_of,
    size_product,
    sizes_of,
)
from fewbit.passes.memory.bind_repeats import RepeatedCalls
from fewbit.passes.memory.make_shape_function import ShapeFunction
from fewbit.passes.memory.place_weights import PlacedConstants, place_entry, place_repeated
from fewbit.pipeline.context import compile_context
from fewbit.pipeline.entry import entry_of
from fewbit.program.program import Program
from fewbit.program.repeats import repeated_functions
from fewbit.program.state import updated_inputs
from fewbit.program.weight_image import WeightImage


@dataclass(frozen=True)
class BindMemory(ModulePass):
    """Turn inputs, outputs and weights of the entry into memory of its caller."""

    name = "bind-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        shapes = known.find(ShapeFunction)
        counted = () if shapes is None else shapes.counted
        bind_memory(known.program(op), entry_of(op), known.get(WeightImage), counted)


def bind_memory(
    program: Program,
    entry: func.FuncOp,
    image: WeightImage | None = None,
    counted: Sequence[tuple[int, int]] = (),
) -> WeightImage:
    """Rewrite the entry function in place; return the image with the weights that it reads."""
    image = WeightImage() if image is None else image
    functions = repeated_functions(program.module)
    calls = RepeatedCalls(entry, functions)
    with using(SymbolTable(program.module)):
        for name, function in functions.items():
            calls.placed[name] = place_repeated(program, function, calls.of(name), image)
            _bind_repeated(function, calls.placed[name])
        _bind(entry, place_entry(program, entry, image), counted, calls)
    _drop_constants(program.module)
    return image


def _bind(
    entry: func.FuncOp,
    placed: PlacedConstants,
    counted: Sequence[tuple[int, int]],
    calls: RepeatedCalls,
) -> None:
    block = entry.body.block
    inputs = list(block.args)
    read = [_bind_input(block, i, value) for i, value in enumerate(inputs)]
    returned = cast(func.ReturnOp, block.last_op)
    memories: list[SSAValue] = []
    for i, value in enumerate(returned.operands):
        memories.append(block.insert_arg(memory_type(value.type, entry), len(inputs) + i))
        memories[i].name_hint = f"output{i}"
    state = {
        output: _read_in_place(read[given], memories[output])
        for output, given in updated_inputs(entry).items()
    }
    calls.bind({tensor: memories[output] for output, tensor in state.items()})
    for number, axis in counted:
        size = block.insert_arg(MemRefType(i64, []), len(block.args))
        size.name_hint = f"output{number}_dim{axis}"
        with ImplicitBuilder(Builder(InsertPoint.before(returned))):
            _store_size(returned.operands[number], axis, size)
    for number in dict(counted):
        with ImplicitBuilder(Builder(InsertPoint.before(returned))):
            memories[number] = _front(memories[number], returned.operands[number])
    for i, memory in enumerate(memories):
        if i not in state:
            _store(returned.operands[i], memory, returned)
    _update(state, memories, returned)
    calls.give_weights(_take_weights(entry, placed))


def _bind_repeated(function: func.FuncOp, placed: PlacedConstants) -> None:
    """Bind a function that the entry calls, which owns the memory that it gives.

    State is read and written in one memory, and what is computed last has the caller's at once.
    """
    block = function.body.block
    inputs, updates = list(block.args), updated_inputs(function)
    returned = cast(func.ReturnOp, block.last_op)
    memories: list[SSAValue] = []
    for value in returned.operands:
        memories.append(block.insert_arg(memory_type(value.type, function), len(block.args)))
    state: dict[int, SSAValue] = {}
    for output, given in updates.items():
        read = bufferization.ToTensorOp(memories[output], restrict=True, writable=True)
        Rewriter.insert_op(read, InsertPoint.at_start(block))
        inputs[given].replace_all_uses_with(read.tensor)
        block.erase_arg(cast(Any, inputs[given]))
        state[output] = read.tensor
    for value in inputs:
        if value in block.args and isinstance(value.type, TensorType):
            _bind_input(block, block.args.index(cast(Any, value)), value)
    for i, memory in enumerate(memories):
        if i not in state and not _compute_in(memory, returned.operands[i]):
            _store(returned.operands[i], memory, returned)
    _update(state, memories, returned)
    _take_weights(function, placed)


def _compute_in(memory: SSAValue, value: SSAValue) -> bool:
    """Have a kernel write to the caller's memory, if it is one that makes the value."""
    read = value.owner
    if not isinstance(read, bufferization.ToTensorOp):
        return False
    buffer = read.memref.owner
    if not isinstance(buffer, memref.AllocOp):
        return False
    buffer.memref.replace_all_uses_with(memory)
    Rewriter.erase_op(buffer)
    return True


def _take_weights(function: func.FuncOp, placed: PlacedConstants) -> SSAValue:
    """Give a function its last argument, and no results; return that argument."""
    block = function.body.block
    returned = cast(func.ReturnOp, block.last_op)
    weights = block.insert_arg(MemRefType(i8, [placed.nbytes]), len(block.args))
    weights.name_hint = "weights"
    for op, offset in placed.offsets.items():
        _bind_constant(op, weights, offset)
    _insert_before(returned, [bare := func.ReturnOp()])
    bare.location = returned.location
    Rewriter.erase_op(returned)
    function.properties["function_type"] = FunctionType.from_lists(list(block.arg_types), [])
    function.properties.pop("arg_attrs", None)
    function.properties.pop("res_attrs", None)
    return weights


def memory_type(type: Attribute, op: Operation) -> MemRefType[Attribute]:
    """Return the memory of an input or output: a tensor's elements, or one scalar."""
    if isinstance(type, TensorType):
        type = cast("TensorType[Attribute]", type)
        return MemRefType(_plain(type.element_type), type.shape)
    if isinstance(type, MemRefType):
        return cast("MemRefType[Attribute]", type)
    if isinstance(type, IndexType) or hasattr(type, "bitwidth"):
        return MemRefType(type, [])
    raise UnsupportedError(
        f"the function takes or gives a value of type {type}, which C has no type for",
        place=place_of(op),
    )


def _plain(type: Attribute) -> Attribute:
    """Return a type of memory: signless, since signedness is a matter of ops."""
    if isa(type, IntegerType) and type.signedness.data != Signedness.SIGNLESS:
        return IntegerType(type.bitwidth)
    return type


def _bind_input(block: Block, index: int, value: SSAValue) -> Operation:
    """Turn an input into memory; return the op that reads it."""
    entry = cast(Operation, block.parent_op())
    type = value.type
    memory = block.insert_arg(memory_type(type, entry), index)
    memory.name_hint = value.name_hint
    new_ops: list[Operation]
    if isinstance(type, TensorType):
        new_ops = [bufferization.ToTensorOp(memory, restrict=True)]
    else:
        new_ops = [memref.LoadOp.get(memory, [])]
    for op in reversed(new_ops):
        Rewriter.insert_op(op, InsertPoint.at_start(block))
    _replace(value, new_ops[-1].results[0])
    block.erase_arg(cast(Any, value))
    return new_ops[-1]


def _read_in_place(read: Operation, memory: SSAValue) -> SSAValue:
    """Return state as a tensor in the memory of its new value.

    If the caller keeps the two in one memory nothing is copied, and otherwise the old value first.
    """
    given = read.operands[0]
    old, place = (memref.ExtractAlignedPointerAsIndexOp.get(each) for each in (given, memory))
    apart = arith.CmpiOp(old.aligned_pointer, place.aligned_pointer, "ne")
    copy = scf.IfOp(apart.result, [], [memref.CopyOp(given, memory), scf.YieldOp()])
    state = bufferization.ToTensorOp(memory, restrict=True, writable=True)
    _insert_before(read, [old, place, apart, copy, state])
    read.results[0].replace_all_uses_with(state.tensor)
    Rewriter.erase_op(read)
    return state.tensor


def _update(
    state: Mapping[int, SSAValue], memories: Sequence[SSAValue], returned: func.ReturnOp
) -> None:
    """Write new values in the place of old ones, by the numbers of outputs.

    They are written as tensors, so that bufferization sees what reads state before. A value in the
    memory of another state is copied first: that one may be overwritten before its turn.
    """
    places = set(state.values())
    values = {i: returned.operands[i] for i in state}
    for i, value in values.items():
        if _place_of(value) in places - {state[i]}:
            copy = bufferization.AllocTensorOp.build(
                operands=[[], [value], []], result_types=[value.type]
            )
            _insert_before(returned, [copy])
            values[i] = copy.tensor
    for i, value in values.items():
        if value is not state[i]:
            written: Operation = bufferization.MaterializeInDestinationOp.create(
                operands=[value, state[i]], result_types=[value.type]
            )
            written.location = returned.location
            _insert_before(returned, [written])
            values[i] = written.results[0]
    for i, value in values.items():
        _store(value, memories[i], returned)


PLACES = {
    "tensor.insert_slice": 1, "tensor.insert": 1, "tensor.cast": 0, "tensor.reshape": 0,
    "tensor.collapse_shape": 0, "tensor.expand_shape": 0, "tensor.extract_slice": 0, "scf.for": 3,
}  # fmt: skip
"""Ops whose results may lie in the place of operands, and the number of the first of these."""


def _place_of(value: SSAValue) -> SSAValue:
    """Return the tensor in whose place a value may lie."""
    while isinstance(value, OpResult) and value.op.name in PLACES:
        value = value.op.operands[PLACES[value.op.name] + value.index]
    return value


def _store(value: SSAValue, memory: SSAValue, before: Operation) -> None:
    op: Operation
    if isinstance(value.owner, BitcastOp):
        value = value.owner.source  # Unsigned in the signature only.
    if isinstance(value.type, TensorType):
        op = bufferization.MaterializeInDestinationOp.create(
            operands=[value, memory],
            properties={"restrict": UnitAttr(), "writable": UnitAttr()},
        )
    else:
        op = memref.StoreOp.get(value, memory, [])
    op.location = before.location
    _insert_before(before, [op])


def _store_size(value: SSAValue, axis: int, memory: SSAValue) -> None:
    size = as_index(size_of(value, axis))
    memref.StoreOp.get(arith.IndexCastOp(size, i64).result, memory, [])


def _front(memory: SSAValue, value: SSAValue) -> SSAValue:
    """Return the start of an output's memory, in the shape that the value has."""
    sizes = sizes_of(value)
    strides: list[Size] = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, size if strides[0] == 1 else size_product(strides[0], size))
    return memref.ReinterpretCastOp.from_dynamic(memory, [0], sizes, strides, memory.type).result


def _bind_constant(read: GetConstantOp, weights: SSAValue, offset: int) -> None:
    type = read.result.type
    at = arith.ConstantOp(IntegerAttr(offset, IndexType()))
    view = memref.ViewOp.create(
        operands=[weights, at.result],
        result_types=[MemRefType(_plain(type.element_type), type.shape)],
    )
    value = bufferization.ToTensorOp(view.results[0], restrict=True)
    new_ops: list[Operation] = [at, view, value]
    for op in new_ops:
        op.location = read.location
    value.tensor.name_hint = read.result.name_hint
    _insert_before(read, new_ops)
    _replace(read.result, value.tensor)
    Rewriter.erase_op(read)


def _replace(old: SSAValue, new: SSAValue) -> None:
    """Replace a value; one that was unsigned is replaced behind the bitcasts that read it."""
    if old.type != new.type:
        for use in list(old.uses):
            cast_op = use.operation
            assert cast_op.name == "tensor.bitcast", "what is unsigned is cast at once"
            cast_op.results[0].replace_all_uses_with(new)
            Rewriter.erase_op(cast_op)
    old.replace_all_uses_with(new)


def _insert_before(op: Operation, new_ops: Sequence[Operation]) -> None:
    Rewriter.insert_op(list(new_ops), InsertPoint.before(op))


def _drop_constants(module: ModuleOp) -> None:
    for op in list(module.body.block.ops):
        if isinstance(op, ConstantOp):
            Rewriter.erase_op(op)
