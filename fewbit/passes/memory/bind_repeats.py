"""Calls of functions that stand for parts which repeat, on memory.

    %y = func.call @program.repeated_0(%x) : (tensor<1x64xf32>) -> tensor<1x64xf32>

becomes a call that is given the memory of what it reads, that of what it computes, and the piece of
the weights that is its own. State is given once, where it is kept: the call updates it there.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, bufferization, func, memref, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
    UnitAttr,
    i8,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.dialects.mico import shape_of
from fewbit.passes.kernel.call_site import ALIGNMENT, tensor_of
from fewbit.passes.memory.place_weights import PlacedConstants
from fewbit.program.repeats import calls_of_repeated, sized_like
from fewbit.program.state import updated_inputs


class RepeatedCalls:
    """The calls of such functions in an entry, while it is bound."""

    def __init__(self, entry: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> None:
        self.placed: dict[str, PlacedConstants] = {}
        """Where the constants of each function are."""
        self._calls = calls_of_repeated(entry, functions)
        self._updates = {name: updated_inputs(each) for name, each in functions.items()}
        self._like = {name: sized_like(each) for name, each in functions.items()}
        self._bound: list[tuple[func.CallOp, func.CallOp]] = []

    def of(self, name: str) -> list[func.CallOp]:
        """Return the calls of a function."""
        return [call for call in self._calls if _name(call) == name]

    def bind(self, state: Mapping[SSAValue, SSAValue]) -> None:
        """Call on memory; `state` says where the tensors are kept that are updated in place."""
        for call in self._calls:
            self._bound.append((call, self._bind(call, state)))

    def give_weights(self, weights: SSAValue) -> None:
        """Give each call its piece of the weights, behind all else."""
        for old, call in self._bound:
            placed = self.placed[_name(call)]
            at = arith.ConstantOp(IntegerAttr(placed.starts[old], IndexType()))
            view = memref.ViewOp.create(
                operands=[weights, at.result], result_types=[MemRefType(i8, [placed.nbytes])]
            )
            _insert(call, at, view)
            call.operands = [*call.operands, view.results[0]]

    def _bind(self, call: func.CallOp, state: Mapping[SSAValue, SSAValue]) -> func.CallOp:
        updates, like = self._updates[_name(call)], self._like[_name(call)]
        given = [
            _buffer(value, call)
            for i, value in enumerate(call.operands)
            if i not in updates.values()
        ]
        results: list[SSAValue] = []
        reads: list[Operation] = []
        for i, result in enumerate(call.results):
            if i in updates:
                kept = call.operands[updates[i]]
                given.append(state[kept])
                results.append(kept)
                continue
            sizes = call.operands[like[i]] if i in like else result
            given.append(memory := _allocate(result, sizes, call))
            reads.append(read := bufferization.ToTensorOp(memory, restrict=True))
            results.append(read.tensor)
        bound = func.CallOp(_name(call), given, [])
        bound.location = call.location
        for read in reads:
            read.location = call.location
        Rewriter.replace_op(call, [bound, *reads], results)
        return bound


def _name(call: func.CallOp) -> str:
    return call.callee.root_reference.data


def _insert(before: Operation, *ops: Operation) -> None:
    for op in ops:
        op.location = before.location
        Rewriter.insert_op(op, InsertPoint.before(before))


def _buffer(value: SSAValue, call: func.CallOp) -> SSAValue:
    """Return the memory of a tensor, to read; other values as they are."""
    if not isinstance(value.type, TensorType):
        return value
    type = tensor_of(value)
    buffer = bufferization.ToBufferOp.create(
        operands=[value],
        result_types=[MemRefType(type.element_type, type.shape)],
        properties={"read_only": UnitAttr()},
    )
    _insert(call, buffer)
    return buffer.results[0]


def _allocate(result: SSAValue, like: SSAValue, call: func.CallOp) -> SSAValue:
    """Allocate memory for a result, with the sizes of another tensor where they are dynamic."""
    sizes: list[SSAValue] = []
    for axis, size in enumerate(shape_of(result.type)):
        if size == DYNAMIC_INDEX:
            number = arith.ConstantOp(IntegerAttr(axis, IndexType()))
            dim = tensor.DimOp(like, number.result)
            _insert(call, number, dim)
            sizes.append(dim.results[0])
    element: Attribute = tensor_of(result).element_type
    memory = memref.AllocOp.get(element, ALIGNMENT, shape_of(result.type), sizes)
    _insert(call, memory)
    return memory.memref
