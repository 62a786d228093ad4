"""Matmuls and convolutions of integers as calls of kernels for WebAssembly.

With vectors, layers of as many channels as a kernel takes at once have kernels of their own; what
is smaller, and what engines without vectors compute, has those of plain microcontrollers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnrealizedConversionCastOp, f32, i8
from xdsl.passes import ModulePass

from fewbit.dialects import kernel
from fewbit.dialects.mico import element_width
from fewbit.numerics.widths import Width
from fewbit.passes.kernel.call_site import CallSite, shape_of
from fewbit.pipeline.context import compile_context
from fewbit.targets.mcu.call_mcu_kernels import (
    KernelCall,
    McuCalls,
    Output,
    Plan,
    call_mcu_kernels,
    scale_shape,
    windows_of,
)
from fewbit.targets.mcu.kernels.contraction import Windows
from fewbit.targets.mcu.layout import stored_bits
from fewbit.targets.wasm.engine import Engine
from fewbit.targets.wasm.kernels.contraction import (
    VectorContraction,
    contraction,
    shape_of_tile,
)
from fewbit.targets.wasm.kernels.conv2d import Conv2d, Plane, can_be_read_in_place, conv2d
from fewbit.targets.wasm.kernels.depthwise import AT_ONCE, MOST_TAPS, VectorDepthwise, depthwise
from fewbit.targets.wasm.kernels.lanes import table_of
from fewbit.targets.wasm.kernels.layout import LANES, VectorLayout
from fewbit.targets.wasm.kernels.quantize_rows import QuantizeRows, quantize_rows
from fewbit.targets.wasm.kernels.tile import Segments, VectorTile

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class CallWasmKernels(ModulePass):
    """Call kernels for WebAssembly for matmuls and convolutions of integers."""

    name = "call-wasm-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        program, engine = known.program(op), known.get(Engine)
        if not engine.has_vectors:
            known.put(call_mcu_kernels(program, engine), McuCalls)
            return
        calls = call_mcu_kernels(program, engine, VectorCall)
        for each in list(op.walk()):
            if isinstance(each, kernel.QuantizeRowsOp):
                QuantizeCall(program, each, calls).run()
        known.put(calls, McuCalls)


class VectorCall(KernelCall):
    """An op that becomes a call of a kernel with vectors, where it has channels enough."""

    def plan(self, weight: Array, output: Output) -> Plan:
        op = self.op
        if self.is_depthwise:
            assert isinstance(op, kernel.Conv2dOp)
            plane = VectorDepthwise(shape_of(op.x)[0], windows_of(op), output.epilogue)
            if plane.windows.channels < AT_ONCE or plane.taps > MOST_TAPS:
                return super().plan(weight, output)
            function, room = depthwise(self.code, plane)
            return Plan(function, room, plane.pack(weight), "eights", table_of)
        is_sum = output.epilogue.kind == "channels"
        if len(weight) < LANES or (is_sum and len(weight) % LANES):
            return super().plan(weight, output)
        if isinstance(op, kernel.Conv2dOp):
            return self._plan_conv2d(op, weight, output, is_sum)
        rows = prod(shape_of(op.x)[:-1])
        return self._plan_rows(1, rows, None, weight, output, is_sum)

    def _plan_conv2d(
        self, op: kernel.Conv2dOp, weight: Array, output: Output, is_sum: bool
    ) -> Plan:
        windows, images = windows_of(op), shape_of(op.x)[0]
        lines = weight.transpose(0, 2, 3, 1).reshape(len(weight), windows.size[0], -1)
        tall, vectors = shape_of_tile(windows.out[1], len(weight), exact=is_sum)
        layout = self._layout(vectors)
        if not can_be_read_in_place(windows, layout):
            matrix = lines.reshape(len(weight), -1)
            return self._plan_rows(images, prod(windows.out), windows, matrix, output, is_sum)
        plane = Plane(windows, layout.has_bytes)
        tile = VectorTile(layout, tall, plane.segments, len(weight), output.epilogue)
        function, room = conv2d(self.code, Conv2d(images, plane, tile))
        return Plan(function, room, tile.pack(lines), f"{layout.name}_lines", table_of)

    def _plan_rows(
        self,
        images: int,
        rows: int,
        windows: Windows | None,
        matrix: Array,
        output: Output,
        is_sum: bool,
    ) -> Plan:
        n, k = matrix.shape
        tall, vectors = shape_of_tile(rows, n, exact=is_sum)
        layout = self._layout(vectors)
        segments = Segments(1, k, 0, layout.depth(k))
        has_row_scales = windows is None and prod(scale_shape(self.op.x_scale)) > 1
        tile = VectorTile(layout, tall, segments, n, output.epilogue, has_row_scales)
        function, room = contraction(self.code, VectorContraction(images, rows, windows, tile))
        return Plan(function, room, tile.pack(matrix[:, None]), layout.name, table_of)

    def _layout(self, vectors: int) -> VectorLayout:
        """Return the layout of weights, as bytes where one factor of products has no sign."""
        engine = self.code.core
        width = element_width(self.op.weight.type) or Width.of(8)
        bits = stored_bits(width.bits)
        if not (isinstance(engine, Engine) and engine.has_byte_dots):
            return VectorLayout(bits, vectors)
        if bits == 8 and self.is_unsigned:
            return VectorLayout(bits, vectors, has_bytes=True)
        if width.bits == 8:
            return VectorLayout(bits, vectors)
        return VectorLayout(bits, vectors, has_bytes=True, offset=min(1 << bits - 1, 64))


class QuantizeCall(CallSite[kernel.QuantizeRowsOp]):
    """Activations that become a call of the kernel that quantizes rows."""

    def run(self) -> None:
        op, calls = self.op, self.calls
        shape, lead = shape_of(op.x), len(shape_of(op.scale))
        length = prod(shape[lead:])
        if min(shape) < 0 or length < LANES or op.width.bits <= 2:
            return
        assert isinstance(calls, McuCalls)
        assert calls.code is not None
        rows = QuantizeRows(prod(shape[:lead]), length, op.width.qmax)
        function = quantize_rows(calls.code, rows)
        values, scales = self.allocate(i8, shape), self.allocate(f32, shape[:lead])
        memory = [self.buffer(op.x), values, scales]
        stub = self.stub("quantize", [each.type for each in memory])
        stub.call(function.prototype, *(each.pointer for each in stub.memrefs))
        self.call(stub, memory)
        cast = UnrealizedConversionCastOp.get([self.as_tensor(values)], [op.result.type])
        self.replace(self.make(cast), self.as_tensor(scales))
