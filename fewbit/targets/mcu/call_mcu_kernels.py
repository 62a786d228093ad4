"""Matmuls and convolutions of integers as calls of a microcontroller's kernels.

A kernel makes outputs of its accumulators at once, so that these are never stored: memory is what a
microcontroller has least of. What it cannot make of them (an activation that is no bound, an
addition of integers) it leaves to loops, and gives sums. Floats, scales of groups, weights that a
run computes and convolutions in groups are left to `lower-kernel` altogether.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    IntegerAttr,
    ModuleOp,
    TensorType,
    UnrealizedConversionCastOp,
    f32,
    i8,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from fewbit.codegen.stubs import KernelCalls
from fewbit.dialects import kernel
from fewbit.dialects.mico import element_width
from fewbit.dialects.mico.syntax import ints
from fewbit.ir.symbols import SymbolTable, using
from fewbit.llvm.values import NULL, Operand
from fewbit.numerics.widths import Width
from fewbit.passes.kernel.call_site import CallSite, constant_name, shape_of
from fewbit.passes.kernel.unsigned import is_unsigned
from fewbit.passes.linalg.lower_kernel import finish
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program
from fewbit.targets.mcu.chain import Chain, find_chain
from fewbit.targets.mcu.core import Core
from fewbit.targets.mcu.kernels.contraction import (
    Contraction,
    Windows,
    contraction,
    shape_of_tile,
)
from fewbit.targets.mcu.kernels.depthwise import Depthwise, depthwise
from fewbit.targets.mcu.kernels.epilogue import (
    Epilogue,
    common_shift,
    integer_bounds,
    missing_bits,
)
from fewbit.targets.mcu.kernels.function import Code, Kernel
from fewbit.targets.mcu.kernels.tile import Tile
from fewbit.targets.mcu.layout import Layout, stored_bits

Array = np.ndarray[Any, Any]
TALL = 5
"""Rows of a tile that adds up channels, which must divide the layer's."""
Contracted = kernel.MatmulOp | kernel.Conv2dOp


@dataclass(frozen=True)
class CallMcuKernels(ModulePass):
    """Call a microcontroller's kernels for matmuls and convolutions of integers."""

    name = "call-mcu-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        known.put(call_mcu_kernels(known.program(op), known.get(Core)), McuCalls)


@dataclass
class McuCalls(KernelCalls):
    """The calls of a program, with the code behind them."""

    code: Code | None = None
    unsigned: frozenset[Operation] = frozenset()
    """The ops whose activations are known to be no less than 0."""

    def texts(self) -> list[str]:
        if not self.stubs or self.code is None:
            return []
        return ["\n".join([*(stub.text() for stub in self.stubs), self.code.text()])]


def call_mcu_kernels(
    program: Program, core: Core, kind: type[KernelCall] | None = None
) -> McuCalls:
    """Replace, in place, every matmul or convolution that kernels compute."""
    kind = kind or KernelCall
    code = Code(core)
    ops = [op for op in program.module.walk() if isinstance(op, Contracted) and not op.is_float]
    unsigned = frozenset(op for op in ops if is_unsigned(op.x))
    calls = McuCalls(core.isa, code=code, unsigned=unsigned)
    with using(SymbolTable(program.module)):
        for op in ops:
            kind(program, op, calls, code).run()
    return calls


@dataclass
class Plan:
    """A kernel, its weights, and the room that it needs."""

    function: Kernel
    room: int
    packed: Array
    layout: str
    """In the name of the weights, because another kernel may want them otherwise."""
    table: Callable[[Epilogue, dict[str, Array], int], Array] = Epilogue.table


@dataclass
class Output:
    """How outputs are made, and the columns of the table of channels."""

    epilogue: Epilogue
    columns: dict[str, Array] = field(default_factory=dict[str, Array])
    x_scale: SSAValue | None = None
    add: SSAValue | None = None
    has_bias_behind: bool = False
    """Whether sums are finished by loops."""


class KernelCall(CallSite[Contracted]):
    """An op that becomes a call; other targets have other plans."""

    def __init__(self, program: Program, op: Contracted, calls: McuCalls, code: Code) -> None:
        super().__init__(program, op, calls)
        self.code, self.is_unsigned = code, op in calls.unsigned

    def run(self) -> None:
        op = self.op
        weight = self.constant(op.weight)
        if weight is None or op.scale_groups is not None or min(shape_of(op.x)) < 0:
            return
        if isinstance(op, kernel.Conv2dOp) and op.groups.value.data > 1 and not self.is_depthwise:
            return
        output = self._output()
        plan = self.plan(weight, output)
        memory = [self.buffer(self._bytes(op.x)), self._weights(plan)]
        table = plan.table(output.epilogue, output.columns, len(weight))
        name = f"{constant_name(op.weight)}.table_{len(self.calls.names)}"
        memory.append(self.buffer(self.keep(name, i8, lambda: table)))
        memory.append(self.allocate(i8, [max(plan.room, 1)]))
        places = {"x": 0, "weight": 1, "table": 2, "room": 3}
        for what, value in (("x_scale", output.x_scale), ("add", output.add)):
            if value is not None:
                places[what] = len(memory)
                memory.append(self.buffer(value))
        results = self._allocate_results(output.epilogue)
        for what, value in results.items():
            places[what] = len(memory)
            memory.append(value)
        stub = self.stub("", [value.type for value in memory])
        order = ("x", "weight", "table", "room", "x_scale", "add", "y", "q")
        given: list[Operand] = [
            stub.memrefs[places[what]].pointer if what in places else NULL for what in order
        ]
        stub.call(plan.function.prototype, *given)
        self.call(stub, memory)
        self._give(output, {what: self.as_tensor(value) for what, value in results.items()})

    def constant(self, value: SSAValue) -> Array | None:
        """Return the array that a value is, if it is constant; an integer in the text is one."""
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
            return np.array(owner.value.value.data, np.int32)
        return super().constant(value)

    # What is computed

    def plan(self, weight: Array, output: Output) -> Plan:
        op, core = self.op, self.code.core
        if self.is_depthwise:
            assert isinstance(op, kernel.Conv2dOp)
            windows = windows_of(op)
            plane = Depthwise(shape_of(op.x)[0], windows, output.epilogue)
            function, room = depthwise(self.code, plane)
            return Plan(function, room, plane.pack(weight), "depthwise")
        width = element_width(op.weight.type)
        bits = 8 if width is None else stored_bits(width.bits)
        windows = windows_of(op) if isinstance(op, kernel.Conv2dOp) else None
        if windows is None:
            images, rows = 1, prod(shape_of(op.x)[:-1])
            matrix = weight
        else:
            images, rows = shape_of(op.x)[0], prod(windows.out)
            matrix = weight.transpose(0, 2, 3, 1).reshape(len(weight), -1)
        n, k = matrix.shape
        tall, wide = shape_of_tile(core, bits, rows, k, n)
        if output.epilogue.kind == "channels":  # nothing may be added twice
            tall, wide = _largest_divisor(rows, max(tall, TALL)), 1
        layout = Layout(core.family, bits, wide)
        has_row_scales = windows is None and prod(scale_shape(op.x_scale)) > 1
        tile = Tile(layout, tall, k, n, output.epilogue, has_row_scales)
        function, room = contraction(self.code, Contraction(images, rows, windows, tile))
        return Plan(function, room, layout.pack(matrix), f"{layout.family}{wide}")

    def _output(self) -> Output:
        op = self.op
        if op.multiplier is not None and op.result.first_use is None:
            return self._requantized()
        chain = None if self.is_depthwise else self._chain()
        if chain is not None:
            columns = self._bias() | dict(chain.columns)
            return Output(Epilogue("channels", op.bias is not None, chain=chain), columns)
        one_image = op.x_scale is not None and self._scale_is_simple(op.x_scale)
        is_plain = op.gives_floats and one_image and op.activation_name is None
        if not is_plain or not self._knows(op.weight_scale, op.bias):
            return Output(Epilogue("sums"), has_bias_behind=True)
        return self._scale_to_floats()

    def _chain(self) -> Chain | None:
        """Return what makes one sum of each channel, if that is all that reads accumulators."""
        op = self.op
        is_bare = isinstance(op, kernel.Conv2dOp) and not op.gives_floats and op.multiplier is None
        if not is_bare or not self._knows(op.bias):
            return None
        return find_chain(op.result, self.constant)

    def _scale_is_simple(self, scale: SSAValue) -> bool:
        """Return whether a scale is that of all, of rows, or of images."""
        lead = shape_of(self.op.x)[:-1] if isinstance(self.op, kernel.MatmulOp) else ()
        given = scale_shape(scale)
        if isinstance(self.op, kernel.MatmulOp):
            return given in ((), lead)
        return prod(given) == 1 or given == shape_of(self.op.x)[:1]

    def _knows(self, *values: SSAValue | None) -> bool:
        return all(value is None or self.constant(value) is not None for value in values)

    def _requantized(self) -> Output:
        op = self.op
        assert op.multiplier is not None
        multiplier = self.constant(op.multiplier)
        shift = None if op.shift is None else self.constant(op.shift)
        low, high = (int(end) for end in op.integer_bounds)
        if multiplier is None or not self._knows(op.bias, op.shift):
            return Output(Epilogue("sums"), has_bias_behind=True)
        columns = self._bias()
        has_bias = op.bias is not None
        if shift is None:
            columns["scale"] = multiplier.astype(np.float32)
            return Output(Epilogue("scaled", has_bias, bounds=(low, high)), columns)
        raised = missing_bits(shift)
        if self._largest_sum() >= 1 << 31 - raised:
            return Output(Epilogue("sums"), has_bias_behind=True)
        shift = np.broadcast_to(shift, multiplier.shape) + np.int32(raised)
        columns["multiplier"], columns["shift"], common = common_shift(multiplier, shift)
        epilogue = Epilogue("fixed", has_bias, common, raised, bounds=(low, high))
        return Output(epilogue, columns)

    def _largest_sum(self) -> int:
        """Return a bound of accumulators with their bias."""
        op = self.op
        widths = (element_width(value.type) or Width.of(8) for value in (op.x, op.weight))
        bias = 0 if op.bias is None else int(np.abs(self._bias()["bias"].astype(np.int64)).max())
        return prod(shape_of(op.weight)[1:]) * prod(w.magnitude for w in widths) + bias

    def _scale_to_floats(self) -> Output:
        op = self.op
        assert op.weight_scale is not None
        scale = self.constant(op.weight_scale)
        assert scale is not None
        step = None if op.step is None else op.step.value.data
        bounds, is_binary = (-128, 127), False
        if step is not None:
            assert op.quantized is not None
            width = element_width(op.quantized.type)
            assert width is not None
            is_binary = width.is_binary
            bounds = integer_bounds(op.bounds, step, width.qmin, width.qmax)
        gives_floats = op.result.first_use is not None or step is None
        epilogue = Epilogue(
            "floats",
            op.bias is not None,
            bounds=bounds,
            float_bounds=op.bounds if gives_floats or is_binary else (None, None),
            has_add=op.add is not None,
            gives_floats=gives_floats,
            step=step,
            is_binary=is_binary,
        )
        columns = self._bias() | {"scale": scale.astype(np.float32)}
        return Output(epilogue, columns, self._x_scale(), op.add)

    def _bias(self) -> dict[str, Array]:
        bias = None if self.op.bias is None else self.constant(self.op.bias)
        return {} if bias is None else {"bias": bias}

    def _x_scale(self) -> SSAValue:
        """Return the scale of activations as a tensor."""
        scale = self.op.x_scale
        assert scale is not None
        known = self.constant(scale)
        if known is None:
            assert isinstance(scale.type, TensorType)
            return scale
        images = 1 if isinstance(self.op, kernel.MatmulOp) else shape_of(self.op.x)[0]
        array = known.astype(np.float32).reshape(-1)
        if array.size == 1:
            array = np.repeat(array, images)
        name = f"{constant_name(self.op.weight)}.x_scale_{len(self.calls.names)}"
        return self.keep(name, f32, lambda: array)

    # Memory

    def _weights(self, plan: Plan) -> SSAValue:
        name = f"{constant_name(self.op.weight)}.{plan.layout}"
        return self.buffer(self.keep(name, i8, lambda: plan.packed))

    def _allocate_results(self, epilogue: Epilogue) -> dict[str, SSAValue]:
        shape = shape_of(self.op.result)
        results: dict[str, SSAValue] = {}
        if epilogue.kind == "sums":
            results["y"] = self.allocate(i32, shape)
        if epilogue.kind == "channels":
            results["y"] = self.allocate(i32, (shape[0], shape[-1]))
        if epilogue.gives_floats:
            results["y"] = self.allocate(f32, shape)
        if epilogue.gives_integers:
            results["q"] = self.allocate(i8, shape)
        return results

    def _give(self, output: Output, given: dict[str, SSAValue]) -> None:
        op = self.op
        if output.has_bias_behind:
            block = Block()
            with ImplicitBuilder(block):
                results = finish(op, given["y"])
            for new in list(block.ops):
                new.detach()
                self.new_ops.append(new)
            self.replace(*results)
            return
        if output.epilogue.chain is not None:
            output.epilogue.chain.last.results[0].replace_all_uses_with(given["y"])
            output.epilogue.chain.erase()
            self.replace(None)
            return
        quantized: list[SSAValue] = []
        if op.quantized is not None:
            cast = UnrealizedConversionCastOp.get([given["q"]], [op.quantized.type])
            quantized.append(self.make(cast))
        self.replace(given.get("y"), *quantized)

    @property
    def is_depthwise(self) -> bool:
        op = self.op
        if not isinstance(op, kernel.Conv2dOp):
            return False
        outputs, inputs = shape_of(op.weight)[:2]
        return inputs == 1 and outputs == op.groups.value.data > 1

    def _bytes(self, value: SSAValue) -> SSAValue:
        """Return few-bit integers as bytes."""
        if element_width(value.type) is None:
            return value
        plain: Attribute = TensorType(i8, shape_of(value))
        return self.make(UnrealizedConversionCastOp.get([value], [plain]))


def _largest_divisor(count: int, most: int) -> int:
    return next(size for size in range(most, 0, -1) if count % size == 0)


def scale_shape(scale: SSAValue | None) -> tuple[int, ...]:
    """Return the shape of a scale, which may be a number."""
    return shape_of(scale) if scale is not None and isinstance(scale.type, TensorType) else ()


def windows_of(op: kernel.Conv2dOp) -> Windows:
    (top, _), (left, _) = op.padding_pairs
    _, height, width, channels = shape_of(op.x)
    return Windows(
        height,
        width,
        channels,
        size=_pair(shape_of(op.weight)[2:]),
        stride=_pair(ints(op.stride)),
        dilation=_pair(ints(op.dilation)),
        start=(top, left),
        out=_pair(shape_of(op.result)[1:3]),
    )


def _pair(values: Sequence[int]) -> tuple[int, int]:
    first, second = values
    return first, second
