"""Ops of the `kernel` dialect, and rotations, as calls of generated kernels.

A call is a function on memory, `@kernel.003_conv1(x, weight, bias, y, thread, threads)`: declared
in MLIR, where it stands among loop nests and looks like one, and defined in LLVM IR by a stub that
adds what is known beforehand: sizes, strides, bounds. Weights are packed for the kernel here and
become constants of their own. A float weight that is computed at run time is packed there. What no
kernel computes is left to `lower-kernel`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf, prod
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    ModuleOp,
    TensorType,
    f16,
    f32,
    i8,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from fewbit.codegen.interface import MAX_THREADS
from fewbit.codegen.memref import Size
from fewbit.codegen.stubs import ONE_SCALE, KernelCalls, Stub
from fewbit.cost.cpu.calibration import Calibration
from fewbit.cost.cpu.kernel_call import ImageSizes, KernelCall, MatrixSizes
from fewbit.cost.cpu.threads import useful_threads
from fewbit.cost.cpu.work import is_counted
from fewbit.dialects import kernel
from fewbit.dialects.mico import HadamardOp, element_width
from fewbit.dialects.mico.syntax import ints
from fewbit.ir.symbols import SymbolTable, using
from fewbit.kernels import Conv2d, Depthwise, Matmul, PackB
from fewbit.kernels.activation import with_activation
from fewbit.kernels.bits.matmul import BitMatmul
from fewbit.kernels.choice import integer_conv2d, integer_matmul
from fewbit.kernels.integer.conv2d import IntegerConv2d
from fewbit.kernels.integer.depthwise import IntegerDepthwise
from fewbit.kernels.integer.fields import takes_unsigned
from fewbit.kernels.integer.group_scales import ScaleStorage, narrowest_storage
from fewbit.kernels.integer.matmul import IntegerMatmul, takes_groups, takes_offsets
from fewbit.kernels.integer.output import LARGEST
from fewbit.kernels.pack import packed_size
from fewbit.llvm.types import Spelled
from fewbit.llvm.values import Operand, Value
from fewbit.passes.kernel.call_max_pool import MaxPoolSite
from fewbit.passes.kernel.call_quantize_rows import QuantizeRowsCall, finds_largest
from fewbit.passes.kernel.call_rotate_blocks import RotateBlocksCall
from fewbit.passes.kernel.call_site import constant_name, shape_of, tensor_of
from fewbit.passes.kernel.stored_results import StoringSite
from fewbit.passes.kernel.unsigned import is_unsigned
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program
from fewbit.program.repeats import count_of
from fewbit.toolchain.isa import Isa

Array = np.ndarray[Any, Any]
FAR_BYTES = 40 << 20
"""Bytes of weights that no cache holds: last ones have 32 MiB for a few cores, and often less."""


@dataclass(frozen=True)
class CallKernels(ModulePass):
    """Call generated kernels for the layers that they compute."""

    name = "call-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        known.put(call_kernels(known.program(op), known.get(Isa)))


def call_kernels(program: Program, isa: Isa) -> KernelCalls:
    """Replace every op that there is a kernel for, in place."""
    with using(SymbolTable(program.module)):
        ops = list(program.module.walk())
        calls = KernelCalls(isa, far=_weight_bytes(ops) >= FAR_BYTES)
        # Found out before any op is replaced.
        unsigned = {op for op in ops if isinstance(op, kernel.ContractionOp) and is_unsigned(op.x)}
        for op in ops:
            if isinstance(op, kernel.MatmulOp) or _is_pointwise(op):
                _Matmul(program, op, calls, op in unsigned).run()
            elif isinstance(op, kernel.Conv2dOp):
                _Conv2d(program, op, calls, op in unsigned).run()
            elif isinstance(op, kernel.QuantizeRowsOp):
                QuantizeRowsCall(program, op, calls).run()
            elif isinstance(op, kernel.Pool2dOp):
                MaxPoolSite(program, op, calls).run()
            elif isinstance(op, HadamardOp):
                RotateBlocksCall(program, op, calls).run()
    return calls


def _weight_bytes(ops: Iterable[Operation]) -> int:
    """Return the bytes of the weights that layers read, about."""
    return sum(
        prod(shape_of(op.weight)) * (width.bits if width else 32) // 8 * count_of(op)
        for op in ops
        if isinstance(op, kernel.ContractionOp)
        for width in [element_width(op.weight.type)]
    )


def _is_pointwise(op: Operation) -> TypeGuard[kernel.Conv2dOp]:
    """Return whether an integer convolution is 1x1 with stride 1: a matmul of its pixels."""
    if not isinstance(op, kernel.Conv2dOp) or op.is_float or op.groups.value.data != 1:
        return False
    size = shape_of(op.weight)[2:]
    return size == ints(op.stride) == (1, 1) and not any(ints(op.padding))


ContractionT = TypeVar("ContractionT", bound=kernel.ContractionOp)


class _Contraction(StoringSite[ContractionT]):
    def __init__(
        self, program: Program, op: ContractionT, calls: KernelCalls, unsigned: bool
    ) -> None:
        super().__init__(program, op, calls)
        self.has_weight = self.is_constant(op.weight)
        self.is_integer = not op.is_float
        self.unsigned = unsigned and takes_unsigned(self.isa, self.widths[1])

    def is_callable(self) -> bool:
        """Return whether a kernel computes it: integers have constant weights and scales."""
        if not self.is_integer:
            return True
        scales = (self.op.weight_scale, self.op.weight_offset, self.op.multiplier)
        if not self.has_weight or any(s is not None and not self.is_constant(s) for s in scales):
            return False
        return self.op.step is None or self.steps is not None

    def prepare(self, packed: SSAValue) -> tuple[Stub, dict[str, Value]]:
        """Return a stub for all operands and the result, and its pointers by their names."""
        op = self.op
        w_scale = op.weight_scale if op.multiplier is None else op.multiplier
        named: dict[str, SSAValue | None] = {
            "x": self.bytes(op.x),
            "weight": packed,
            "x_scale": None if op.x_scale is None else self.as_rank(op.x_scale),
            "w_scale": None if w_scale is None else self.scale_of_each(w_scale),
            "bias": op.bias,
            "add": op.add,
        }
        given = {name: value for name, value in named.items() if value is not None}
        stub, pointers = self.prepare_stub(given)
        return stub, dict.fromkeys(named, stub.null()) | pointers

    def as_rank(self, value: SSAValue) -> SSAValue:
        """Return a scalar as a tensor of rank 0."""
        if isinstance(value.type, TensorType):
            return value
        return self.make(tensor.FromElementsOp(value, result_type=TensorType(value.type, [])))

    def scale_of_each(self, scale: SSAValue) -> SSAValue:
        """Return a scale for each output channel."""
        channels = shape_of(self.op.weight)[0]
        if isinstance(scale.type, TensorType) and shape_of(scale) == (channels,):
            return scale
        what = "weight_scale"
        if self.op.multiplier is not None:
            # Layers that share a weight may have multipliers of their own.
            bits = cast(Array, self.constant(scale)).astype(np.float32).view(np.uint32)
            what = f"multiplier_{int(bits):08x}"

        def fill(number: Array) -> Array:
            return np.full(channels, number, np.float32)

        return self.keep_for_weight(what, f32, fill, scale)

    @cached_property
    def finds_largest(self) -> bool:
        """Whether one call makes the whole result, whose largest magnitude is asked for."""
        op = self.op
        if not self.is_integer or not op.gives_floats or op.step is not None or op.activation:
            return False
        if op.scale_groups is not None or not self.is_one_call():
            return False
        users = [use.operation for use in op.result.uses]
        return any(isinstance(u, kernel.QuantizeRowsOp) and finds_largest(u) for u in users)

    def is_one_call(self) -> bool:
        """Return whether one call computes all groups."""
        return True

    @property
    def ends(self) -> tuple[float | None, float | None]:
        return self.op.bounds

    def estimate(self, stub: Stub, call: KernelCall, sizes: Sequence[Size]) -> None:
        """Add the call's time to the program's, and limit it to the threads that it can use."""
        if not is_counted(call.kernel):
            return
        self.calls.seconds += self.times * Calibration.default(self.isa).seconds(call)
        if any(not isinstance(size, int) for size in sizes):
            return
        useful = useful_threads(call, MAX_THREADS)
        if useful < MAX_THREADS:
            stub.limit_threads(useful)

    def rows_of_a_scale(self, stub: Stub, sizes: tuple[Size, ...]) -> Size:
        """Return how many rows share a scale; the last of the sizes is the length of a row."""
        if "x_scale" not in self.operands:
            return ONE_SCALE
        rank = len(shape_of(self.operands["x_scale"]))
        if self.op.has_row_groups:
            return 1
        return stub.product(sizes[rank:-1]) if rank else ONE_SCALE

    def bounds(self) -> list[float]:
        op, (low, high) = self.op, self.op.bounds
        ends = (-inf if low is None else low, inf if high is None else high)
        if op.multiplier is not None:
            ends = op.integer_bounds
        return [float(end) for end in ends]

    @property
    def widths(self) -> tuple[int, int]:
        """The widths of activations and weights, as kernels store them."""
        widths = (element_width(v.type) for v in (self.op.x, self.op.weight))
        x, weight = (8 if width is None else width.bits for width in widths)
        return x, weight

    @property
    def output(self) -> Any:
        if self.op.step is not None:
            return with_activation("steps", self.op.activation_name)
        if self.op.multiplier is not None:
            return "i32_i8" if "y" in self.results else "i8"
        if tensor_of(self.op.result).element_type == i32:
            return "i32"
        return LARGEST if self.finds_largest else with_activation("f32", self.op.activation_name)

    def pack_constant(self, pack: Callable[[Any], Any]) -> SSAValue:
        """Return the weight in the kernel's layout, as a constant."""

        def arrange(weight: Array) -> Array:
            return np.ravel(pack(weight))

        element = i8 if self.is_integer else f32
        return self.keep_for_weight("packed", element, arrange, self.op.weight)

    def keep_for_weight(
        self, what: str, element: Attribute, compute: Callable[..., Array], *sources: SSAValue
    ) -> SSAValue:
        """Return a constant derived from the weight and others; equal ones are kept once."""
        name = f"{self._weight_name()}.{what}{'.unsigned' if self.unsigned else ''}"
        return self.keep(name, element, compute, *sources)

    def _weight_name(self) -> str:
        kind = type(self).__name__.strip("_").lower()
        return f"{constant_name(self.op.weight)}.{kind}"


class _Matmul(_Contraction[kernel.MatmulOp | kernel.Conv2dOp]):
    """A matmul of rows, which the pixels of an image are too."""

    def run(self) -> None:
        n, k = shape_of(self.op.weight)[:2]
        groups = self.groups
        if not self.is_callable() or (groups and not takes_groups(self.isa, k, groups)):
            return
        if self.is_shifted and not takes_offsets(self.widths[1]):
            return
        matmul = self.calls.use(self.kernel())
        weight = self.pack_constant(self.pack) if self.has_weight else self.pack_at_run_time(n, k)
        stub, p = self.prepare(weight)
        sizes = self.memrefs["x"].sizes
        m = stub.product(sizes[:-1])
        rows = prod(_static_sizes(sizes[:-1]))
        self.estimate(stub, KernelCall(matmul, MatrixSizes(rows, n, k)), sizes)
        scales: tuple[Operand, ...] = ()
        if self.is_integer:
            each = self.rows_of_a_scale(stub, sizes)
            scales = (p["x_scale"], each, p["w_scale"])
        more = (p["bias"], p["add"], *self.outputs(p))
        ends = (*([groups] if groups else []), *self.bounds())
        stub.call_kernel(matmul, p["x"], k, p["weight"], *scales, *more, n, m, n, k, *ends)
        self.finish(stub)

    @property
    def groups(self) -> int | None:
        """Groups of the weight that have scales of their own."""
        return self.op.scale_groups if isinstance(self.op, kernel.MatmulOp) else None

    @property
    def is_shifted(self) -> bool:
        """Whether groups of the weight have offsets."""
        return self.op.weight_offset is not None

    @cached_property
    def scale_storage(self) -> ScaleStorage:
        """How scales and offsets of groups are stored: those of GGUF files take less than float."""
        given = (self.op.weight_scale, self.op.weight_offset)
        arrays = (array for value in given if value is not None for array in self.constants(value))
        return narrowest_storage(self.isa, arrays, self.depth)

    @property
    def depth(self) -> int:
        """How many numbers of a row have a scale in common."""
        return shape_of(self.op.weight)[1] // (self.groups or 1)

    def kernel(self) -> IntegerMatmul | BitMatmul | Matmul:
        if not self.is_integer:
            return Matmul(self.isa, self.op.activation_name)
        far = self.calls.far
        if self.groups is not None:
            return IntegerMatmul(
                self.isa,
                self.output,
                self.widths[1],
                grouped=True,
                shifted=self.is_shifted,
                storage=self.scale_storage,
                blocks=self.op.has_row_groups,
                far=far,
            )
        if self.unsigned:
            return IntegerMatmul(self.isa, self.output, unsigned=True, far=far)
        k = shape_of(self.op.weight)[1]
        return integer_matmul(self.isa, self.output, *self.widths, k, far=far)

    def pack(self, weight: Array) -> Array:
        matmul, rows = self.kernel(), weight.reshape(weight.shape[:2])
        if isinstance(matmul, IntegerMatmul) and self.groups:
            return matmul.pack(rows, self.groups)
        return matmul.pack(rows)

    def scale_of_each(self, scale: SSAValue) -> SSAValue:
        matmul = self.kernel()
        if self.groups is None or not isinstance(matmul, IntegerMatmul):
            return super().scale_of_each(scale)
        sources = [scale] if self.op.weight_offset is None else [scale, self.op.weight_offset]
        element = {"f32": f32, "f16": f16, "super": i8}[matmul.storage]
        pack = partial(matmul.pack_scale, depth=self.depth)
        return self.keep_for_weight("weight_scale", element, pack, *sources)

    def pack_at_run_time(self, n: int, k: int) -> SSAValue:
        pack = self.calls.use(PackB(self.isa))
        memory = self.allocate(f32, [packed_size(k, n, self.isa)])
        stub = self.stub("pack", [self.op.weight.type, memory.type])
        w, out = (m.pointer for m in stub.memrefs)
        # The weight is transposed: element (k, n) of the second matrix is w[n, k].
        stub.call_kernel(pack, w, 1, k, out, k, n)
        self.call(stub, [self.buffer(self.op.weight), memory])
        return self.as_tensor(memory)


class _Conv2d(_Contraction[kernel.Conv2dOp]):
    def run(self) -> None:
        if not self.is_callable() or not self.has_weight:
            return
        op = self.op
        outputs, inputs, kh, kw = shape_of(op.weight)
        groups = op.groups.value.data
        depthwise = groups > 1 and inputs == 1 and outputs == groups
        conv = self.calls.use(self.kernel(depthwise))
        parts = 1 if depthwise else groups
        weight = self.pack_constant(
            lambda w: np.concatenate([np.ravel(conv.pack(part)) for part in np.split(w, parts)])
        )
        stub, p = self.prepare(weight)
        x, y = self.memrefs["x"].sizes, self.memrefs[next(iter(self.results))].sizes
        each_in, each_out = x[3] if depthwise else inputs, outputs // parts
        (top, _), (left, _) = op.padding_pairs
        batch, height, width, channels = _static_sizes(x)
        _, out_height, out_width, _ = _static_sizes(y)
        image = ImageSizes(
            *(batch, height, width, channels if depthwise else inputs, each_out, kh, kw),
            stride=_pair(op.stride),
            padding=(top, left),
            dilation=_pair(op.dilation),
            out=(out_height, out_width),
            depthwise=depthwise,
            x_stride=channels,
            y_stride=outputs,
        )
        self.estimate(stub, KernelCall(conv, image, calls=parts), (*x, *y))
        sizes = stub.integers([
            x[0], x[1], x[2], each_in, x[3], y[1], y[2], each_out, outputs, kh, kw,
            *ints(op.stride), top, left, *ints(op.dilation),
        ])  # fmt: skip
        each = self.rows_of_a_scale(stub, y)
        panel = shape_of(weight)[0] // parts
        steps = {"x": inputs, "weight": panel, "w_scale": each_out, "bias": each_out,
                 "add": each_out, "y": each_out, "q": each_out}  # fmt: skip
        for part in range(parts):
            moved = {
                name: stub.advance(p.get(name, stub.null()), self.element(name), (part, step))
                for name, step in steps.items()
            }
            scales: tuple[Operand, ...] = ()
            if self.is_integer:
                scales = (p["x_scale"], each, moved["w_scale"])
            more = (moved["bias"], moved["add"], *self.outputs(p | moved))
            arguments = (moved["x"], moved["weight"], *scales, *more, sizes, *self.bounds())
            stub.call_kernel(conv, *arguments)
        self.finish(stub)

    def is_one_call(self) -> bool:
        outputs, inputs, *_ = shape_of(self.op.weight)
        return self.op.groups.value.data in ((1,) if inputs > 1 else (1, outputs))

    def kernel(self, depthwise: bool) -> Any:
        if not self.is_integer:
            return (Depthwise if depthwise else Conv2d)(self.isa, self.op.activation_name)
        op = self.op
        _, c, kh, kw = shape_of(op.weight)
        if depthwise:
            bits = self.widths[1] if IntegerDepthwise.fits(kh, kw) else 8
            return IntegerDepthwise(self.isa, self.output, bits)
        width, stride, dilation = shape_of(op.x)[2], ints(op.stride)[0], ints(op.dilation)[0]
        if self.unsigned:
            return IntegerConv2d(self.isa, self.output, unsigned=True)
        return integer_conv2d(
            self.isa, self.output, *self.widths, (c, kh, kw), width, stride, dilation
        )

    def element(self, name: str) -> Spelled:
        return self.memrefs[name].element if name in self.memrefs else "float"

    def size(self, axis: int) -> SSAValue:
        if axis == 0:
            return super().size(axis)
        op, place = self.op, axis - 1
        stride, dilation = ints(op.stride)[place], ints(op.dilation)[place]
        reach = dilation * (shape_of(op.weight)[2 + place] - 1) + 1
        return self.windows(axis, reach, stride, sum(op.padding_pairs[place]))


def _static_sizes(sizes: Sequence[Size]) -> list[int]:
    """Return sizes, with 1 for dynamic ones."""
    return [size if isinstance(size, int) else 1 for size in sizes]


def _pair(given: Any) -> tuple[int, int]:
    first, second = ints(given)
    return first, second
