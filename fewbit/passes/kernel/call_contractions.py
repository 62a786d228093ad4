"""Matmuls among linalg ops, as calls of the matrix kernel.

Attention, `torch.matmul` and `einsum` leave contractions in a program: an op of two inputs whose
loops are parallel in the result, or summed. One loop of the first input becomes the rows of a
matrix, one of the second its columns, a reduction its depth; all other loops are a loop of
calls. The second matrix is packed at run time, whatever its strides; the first is read as it is, so
its depth must be innermost, and so must the columns in the result. Values of attention whose heads
are as wide as a panel have the kernel's layout already, and are not packed; if they were widened
from f16, from bytes or from four bits of each, the kernel reads these. Matrices are of floats,
or of bytes with i32 accumulators: queries and keys that are quantized. What does not fit stays
loops, and so does a GEMV with a transposed matrix, such as a query and its keys: packing them would
take longer than the matmul.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import inf, prod
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, math, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    f32,
    i8,
    i32,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass

from fewbit.codegen.memref import Size
from fewbit.codegen.stubs import ONE_SCALE, KernelCalls, Memref, Stub
from fewbit.cost.cpu.calibration import Calibration
from fewbit.cost.cpu.kernel_call import KernelCall, MatrixSizes
from fewbit.kernels import IntegerMatmul, IntegerPackB, Matmul, PackB
from fewbit.kernels.stored import Stored
from fewbit.llvm.values import NULL, Value
from fewbit.passes.kernel.call_site import CallSite, shape_of, tensor_of
from fewbit.passes.kernel.stored_matrix import find_stored
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program

Dims = tuple[int, ...]
"""The loop that each axis of an operand is indexed by."""

NAMED: dict[str, tuple[Dims, Dims, Dims]] = {
    "linalg.matmul": ((0, 2), (2, 1), (0, 1)),
    "linalg.batch_matmul": ((0, 1, 3), (0, 3, 2), (0, 1, 2)),
}
SMALL = 512
"""Multiplications below which a loop is as fast as a call."""


@dataclass(frozen=True)
class Contraction:
    """Which loops of an op are what; `outer` are those around the calls."""

    op: Operation
    lhs: Dims
    rhs: Dims
    out: Dims
    row: int | None
    column: int
    depth: int
    outer: Dims
    first: int = 0
    """Which of the op's inputs is the first matrix: multiplication commutes."""

    @property
    def is_integer(self) -> bool:
        return tensor_of(self.op.operands[0]).element_type == i8

    @property
    def operands(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        inputs, start = self.op.operands[:2], self.op.operands[2]
        return inputs[self.first], inputs[1 - self.first], start

    @property
    def packed_loops(self) -> Dims:
        """Loops around calls that the second input depends on: it is packed for each."""
        return tuple(loop for loop in self.outer if loop in self.rhs)


@dataclass(frozen=True)
class CallContractions(ModulePass):
    """Call kernels for contractions that are not layers."""

    name = "call-contractions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        call_contractions(known.program(op), known.get(KernelCalls))


def call_contractions(program: Program, calls: KernelCalls) -> None:
    """Replace the contractions that the matrix kernels compute, in place."""
    for op in list(program.module.walk()):
        contraction = find_contraction(op)
        if contraction is not None:
            _Call(program, op, calls).run(contraction)


def find_contraction(op: Operation) -> Contraction | None:
    maps = _maps(op)
    if maps is None or not (_is_of(op, f32, f32) or _is_of(op, i8, i32)):
        return None
    for first, second in ((0, 1), (1, 0)):
        contraction = _classify(op, maps[first], maps[second], maps[2])
        if contraction is not None:
            return replace(contraction, first=first)
    return None


def _maps(op: Operation) -> tuple[Dims, Dims, Dims] | None:
    if op.name in NAMED:
        return NAMED[op.name]
    if not isinstance(op, linalg.GenericOp) or len(op.inputs) != 2 or len(op.outputs) != 1:
        return None
    if not _multiplies_and_adds(op):
        return None
    dims = [_dims(m) for m in op.indexing_maps]
    if any(d is None for d in dims):
        return None
    return cast("tuple[Dims, Dims, Dims]", tuple(dims))


def _dims(attribute: AffineMapAttr) -> Dims | None:
    """Return the loops of a map that has plain loops only, each at most once."""
    results = attribute.data.results
    if not all(isinstance(r, AffineDimExpr) for r in results):
        return None
    contraction = tuple(cast(AffineDimExpr, r).position for r in results)
    return contraction if len(set(contraction)) == len(contraction) else None


def _multiplies_and_adds(op: linalg.GenericOp) -> bool:
    block = op.body.block
    ops = list(block.ops)
    if len(ops) == 2 and isinstance(ops[0], math.FmaOp):
        fma, (*factors, total) = ops[0], block.args
        return {fma.a, fma.b} == set(factors) and fma.c is total
    if len(ops) < 3:
        return False
    *widened, mul, add, end = ops
    if not isinstance(mul, arith.MulfOp | arith.MuliOp):
        return False
    if not isinstance(add, arith.AddfOp | arith.AddiOp):
        return False
    if not all(isinstance(each, arith.ExtSIOp) for each in widened):
        return False
    a, b, acc = block.args
    wide = {each.operands[0]: each.results[0] for each in widened}
    return (
        {mul.lhs, mul.rhs} == {wide.get(a, a), wide.get(b, b)}
        and {add.lhs, add.rhs} == {acc, mul.result}
        and tuple(end.operands) == (add.result,)
    )


def _is_of(op: Operation, factors: Attribute, sums: Attribute) -> bool:
    elements = [tensor_of(v).element_type for v in op.operands]
    return elements == [factors, factors, sums]


def _classify(op: Operation, lhs: Dims, rhs: Dims, out: Dims) -> Contraction | None:
    summed = [loop for loop in lhs if loop in rhs and loop not in out]
    if len(summed) != 1 or set(lhs) | set(rhs) != set(out) | set(summed):
        return None
    depth, column = summed[0], out[-1] if out else -1
    if not lhs or lhs[-1] != depth or column not in rhs or column in lhs:
        return None
    rows = [loop for loop in out if loop in lhs and loop not in rhs]
    row = rows[-1] if rows else None
    outer = tuple(loop for loop in out if loop not in (row, column))
    return Contraction(op, lhs, rhs, out, row, column, depth, outer)


class _Call(CallSite[Operation]):
    def run(self, contraction: Contraction) -> None:
        lhs, rhs, start = contraction.operands
        if _work(contraction) is not None and cast(int, _work(contraction)) < SMALL:
            return
        accumulates = not is_zero(start)
        if accumulates and contraction.is_integer:
            return
        is_panel = self.is_panel(contraction, rhs)
        stored: Stored = "f32"
        if is_panel:
            rhs, stored = find_stored(rhs, self.isa)
        if not is_panel and _rows(contraction) == 1 and contraction.rhs[-1] == contraction.depth:
            return
        packed = rhs if is_panel else self.pack(contraction, rhs)
        operands = [lhs, packed, *([start] if accumulates else [])]
        result = self.op.results[0]
        stub = self.stub("", [*(v.type for v in operands), result.type])
        self.multiply(
            stub,
            contraction,
            contraction.rhs if is_panel else contraction.packed_loops,
            accumulates,
            stored=stored,
        )
        sizes = [
            self.make(tensor.DimOp(start, self.index(axis)))
            for axis, size in enumerate(shape_of(result))
            if size == DYNAMIC_INDEX
        ]
        out = self.allocate(tensor_of(result).element_type, shape_of(result), sizes)
        self.call(stub, [*map(self.buffer, operands), out])
        self.replace(self.as_tensor(out))

    def pack(self, contraction: Contraction, rhs: SSAValue) -> SSAValue:
        """Return the second input in panels, for each iteration of the loops that it depends on."""
        kernel = self.calls.use((IntegerPackB if contraction.is_integer else PackB)(self.isa))
        axis = {loop: i for i, loop in enumerate(contraction.rhs)}
        depth, column = axis[contraction.depth], axis[contraction.column]
        # Bytes are packed in steps; a column of a step is as wide as they are.
        step = self.isa.step if contraction.is_integer else 1
        extents = [self.extent(rhs, axis[loop]) for loop in contraction.packed_loops]
        extents.append(self.round_up(rhs, depth, step, 1))
        extents.append(self.round_up(rhs, column, self.isa.lanes, self.isa.lanes * step))
        shape = [e if isinstance(e, int) else DYNAMIC_INDEX for e in extents]
        sizes = [e for e in extents if not isinstance(e, int)]
        memory = self.allocate(tensor_of(rhs).element_type, shape, sizes)
        stub = self.stub("pack", [rhs.type, memory.type])
        given, out = stub.memrefs
        with ExitStack() as loops:
            place = {
                loop: loops.enter_context(stub.loop(0, given.sizes[axis[loop]])).index
                for loop in contraction.packed_loops
            }
            source = _address(stub, given, contraction.rhs, place)
            target = _address(stub, out, contraction.packed_loops, place)
            strides = (given.strides[depth], given.strides[column])
            sizes = (given.sizes[depth], given.sizes[column])
            stub.call_kernel(kernel, source, *strides, target, *sizes)
        self.call(stub, [self.buffer(rhs), memory])
        return self.as_tensor(memory)

    def extent(self, value: SSAValue, axis: int) -> int | SSAValue:
        size = shape_of(value)[axis]
        return self.make(tensor.DimOp(value, self.index(axis))) if size == DYNAMIC_INDEX else size

    def round_up(self, value: SSAValue, axis: int, unit: int, each: int) -> int | SSAValue:
        """Return how many units cover a size, times `each`."""
        size = self.extent(value, axis)
        if isinstance(size, int):
            return -(-size // unit) * each
        covered = self.make(arith.CeilDivUIOp(size, self.index(unit)))
        return self.make(arith.MuliOp(covered, self.index(each)))

    def is_panel(self, contraction: Contraction, rhs: SSAValue) -> bool:
        """Return whether the second matrix is already one panel, with rows of whole vectors."""
        if contraction.is_integer:
            return False
        columns = shape_of(rhs)[-1]
        fits = columns % self.isa.lanes == 0 and 0 < columns <= self.isa.panel_width
        return fits and contraction.rhs[-2:] == (contraction.depth, contraction.column)

    def multiply(
        self,
        stub: Stub,
        contraction: Contraction,
        panels: Dims,
        accumulates: bool,
        *,
        stored: Stored,
    ) -> None:
        matmul = Matmul(self.isa, stored=stored)
        if contraction.is_integer:
            matmul = IntegerMatmul(self.isa, "i32")
        kernel = self.calls.use(matmul)
        scales = (NULL, ONE_SCALE, NULL) if contraction.is_integer else ()
        lhs, packed, out = stub.memrefs[0], stub.memrefs[1], stub.memrefs[-1]
        sizes = dict(zip(contraction.out, out.sizes, strict=True))
        row = contraction.row
        a_stride: Size = lhs.strides[contraction.lhs.index(row)] if row is not None else 0
        c_stride: Size = out.strides[contraction.out.index(row)] if row is not None else 0
        rows: Size = sizes[row] if row is not None else 1
        depth = lhs.sizes[-1]
        known = {loop: size if isinstance(size, int) else 1 for loop, size in sizes.items()}
        matrices = MatrixSizes(
            known[row] if row is not None else 1,
            known[contraction.column],
            depth if isinstance(depth, int) else 1,
        )
        call = KernelCall(matmul, matrices, calls=prod(known[loop] for loop in contraction.outer))
        self.calls.seconds += self.times * Calibration.default(self.isa).seconds(call)
        with ExitStack() as loops:
            place = {
                loop: loops.enter_context(stub.loop(0, sizes[loop])).index
                for loop in contraction.outer
            }
            a, c = (
                _address(stub, lhs, contraction.lhs, place),
                _address(stub, out, contraction.out, place),
            )
            b = _address(stub, packed, panels, place)
            add = _address(stub, stub.memrefs[2], contraction.out, place) if accumulates else NULL
            shape = (c_stride, rows, sizes[contraction.column], depth)
            bounds = (-inf, inf)
            stub.call_kernel(kernel, a, a_stride, b, *scales, NULL, add, c, *shape, *bounds)


def _address(stub: Stub, memory: Memref, dims: Sequence[int], place: dict[int, Value]) -> Value:
    terms = [(place[loop], memory.strides[axis]) for axis, loop in enumerate(dims) if loop in place]
    return stub.advance(memory.pointer, memory.element, *terms)


def _work(contraction: Contraction) -> int | None:
    """Return how many multiplications a call does; None where a size is dynamic."""
    lhs, rhs, _ = contraction.operands
    sizes = [*shape_of(lhs), shape_of(rhs)[contraction.rhs.index(contraction.column)]]
    if DYNAMIC_INDEX in sizes:
        return None
    total = 1
    for size in sizes:
        total *= size
    return total


def _rows(contraction: Contraction) -> int:
    """Return how many rows of the first matrix are multiplied by one matrix."""
    return (
        1
        if contraction.row is None
        else shape_of(contraction.operands[0])[contraction.lhs.index(contraction.row)]
    )


def is_zero(value: SSAValue) -> bool:
    """Return whether sums begin with zeros."""
    fill = value.owner
    if not isinstance(fill, linalg.FillOp):
        return False
    scalar = fill.operands[0].owner
    if not isinstance(scalar, arith.ConstantOp):
        return False
    number = scalar.value
    return isinstance(number, FloatAttr | IntegerAttr) and number.value.data == 0
