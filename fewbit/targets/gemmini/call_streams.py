"""Integer matmuls and convolutions of a program as calls of functions that send command streams.

Where the next layer's integers are made by one multiplier, the accelerator gives them, requantized
as numerics.md says. Everywhere else it gives the bare sums, in i32; scales, bias, activation and
rounding are loops of the host behind it, as `lower-kernel` writes them. Operands of fewer bits
are bytes with the same integers, so their scales do not change.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    ModuleOp,
    TensorType,
    UnrealizedConversionCastOp,
    i8,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fewbit.codegen.bare_metal.device_calls import MARK, DeviceCalls, emit_mark
from fewbit.codegen.stubs import Stub
from fewbit.dialects import kernel
from fewbit.dialects.mico import element_width
from fewbit.dialects.mico.syntax import ints
from fewbit.ir.locations import place_of
from fewbit.ir.symbols import SymbolTable, using
from fewbit.llvm.function import Prototype
from fewbit.llvm.values import Value
from fewbit.passes.kernel.call_site import CallSite, constant_name, shape_of
from fewbit.passes.linalg.lower_kernel import finish
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program
from fewbit.simulators.gemmini.command import Command
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.targets.gemmini.issue import OPERANDS, START, START_SYMBOL, Issuer
from fewbit.targets.gemmini.legal import conv_refusal, pool_refusal
from fewbit.targets.gemmini.streams.conv2d import Conv2d, conv2d
from fewbit.targets.gemmini.streams.matmul import Matmul, matmul
from fewbit.targets.gemmini.streams.max_pool import MaxPool, max_pool
from fewbit.targets.gemmini.streams.output import I32, Output
from fewbit.targets.gemmini.tiler import ConvShape
from fewbit.toolchain.isa import Isa

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Stream:
    """What the accelerator does for one op."""

    name: str
    """The name of the layer."""
    kind: str
    buffers: tuple[str, ...]
    macs: int
    commands: Sequence[Command]
    repeated: bool = False
    """Whether it is sent for each sample of a batch whose size only a run knows."""


@dataclass(frozen=True)
class OnHost:
    """Names of the layers that a program has placed elsewhere."""

    layers: Container[str]


@dataclass(frozen=True)
class CallStreams(ModulePass):
    """Send command streams for what the accelerator computes."""

    name = "call-streams"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        away, program = known.find(OnHost), known.program(op)
        hosted = () if away is None else away.layers
        calls = call_streams(program, known.get(Isa), known.get(Hardware), hosted)
        known.put(calls, DeviceCalls)


@dataclass
class StreamCalls(DeviceCalls):
    """The calls of a program, and the streams behind them."""

    hardware: Hardware = field(default_factory=Hardware)
    streams: list[Stream] = field(default_factory=list[Stream])
    issuer: Issuer = field(default_factory=Issuer)

    @property
    def needs(self) -> tuple[str, ...]:
        if not self.streams:
            return ()
        size = self.hardware
        scratchpad = size.scratchpad_rows * size.dim // 1024
        accumulator = size.accumulator_rows * size.dim * 4 // 1024
        return (
            f"a Gemmini of {size.dim} x {size.dim} int8 multipliers (`DIM` in `gemmini_params.h`), "
            f"with {scratchpad} KB of scratchpad and {accumulator} KB of accumulators, as custom-3",
        )

    @property
    def has_coprocessor(self) -> bool:
        return bool(self.streams)

    def add(self, stream: Stream) -> str:
        """Return the function that sends it."""
        if not self.streams:
            self.issuer.add(START_SYMBOL, START, ())
        symbol = f"stream.{len(self.streams):03}"
        self.issuer.add(symbol, stream.commands, stream.buffers)
        self.streams.append(stream)
        return symbol

    def texts(self) -> list[str]:
        if not self.stubs:
            return []
        declared = [
            f"declare void @stream.{number:03}({', '.join('ptr' for _ in stream.buffers)})"
            for number, stream in enumerate(self.streams)
        ]
        return [
            "\n".join([self.issuer.table_ir(), *declared, *(stub.text() for stub in self.stubs)])
        ]

    @property
    def public(self) -> set[str]:
        return {OPERANDS}

    @property
    def called_first(self) -> tuple[str, ...]:
        return (START_SYMBOL,) if self.streams else ()

    def object(self) -> bytes:
        assembler = self.issuer.assembler
        if MARK not in assembler.symbols:
            emit_mark(assembler)
        return assembler.object("double")


def call_streams(
    program: Program, isa: Isa, hardware: Hardware, on_host: Container[str] = ()
) -> StreamCalls:
    """Replace, in place, every op that the accelerator computes; layers on the host by name."""
    calls = StreamCalls(isa, hardware=hardware)
    with using(SymbolTable(program.module)):
        for op in list(program.module.walk()):
            if op.parent is None or (place_of(op).layer or "") in on_host:
                continue
            if isinstance(op, kernel.MatmulOp | kernel.Conv2dOp):
                _Contraction(program, op, calls).run()
            elif isinstance(op, kernel.Pool2dOp):
                _Pool(program, op, calls).run()
    return calls


class _Site(CallSite[Any]):
    calls: StreamCalls

    def is_sized(self) -> bool:
        """Return whether all but the size of the batch is known."""
        return min(*shape_of(self.op.x)[1:], *shape_of(self.op.result)[1:], 0) >= 0

    @property
    def is_repeated(self) -> bool:
        return shape_of(self.op.x)[0] < 0

    @property
    def x_shape(self) -> tuple[int, ...]:
        """The shape of what one stream reads."""
        first, *inner = shape_of(self.op.x)
        return (1 if first < 0 else first, *inner)

    @property
    def layer(self) -> str:
        return place_of(self.op).layer or self.op.name

    def stream(
        self, kind: str, buffers: Sequence[str], macs: int, commands: Sequence[Command]
    ) -> Stream:
        return Stream(self.layer, kind, tuple(buffers), macs, commands, self.is_repeated)

    def send(self, stream: Stream, buffers: Sequence[SSAValue]) -> None:
        """Call the function of a stream with these buffers."""
        symbol = self.calls.add(stream)
        stub = self.stub("", [value.type for value in buffers])
        if not stream.repeated:
            self._one(stub, symbol, [memory.pointer for memory in stub.memrefs])
        else:
            with stub.loop(0, stub.memrefs[0].sizes[0]) as samples:
                moved = [
                    stub.advance(m.pointer, m.element, (samples.index, stub.product(m.sizes[1:])))
                    if name in ("x", "y")
                    else m.pointer
                    for name, m in zip(stream.buffers, stub.memrefs, strict=True)
                ]
                self._one(stub, symbol, moved)
        self.call(stub, buffers)

    def _one(self, stub: Stub, symbol: str, pointers: Sequence[Value]) -> None:
        stub.call(Prototype.of(symbol, "void", *(["ptr"] * len(pointers))), *pointers)

    def result(self, element: Attribute, like: SSAValue) -> SSAValue:
        """Return memory for what the accelerator gives."""
        sizes = [self.make(tensor.DimOp(self.op.x, self.index(0)))] if self.is_repeated else []
        return self.allocate(element, shape_of(like), sizes)

    def bytes(self, value: SSAValue) -> SSAValue:
        """Return few-bit integers as bytes."""
        return self.cast(value, TensorType(i8, shape_of(value)))

    def cast(self, value: SSAValue, type: Attribute) -> SSAValue:
        if value.type == type:
            return value
        return self.make(UnrealizedConversionCastOp.get([value], [type]))


class _Contraction(_Site):
    op: kernel.MatmulOp | kernel.Conv2dOp

    def run(self) -> None:
        op = self.op
        weight = None if op.is_float else self.constant(op.weight)
        if weight is None or op.scale_groups is not None or not self.is_sized():
            return
        output = self._output()
        biased = not output.full and op.bias is not None
        pool = None if output.full else self._pool_behind()
        sent = self._stream(weight, output, biased, pool)
        if sent is None:
            return
        stream, packed = sent
        name = f"{constant_name(op.weight)}.{stream.kind}"
        given = [self.bytes(op.x), self.keep(name, i8, lambda: packed.astype(np.int8))]
        if biased:
            given.append(cast(SSAValue, op.bias))
        y = self.result(i32 if output.full else i8, op.result if pool is None else pool.result)
        self.send(stream, [*map(self.buffer, given), y])
        result = self.as_tensor(y)
        if output.full:
            self._finish(result)
        elif pool is None:
            assert op.quantized is not None
            self.replace(None, self.cast(result, op.quantized.type))
        else:
            pool.result.replace_all_uses_with(self.cast(result, pool.result.type))
            Rewriter.erase_op(pool)
            self.replace(None, None)

    def _finish(self, sums: SSAValue) -> None:
        """Let the host do what is left to do with the sums."""
        block = Block()
        with ImplicitBuilder(block):
            results = finish(self.op, sums)
        for op in list[Operation](block.ops):
            op.detach()
            self.new_ops.append(op)
        self.replace(*results)

    def _output(self) -> Output:
        """Return the output, requantized where the accelerator rounds as the op does."""
        op = self.op
        if op.multiplier is None or op.result.first_use is not None:
            return I32
        multiplier = self.constant(op.multiplier)
        low, high = op.integer_bounds
        if multiplier is None or multiplier.ndim or high != 127 or low not in (-128, 0):
            return I32
        if op.bias is not None and self.constant(op.bias) is None:
            return I32
        return Output(float(multiplier), relu=low == 0)

    def _pool_behind(self) -> kernel.Pool2dOp | None:
        """Return max pooling that is all that reads the integers of a convolution."""
        op = self.op
        if not isinstance(op, kernel.Conv2dOp) or _is_pointwise(op) or op.quantized is None:
            return None
        users = [use.operation for use in op.quantized.uses]
        pool = users[0] if len(users) == 1 else None
        return pool if isinstance(pool, kernel.Pool2dOp) and _is_simple(pool) else None

    def _stream(
        self, weight: Array, output: Output, bias: bool, pool: kernel.Pool2dOp | None
    ) -> tuple[Stream, Array] | None:
        op, hardware = self.op, self.calls.hardware
        buffers = ("x", "weight", *(["bias"] if bias else []), "y")
        if isinstance(op, kernel.MatmulOp) or _is_pointwise(op):
            n, k = weight.shape[:2]
            problem = Matmul(prod(self.x_shape[:-1]), n, k, bias, output)
            commands = matmul(problem, hardware)
            packed = np.ascontiguousarray(weight.reshape(n, k).T)
            return self.stream("matmul", buffers, problem.macs, commands), packed
        (top, bottom), (left, right) = op.padding_pairs
        pads = ((top, bottom), (left, right))
        groups, strides, dilations = op.groups.value.data, ints(op.stride), ints(op.dilation)
        refused = conv_refusal(weight.shape, strides, dilations, pads, groups)
        if refused is not None:
            return None
        batch, height, width, _ = self.x_shape
        outputs, channels, kh, kw = weight.shape
        shape = ConvShape(
            batch, height, width, channels, outputs // groups, kh, kw, strides[0],
            top, left, bottom, right, dilations[0],
            *((1, 1) if pool is None else (ints(pool.kernel_size)[0], ints(pool.stride)[0])),
        )  # fmt: skip
        conv = Conv2d(shape, groups, bias, output)
        grouped = weight.reshape(groups, -1, *weight.shape[1:]).transpose(0, 3, 4, 2, 1)
        stream = self.stream("conv2d", buffers, conv.macs, conv2d(conv, hardware))
        return stream, np.ascontiguousarray(grouped)


def _is_pointwise(op: kernel.Conv2dOp) -> bool:
    """Return whether each pixel is multiplied for itself, all of them in a row."""
    size = shape_of(op.weight)[2:]
    plain = size == ints(op.stride) == (1, 1) and not any(ints(op.padding))
    return plain and op.groups.value.data == 1


def _is_simple(op: kernel.Pool2dOp) -> bool:
    """Return whether the accelerator pools so."""
    if element_width(op.x.type) is None or op.kind.data != "max" or op.ceil_mode.value.data:
        return False
    width = shape_of(op.x)[2]
    return not pool_refusal(ints(op.kernel_size), ints(op.stride), op.padding_pairs, width)


class _Pool(_Site):
    """The largest of windows of integers."""

    op: kernel.Pool2dOp

    def run(self) -> None:
        op = self.op
        if not self.is_sized() or not _is_simple(op):
            return
        batch, height, width, channels = self.x_shape
        size, stride = ints(op.kernel_size)[0], ints(op.stride)[0]
        pool = MaxPool(batch, height, width, channels, size, stride)
        stream = self.stream("max_pool", ("x", "y"), 0, max_pool(pool, self.calls.hardware))
        y = self.result(i8, op.result)
        self.send(stream, [self.buffer(self.bytes(op.x)), y])
        result = self.cast(self.as_tensor(y), op.result.type)
        self.replace(result, *[None] * (len(op.results) - 1))
