"""What a call of a kernel stores: its result, and the quantized result, as far as it is read."""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar, cast

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType, UnrealizedConversionCastOp, i8, i32
from xdsl.ir import Attribute, SSAValue

from fewbit.codegen.stubs import Memref, Stub
from fewbit.dialects import kernel
from fewbit.dialects.mico import element_width
from fewbit.kernels import ClearPlaces
from fewbit.kernels.largest_magnitudes import PLACES, SLOT
from fewbit.kernels.steps import Steps
from fewbit.llvm.types import I32
from fewbit.llvm.values import NULL, Operand, Value
from fewbit.numerics.widths import Width
from fewbit.passes.kernel.call_site import CallSite, dynamic_axes, shape_of, tensor_of

StoringT = TypeVar("StoringT", bound=kernel.ContractionOp | kernel.Pool2dOp)


class StoringSite(CallSite[StoringT]):
    """A call that allocates what it stores."""

    @cached_property
    def steps(self) -> Steps | None:
        """How the kernel quantizes, if it has to and can."""
        op = self.op
        if op.step is None or op.quantized is None:
            return None
        return Steps.of(
            op.step.value.data, cast(Width, element_width(op.quantized.type)), *self.ends
        )

    @cached_property
    def finds_largest(self) -> bool:
        """Whether it also finds the largest magnitude of its result."""
        return False

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Bounds of the result."""
        return None, None

    @property
    def results(self) -> dict[str, SSAValue]:
        """The results that are stored, by their names in a kernel."""
        op = self.op
        if op.quantized is None:
            return {"y": op.result}
        floats = {} if op.result.first_use is None else {"y": op.result}
        return {**floats, "q": op.quantized}

    def prepare_stub(self, operands: dict[str, SSAValue]) -> tuple[Stub, dict[str, Value]]:
        """Return a stub for operands and results, and its pointers by their names."""
        self.operands = operands
        results = [self._plain(result) for result in self.results.values()]
        more = [TensorType(i32, [PLACES, SLOT])] if self.finds_largest else []
        stub = self.stub("", [*(v.type for v in operands.values()), *results, *more])
        names = [*operands, *self.results, *(["largest"] if more else [])]
        self.memrefs: dict[str, Memref] = dict(zip(names, stub.memrefs, strict=True))
        pointers = {name: memory.pointer for name, memory in self.memrefs.items()}
        if self.steps is not None:
            pointers["steps"] = stub.floats(self.steps.numbers().tolist())
        if self.finds_largest:
            clear = self.calls.use(ClearPlaces(self.isa))
            stub.call_kernel(clear, pointers["largest"])
            pointers["largest"] = stub.advance(pointers["largest"], I32, (stub.thread, SLOT))
        return stub, pointers

    def outputs(self, pointers: dict[str, Value]) -> list[Operand]:
        """Return the arguments that say where results go."""
        names = tuple(self.results) if self.steps is None else ("y", "q", "steps")
        names = (*names, "largest") if self.finds_largest else names
        return [pointers.get(name, NULL) for name in names]

    def finish(self, stub: Stub) -> None:
        """Call the stub, and replace the op's results by what it stores."""
        sizes = [self.size(axis) for axis in dynamic_axes(self.op.result)]
        memories = {
            result: self.allocate(self._plain(result).element_type, shape_of(result), sizes)
            for result in self.results.values()
        }
        more = [self.allocate(i32, [PLACES, SLOT])] if self.finds_largest else []
        self.call(stub, [*map(self.buffer, self.operands.values()), *memories.values(), *more])
        stored = [self._as_result(result, memories.get(result)) for result in self.op.results]
        self.replace(*stored)
        for memory in more:
            assert stored[0] is not None
            self.calls.largest[stored[0]] = memory

    def size(self, axis: int) -> SSAValue:
        """Return a dynamic size of the result."""
        return self.make(tensor.DimOp(self.op.x, self.index(axis)))

    def windows(self, axis: int, reach: int, stride: int, padding: int) -> SSAValue:
        """Return how many windows of a reach there are along a dimension."""
        size = self.make(tensor.DimOp(self.op.x, self.index(axis)))
        room = self.make(arith.AddiOp(size, self.index(padding - reach)))
        steps = self.make(arith.DivSIOp(room, self.index(stride)))
        return self.make(arith.AddiOp(steps, self.index(1)))

    def bytes(self, value: SSAValue) -> SSAValue:
        """Return few-bit integers as bytes."""
        if element_width(value.type) is None:
            return value
        return self.make(UnrealizedConversionCastOp.get([value], [self._plain(value)]))

    def _plain(self, value: SSAValue) -> TensorType[Attribute]:
        few = element_width(value.type) is not None
        return TensorType(i8 if few else tensor_of(value).element_type, shape_of(value))

    def _as_result(self, result: SSAValue, memory: SSAValue | None) -> SSAValue | None:
        if memory is None:
            return None
        value = self.as_tensor(memory)
        if value.type == result.type:
            return value
        return self.make(UnrealizedConversionCastOp.get([value], [result.type]))
