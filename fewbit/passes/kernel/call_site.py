"""An op that becomes a call of kernels: what stands in its place.

A call is on memory: tensors that it reads become buffers, a buffer is made for its result, and
that is the tensor which others read. Bufferization then finds nothing left to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, Generic, TypeVar, cast

import numpy as np
from xdsl.dialects import arith, bufferization, func, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.codegen.stubs import KernelCalls, Stub
from fewbit.dialects.mico import ConstantOp, GetConstantOp, RefAttr, ReshapeOp
from fewbit.interpreter.mico.constants import constant_value
from fewbit.ir.locations import place_of
from fewbit.ir.symbols import lookup
from fewbit.llvm.types import Int
from fewbit.passes.loops.outline_loops import ITERATIONS, Iterations
from fewbit.program.derived import Derivation
from fewbit.program.program import Program
from fewbit.program.repeats import count_of, replacements_for

ALIGNMENT = 64

Array = np.ndarray[Any, Any]

OpT = TypeVar("OpT", bound=Operation)


def tensor_of(value: SSAValue) -> TensorType[Attribute]:
    return cast("TensorType[Attribute]", value.type)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Return sizes; negative where they are dynamic."""
    return tensor_of(value).get_shape()


def constant_name(value: SSAValue) -> str:
    """Return the name of the constant that a value is, perhaps reshaped."""
    read = value.owner
    while isinstance(read, ReshapeOp):
        read = read.input.owner
    return cast(GetConstantOp, read).symbol.root_reference.data


def source_of(value: SSAValue) -> ConstantOp | None:
    """Return the constant of the module that a value is, perhaps reshaped."""
    owner = value.owner
    while isinstance(owner, ReshapeOp):
        owner = owner.input.owner
    return owner.constant if isinstance(owner, GetConstantOp) else None


class CallSite(Generic[OpT]):
    """Collects the ops that replace one op."""

    def __init__(self, program: Program, op: OpT, calls: KernelCalls) -> None:
        self.program = program
        self.op = op
        self.calls = calls
        self.isa = calls.isa
        self.new_ops: list[Operation] = []

    def make(self, op: Operation) -> SSAValue:
        """Add an op; return its result, if it has one."""
        self.new_ops.append(op)
        return op.results[0] if op.results else cast(SSAValue, None)

    def constant(self, value: SSAValue) -> Array | None:
        """Return the array that a value is, if it is constant."""
        owner = value.owner
        if isinstance(owner, GetConstantOp):
            return constant_value(owner.constant, self.program.store)
        if isinstance(owner, ReshapeOp):
            array = self.constant(owner.input)
            return None if array is None else array.reshape(shape_of(value))
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr):
            return np.array(cast("FloatAttr[Any]", owner.value).value.data, np.float32)
        return None

    def iterations(self, value: SSAValue, axes: Sequence[int], worth: int) -> Iterations:
        """Return that the first argument of a call has the sizes of these axes to share."""
        shape = shape_of(value)
        known = prod(shape[axis] for axis in axes if shape[axis] != DYNAMIC_INDEX)
        dims = tuple((0, axis) for axis in axes if shape[axis] == DYNAMIC_INDEX)
        return Iterations(worth, known, dims)

    @property
    def times(self) -> int:
        """How often the program does what this op does."""
        return count_of(self.op)

    def constants(self, value: SSAValue) -> Iterator[Array]:
        """Yield the arrays that a constant is in all calls of the function that the op is in."""
        constant = source_of(value)
        if constant is None:
            if (array := self.constant(value)) is not None:
                yield array
            return
        for names in replacements_for(self.op):
            other = lookup(self.op, names.get(constant.sym_name.data, constant.sym_name.data))
            yield constant_value(cast(ConstantOp, other), self.program.store)

    def keep(
        self, name: str, element: Attribute, compute: Callable[..., Array], *sources: SSAValue
    ) -> SSAValue:
        """Return a constant of this name, computed from others; one that there is, is taken."""
        store = self.program.store
        if name not in store:
            derivation = self._derive(compute, sources)
            array = derivation.compute(*(constant_value(s, store) for s in derivation.sources))
            reference = store.add(name, array, copy=False, spool=store.spool)
            store.note_derivation(name, derivation)
            type = TensorType(element, array.shape)
            constant = ConstantOp(name, type, RefAttr(reference.key, reference.sha256))
            constant.location = self.op.location
            Rewriter.insert_op(constant, InsertPoint.at_start(self.program.module.body.block))
        return self.make(GetConstantOp(name, TensorType(element, store.shape(name))))

    def _derive(self, compute: Callable[..., Array], values: Sequence[SSAValue]) -> Derivation:
        """Return a function of arrays as one of constants; numbers in the text are in it."""
        constants = [source_of(value) for value in values]
        known = [
            self.constant(v) if c is None else None for v, c in zip(values, constants, strict=True)
        ]
        shapes = [shape_of(v) if isinstance(v.type, TensorType) else () for v in values]

        def derive(*arrays: Array) -> Array:
            given = iter(arrays)
            return compute(
                *(
                    next(given).reshape(shape) if number is None else number
                    for number, shape in zip(known, shapes, strict=True)
                )
            )

        return Derivation.of(derive, *(c for c in constants if c is not None))

    def is_constant(self, value: SSAValue) -> bool:
        """Return whether `constant` has a value."""
        return source_of(value) is not None or self.constant(value) is not None

    def index(self, value: int) -> SSAValue:
        return self.make(arith.ConstantOp(IntegerAttr(value, IndexType())))

    def buffer(self, value: SSAValue) -> SSAValue:
        """Return the memory of a tensor, to read."""
        type = tensor_of(value)
        return self.make(
            bufferization.ToBufferOp.create(
                operands=[value],
                result_types=[MemRefType(type.element_type, type.shape)],
                properties={"read_only": UnitAttr()},
            )
        )

    def allocate(
        self, element: Attribute, shape: Sequence[int], sizes: Sequence[SSAValue] = ()
    ) -> SSAValue:
        return self.make(memref.AllocOp.get(element, ALIGNMENT, shape, sizes))

    def stub(self, what: str, memory: Sequence[Attribute]) -> Stub:
        name = self.calls.name(what, place_of(self.op).layer or self.op.name)
        return Stub(name, memory, Int(self.isa.index_bits))

    def call(self, stub: Stub, memory: Sequence[SSAValue], worth: Iterations | None = None) -> None:
        """Call what the stub defines, with all threads; with one where there is little to share."""
        index = IndexType()
        types = FunctionType.from_lists([*(v.type for v in memory), index, index], [])
        declared = func.FuncOp.external(stub.name, list(types.inputs), [])
        if worth is not None:
            numbers = DenseArrayBase.from_list(i64, worth.numbers)
            declared.attributes[ITERATIONS] = numbers
        Rewriter.insert_op(declared, InsertPoint.at_end(self.program.module.body.block))
        # As `ThreadArguments` of `outline-loops`: one thread alone, until the work is shared.
        thread, threads = self.index(0), self.index(1)
        self.make(func.CallOp(stub.name, [*memory, thread, threads], []))
        self.calls.stubs.append(stub)
        if stub.most_threads is not None:
            self.calls.most_threads[stub.name] = stub.most_threads

    def as_tensor(self, memory: SSAValue) -> SSAValue:
        """Return what a call has written, for others to read.

        Nobody may write there in place: which later calls read it, bufferization does not see.
        """
        return self.make(bufferization.ToTensorOp(memory, restrict=True))

    def replace(self, *results: SSAValue | None) -> None:
        """Replace the op by the new ops; results that nothing reads may be None."""
        for op in self.new_ops:
            op.location = self.op.location
        for new, old in zip(results, self.op.results, strict=True):
            if new is not None:
                new.name_hint = old.name_hint
        Rewriter.replace_op(self.op, self.new_ops, results)


def dynamic_axes(value: SSAValue) -> list[int]:
    return [axis for axis, size in enumerate(shape_of(value)) if size == DYNAMIC_INDEX]
