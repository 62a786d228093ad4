"""`kernel.quantize_rows` as calls of kernels.

Threads share the rows, in one call. Where rows are few and long, such as the samples of a
convolution, they share columns: one call finds magnitudes, and behind it, when all threads have
met, another rounds. The bits are the same with any number of threads. Where a contraction computed
a tensor that is one row, it has found its magnitude already.
"""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.builtin import UnrealizedConversionCastOp, f32, f64, i8, i32
from xdsl.ir import SSAValue

from fewbit.codegen.memref import Size
from fewbit.codegen.stubs import Memref, Stub
from fewbit.dialects import kernel
from fewbit.dialects.mico.shapes import DYNAMIC, size
from fewbit.kernels import LargestMagnitudes, MagnitudeSums, QuantizeRows, RoundRows
from fewbit.kernels.largest_magnitudes import PLACES, SLOT
from fewbit.numerics.mean_magnitude import LANES, PARTS
from fewbit.passes.kernel.call_site import CallSite, dynamic_axes, shape_of

LONG = 8192
"""Numbers of a row that are worth sharing."""
ENOUGH_ROWS = 16
"""Rows that keep all threads busy, one at a time."""


class QuantizeRowsCall(CallSite[kernel.QuantizeRowsOp]):
    def run(self) -> None:
        op = self.op
        lead = len(shape_of(op.scale))
        sizes = {axis: self.size(axis) for axis in dynamic_axes(op.x)}
        values = self.allocate(i8, shape_of(op.x), list(sizes.values()))
        of_rows = [size for axis, size in sizes.items() if axis < lead]
        scales = self.allocate(f32, shape_of(op.scale), of_rows)
        x = self.buffer(op.x)
        if (parts := self.calls.largest.get(op.x)) is not None and finds_largest(op):
            self._round(lead, x, parts, values, scales, PLACES * SLOT)
        elif are_columns_shared(op):
            element, places = (f64, [PARTS, LANES]) if op.width.bits <= 2 else (i32, [PLACES])
            parts = self.allocate(element, [*shape_of(op.scale), *places], of_rows)
            self._find(lead, x, parts)
            self._round(lead, x, parts, values, scales)
        else:
            self._quantize(lead, x, values, scales)
        few_bit = UnrealizedConversionCastOp.get([self.as_tensor(values)], [op.result.type])
        self.replace(self.make(few_bit), self.as_tensor(scales))

    def size(self, axis: int) -> SSAValue:
        return self.make(tensor.DimOp(self.op.x, self.index(axis)))

    def _quantize(self, lead: int, x: SSAValue, values: SSAValue, scales: SSAValue) -> None:
        quantize = self.calls.use(QuantizeRows(self.isa, self.op.width.precision))
        stub = self.stub("quantize", [x.type, values.type, scales.type])
        given, to, scale = stub.memrefs
        m, k = _matrix(stub, given, lead)
        stub.call_kernel(quantize, given.pointer, k, to.pointer, k, scale.pointer, m, k)
        # One row is nothing to share, and what a step of a decoder has.
        worth = self.iterations(self.op.x, range(lead), 2)
        self.call(stub, [x, values, scales], worth)

    def _find(self, lead: int, x: SSAValue, parts: SSAValue) -> None:
        kind = MagnitudeSums if self.op.width.bits <= 2 else LargestMagnitudes
        find = self.calls.use(kind(self.isa))
        stub = self.stub("magnitudes", [x.type, parts.type])
        given, partial = stub.memrefs
        m, k = _matrix(stub, given, lead)
        stub.call_kernel(find, given.pointer, k, partial.pointer, m, k)
        self.call(stub, [x, parts])

    def _round(
        self,
        lead: int,
        x: SSAValue,
        parts: SSAValue,
        values: SSAValue,
        scales: SSAValue,
        places: int = PLACES,
    ) -> None:
        rounding = self.calls.use(RoundRows(self.isa, self.op.width.precision, places))
        stub = self.stub("quantize", [x.type, parts.type, values.type, scales.type])
        given, partial, to, scale = stub.memrefs
        m, k = _matrix(stub, given, lead)
        pointers = (partial.pointer, to.pointer)
        stub.call_kernel(rounding, given.pointer, k, *pointers, k, scale.pointer, m, k)
        self.call(stub, [x, parts, values, scales])


def are_columns_shared(op: kernel.QuantizeRowsOp) -> bool:
    """Return whether rows are few and long."""
    rows, length = _rows(op)
    is_long = length == DYNAMIC or length >= LONG
    return is_long and (rows == DYNAMIC or rows < ENOUGH_ROWS)


def finds_largest(op: kernel.QuantizeRowsOp) -> bool:
    """Return whether the largest magnitude that it looks for is one, of a whole and long tensor."""
    return op.width.bits > 2 and are_columns_shared(op) and _rows(op)[0] == 1


def _rows(op: kernel.QuantizeRowsOp) -> tuple[int, int]:
    shape, lead = shape_of(op.x), len(shape_of(op.scale))
    return size(shape[:lead]), size(shape[lead:])


def _matrix(stub: Stub, x: Memref, lead: int) -> tuple[Size, Size]:
    """Return the number of rows and their length."""
    return stub.product(x.sizes[:lead]), stub.product(x.sizes[lead:])
