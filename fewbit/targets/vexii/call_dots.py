"""Matmuls of few-bit integers as calls of functions that use dot instructions.

A call gives the bare sums, in i32; scales, bias, activation and rounding are loops behind it, the
same that `lower-kernel` writes. So all that is not the sum itself is computed as on every target.
Matmuls of floats, of weights that a run computes or with scales for groups, and depthwise
convolutions of images whose size only a run knows, are left to `lower-kernel` altogether.
Quantization of rows is a call too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType, UnrealizedConversionCastOp, f32, i8, i32
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from fewbit.codegen.bare_metal.device_calls import DeviceCalls, emit_mark
from fewbit.codegen.bare_metal.processor import Processor
from fewbit.codegen.memref import Size
from fewbit.codegen.stubs import Stub
from fewbit.dialects import kernel
from fewbit.dialects.mico import element_width
from fewbit.dialects.mico.syntax import ints
from fewbit.ir.symbols import SymbolTable, using
from fewbit.kernels.emit import Function
from fewbit.passes.kernel.call_site import CallSite, constant_name, dynamic_axes, shape_of
from fewbit.passes.linalg.lower_kernel import finish
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program
from fewbit.riscv.assembler import Assembler
from fewbit.targets.vexii.kernels.conv2d import Windows, conv2d
from fewbit.targets.vexii.kernels.depthwise import Depthwise, depthwise
from fewbit.targets.vexii.kernels.matmul import Code, matmul
from fewbit.targets.vexii.kernels.quantize_rows import quantize_rows
from fewbit.targets.vexii.layout import WIDTHS, Layout

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class CallDots(ModulePass):
    """Call functions with dot instructions for matmuls of few-bit integers."""

    name = "call-dots"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        known.put(call_dots(known.program(op), known.get(Processor)), DeviceCalls)


@dataclass
class DotCalls(DeviceCalls):
    """The calls of a program, with the code behind them."""

    code: Code = field(default_factory=lambda: Code(Processor(32)))

    @property
    def needs(self) -> tuple[str, ...]:
        return ("MiCo's dot products, custom-0",) if self.stubs else ()

    def texts(self) -> list[str]:
        if not self.stubs:
            return []
        return ["\n".join([*(stub.text() for stub in self.stubs), self.code.text()])]

    def object(self) -> bytes:
        assembler = Assembler(self.code.processor.xlen)
        emit_mark(assembler)
        for each in self.code.assembled.values():
            each.emit(assembler)
        return assembler.object(self.code.processor.float_abi)


def call_dots(program: Program, processor: Processor) -> DotCalls:
    """Replace, in place, every matmul or convolution that dot instructions compute."""
    calls = DotCalls(processor.isa, code=Code(processor))
    with using(SymbolTable(program.module)):
        for op in list(program.module.walk()):
            if isinstance(op, kernel.MatmulOp | kernel.Conv2dOp):
                _Call(program, op, calls).run()
            elif isinstance(op, kernel.QuantizeRowsOp) and processor.floats:
                _QuantizeCall(program, op, calls).run()
    return calls


def stored_bits(bits: int) -> int:
    """Return the smallest width with an instruction."""
    return next(width for width in WIDTHS if width >= bits)


class _QuantizeCall(CallSite[kernel.QuantizeRowsOp]):
    calls: DotCalls

    def run(self) -> None:
        op = self.op
        lead = len(shape_of(op.scale))
        sizes = {
            axis: self.make(tensor.DimOp(op.x, self.index(axis))) for axis in dynamic_axes(op.x)
        }
        values = self.allocate(i8, shape_of(op.x), list(sizes.values()))
        of_rows = [size for axis, size in sizes.items() if axis < lead]
        scales = self.allocate(f32, shape_of(op.scale), of_rows)
        memory = [self.buffer(op.x), values, scales]
        stub = self.stub("", [value.type for value in memory])
        function = quantize_rows(self.calls.code, op.width)
        pointers = [memory.pointer for memory in stub.memrefs]
        given = stub.memrefs[0].sizes
        m, k = stub.product(given[:lead]), stub.product(given[lead:])
        stub.call(function, *pointers, m, k)
        self.call(stub, memory)
        few_bit = UnrealizedConversionCastOp.get([self.as_tensor(values)], [op.result.type])
        self.replace(self.make(few_bit), self.as_tensor(scales))


class _Call(CallSite[kernel.MatmulOp | kernel.Conv2dOp]):
    calls: DotCalls

    def run(self) -> None:
        op = self.op
        weight = None if op.is_float else self.constant(op.weight)
        if weight is None or op.scale_groups is not None:
            return
        if self._is_depthwise and min(shape_of(op.x)[1:3]) < 0:
            return
        function, room, packed = self._function(weight)
        x = self._bytes(op.x)
        name = f"{constant_name(op.weight)}.panels_a{_bits(op.x)}"
        panels = self.keep(name, i8, lambda: packed)
        memory = [self.buffer(x), self.buffer(panels)]
        sizes = [self._size(axis) for axis in dynamic_axes(op.result)]
        sums = self.allocate(i32, shape_of(op.result), sizes)
        scratch = self.allocate(i8, [max(room, 1)])
        memory += [sums, scratch]
        stub = self.stub("", [value.type for value in memory])
        pointers = [memory.pointer for memory in stub.memrefs]
        stub.call(function, *pointers, *self._sizes(stub))
        self.call(stub, memory)
        total = self.as_tensor(sums)
        block = Block()
        with ImplicitBuilder(block):
            results = finish(op, total)
        for new in list(block.ops):
            new.detach()
            self.new_ops.append(new)
        self.replace(*results)

    @property
    def _is_depthwise(self) -> bool:
        op = self.op
        if not isinstance(op, kernel.Conv2dOp):
            return False
        outputs, inputs = shape_of(op.weight)[:2]
        return inputs == 1 and outputs == op.groups.value.data > 1

    @property
    def _is_pointwise(self) -> bool:
        """Whether each pixel is multiplied for itself, all of them in a row."""
        op = self.op
        if not isinstance(op, kernel.Conv2dOp):
            return True
        size = shape_of(op.weight)[2:]
        is_plain = size == ints(op.stride) == (1, 1) and not any(ints(op.padding))
        return is_plain and op.groups.value.data == 1

    def _function(self, weight: Array) -> tuple[Function, int, Array]:
        """Return what computes the sums, the bytes of room that it needs, and its weights."""
        op, code = self.op, self.calls.code
        act, bits = (_bits(value) for value in (op.x, op.weight))
        if self._is_pointwise:
            layout = Layout(act, bits, code.processor.xlen)
            rows = weight.reshape(weight.shape[:2])
            lead = shape_of(op.x)[:-1]
            m = None if any(size < 0 for size in lead) else int(np.prod(lead, dtype=int))
            function, room = matmul(code, layout, rows.shape[1], rows.shape[0], m)
            return function, room, layout.panels(rows)
        assert isinstance(op, kernel.Conv2dOp)
        windows = _windows(op)
        if self._is_depthwise:
            _, height, width, _ = shape_of(op.x)
            plane = Depthwise(windows, height, width, code.processor.xlen)
            function, room = depthwise(code, plane)
            return function, room, plane.pack(weight)
        if windows.is_padded and act == 1:
            act = 2  # 1 bit has no zero for what is outside of the image
        layout = Layout(act, bits, code.processor.xlen)
        function, room = conv2d(code, layout, windows)
        rows = weight.transpose(0, 2, 3, 1).reshape(len(weight), -1)
        panels = [layout.panels(part) for part in np.split(rows, windows.groups)]
        return function, room, np.concatenate(panels)

    def _sizes(self, stub: Stub) -> Sequence[Size]:
        x = stub.memrefs[0].sizes
        return [stub.product(x[:-1])] if self._is_pointwise else x[:3]

    def _size(self, axis: int) -> SSAValue:
        """Return a size of the result that is known only at run time."""
        op = self.op
        size = self.make(tensor.DimOp(op.x, self.index(axis)))
        if not isinstance(op, kernel.Conv2dOp) or axis == 0 or self._is_pointwise:
            return size
        place = axis - 1
        reach = ints(op.dilation)[place] * (shape_of(op.weight)[2 + place] - 1) + 1
        room = self.make(arith.AddiOp(size, self.index(sum(op.padding_pairs[place]) - reach)))
        steps = self.make(arith.DivSIOp(room, self.index(ints(op.stride)[place])))
        return self.make(arith.AddiOp(steps, self.index(1)))

    def _bytes(self, value: SSAValue) -> SSAValue:
        """Return few-bit integers as bytes."""
        if element_width(value.type) is None:
            return value
        plain = TensorType(i8, shape_of(value))
        return self.make(UnrealizedConversionCastOp.get([value], [plain]))


def _bits(value: SSAValue) -> int:
    width = element_width(value.type)
    return 8 if width is None else stored_bits(width.bits)


def _windows(op: kernel.Conv2dOp) -> Windows:
    outputs, _, *size = shape_of(op.weight)
    height, width, channels = shape_of(op.x)[1:]
    out_width = shape_of(op.result)[2]
    (top, bottom), (left, right) = op.padding_pairs
    return Windows(
        channels=channels,
        outputs=outputs,
        size=_pair(size),
        stride=_pair(ints(op.stride)),
        start=(top, left),
        end=(bottom, right),
        dilation=_pair(ints(op.dilation)),
        groups=op.groups.value.data,
        pixels=None if min(height, width) < 0 else height * width,
        out_width=None if out_width < 0 else out_width,
    )


def _pair(values: Sequence[int]) -> tuple[int, int]:
    first, second = values
    return first, second
