"""Products of matrices among linalg ops, as calls of the matrix kernel.

Attention, `torch.matmul` and `einsum` leave contractions in a program: an op of two inputs whose
loops are parallel in the result, or summed. One loop of the first input becomes the rows of a
matrix, one of the second its columns, one that is summed its depth; all other loops are a loop of
calls. The second matrix is packed by the run, whatever its strides; the first is read as it is, so
its depth must be innermost, and so must the columns in the result. What does not fit stays loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import inf
from typing import cast

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, Float32Type, FloatAttr, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.utils.hints import isa

from fewbit.kernels import Matmul, PackB
from fewbit.program import Program
from fewbit.targets.cpu.call_site import CallSite, shape_of, tensor_of
from fewbit.targets.cpu.stubs import KernelCalls, Memref, Size, Stub, literal

Dims = tuple[int, ...]
"""The loop that each axis of an operand is indexed by."""

NAMED: dict[str, tuple[Dims, Dims, Dims]] = {
    "linalg.matmul": ((0, 2), (2, 1), (0, 1)),
    "linalg.batch_matmul": ((0, 1, 3), (0, 3, 2), (0, 1, 2)),
}
SMALL = 512
"""Products below which a loop is as fast as a call."""


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
    def operands(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        inputs, start = self.op.operands[:2], self.op.operands[2]
        return inputs[self.first], inputs[1 - self.first], start

    @property
    def packed(self) -> Dims:
        """Loops around calls that the second input depends on: it is packed for each."""
        return tuple(loop for loop in self.outer if loop in self.rhs)


def call_contractions(program: Program, calls: KernelCalls) -> None:
    """Replace, in place, the contractions of f32 that the matrix kernel computes."""
    for op in list(program.module.walk()):
        found = find_contraction(op)
        if found is not None:
            _Call(program, op, calls).run(found)


def find_contraction(op: Operation) -> Contraction | None:
    maps = _maps(op)
    if maps is None or not _is_f32(op):
        return None
    for first, second in ((0, 1), (1, 0)):
        found = _classify(op, maps[first], maps[second], maps[2])
        if found is not None:
            return replace(found, first=first)
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
    """The loops of a map that has plain loops only, each at most once."""
    results = attribute.data.results
    if not all(isinstance(r, AffineDimExpr) for r in results):
        return None
    found = tuple(cast(AffineDimExpr, r).position for r in results)
    return found if len(set(found)) == len(found) else None


def _multiplies_and_adds(op: linalg.GenericOp) -> bool:
    block = op.body.block
    ops = list(block.ops)
    if len(ops) != 3:
        return False
    mul, add, end = ops
    if not isinstance(mul, arith.MulfOp) or not isinstance(add, arith.AddfOp):
        return False
    a, b, acc = block.args
    return (
        {mul.lhs, mul.rhs} == {a, b}
        and {add.lhs, add.rhs} == {acc, mul.result}
        and tuple(end.operands) == (add.result,)
    )


def _is_f32(op: Operation) -> bool:
    return all(isinstance(tensor_of(v).element_type, Float32Type) for v in op.operands)


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
    def run(self, found: Contraction) -> None:
        lhs, rhs, start = found.operands
        if _work(found) is not None and cast(int, _work(found)) < SMALL:
            return
        packed = self.pack(found, rhs)
        accumulates = not _is_zero(start)
        operands = [lhs, packed, *([start] if accumulates else [])]
        result = self.op.results[0]
        stub = self.stub("", [*(v.type for v in operands), result.type])
        self.multiply(stub, found, accumulates)
        sizes = [
            self.make(tensor.DimOp(start, self.index(axis)))
            for axis, size in enumerate(shape_of(result))
            if size == DYNAMIC_INDEX
        ]
        out = self.allocate(f32, shape_of(result), sizes)
        self.call(stub, [*map(self.buffer, operands), out])
        self.replace(self.as_tensor(out))

    def pack(self, found: Contraction, rhs: SSAValue) -> SSAValue:
        """The second input in panels, for each iteration of the loops that it depends on."""
        kernel = self.calls.use(PackB(self.isa))
        axis = {loop: i for i, loop in enumerate(found.rhs)}
        shape = [shape_of(rhs)[axis[loop]] for loop in (*found.packed, found.depth)]
        columns = shape_of(rhs)[axis[found.column]]
        lanes = self.isa.lanes
        sizes = [
            self.make(tensor.DimOp(rhs, self.index(axis[loop])))
            for loop, size in zip((*found.packed, found.depth), shape, strict=True)
            if size == DYNAMIC_INDEX
        ]
        if columns == DYNAMIC_INDEX:
            count = self.make(tensor.DimOp(rhs, self.index(axis[found.column])))
            rounded = self.make(arith.AddiOp(count, self.index(lanes - 1)))
            vectors = self.make(arith.DivUIOp(rounded, self.index(lanes)))
            sizes.append(self.make(arith.MuliOp(vectors, self.index(lanes))))
        padded = columns if columns == DYNAMIC_INDEX else -(-columns // lanes) * lanes
        memory = self.allocate(f32, [*shape, padded], sizes)
        stub = self.stub("pack", [rhs.type, memory.type])
        given, out = stub.memrefs
        with ExitStack() as loops:
            place = {
                loop: loops.enter_context(stub.loop(given.sizes[axis[loop]]))
                for loop in found.packed
            }
            source = _moved(stub, given, found.rhs, place)
            target = _moved(stub, out, found.packed, place)
            stub.call(
                kernel.symbol,
                f"ptr {source}, i64 {given.strides[axis[found.depth]]}, "
                f"i64 {given.strides[axis[found.column]]}, ptr {target}, "
                f"i64 {given.sizes[axis[found.depth]]}, i64 {given.sizes[axis[found.column]]}",
            )
        self.call(stub, [self.buffer(rhs), memory])
        return self.as_tensor(memory)

    def multiply(self, stub: Stub, found: Contraction, accumulates: bool) -> None:
        kernel = self.calls.use(Matmul(self.isa))
        lhs, packed, out = stub.memrefs[0], stub.memrefs[1], stub.memrefs[-1]
        sizes = dict(zip(found.out, out.sizes, strict=True))
        a_stride: Size = lhs.strides[found.lhs.index(found.row)] if found.row is not None else 0
        c_stride: Size = out.strides[found.out.index(found.row)] if found.row is not None else 0
        rows: Size = sizes[found.row] if found.row is not None else 1
        depth = lhs.sizes[-1]
        with ExitStack() as loops:
            place = {loop: loops.enter_context(stub.loop(sizes[loop])) for loop in found.outer}
            a, c = _moved(stub, lhs, found.lhs, place), _moved(stub, out, found.out, place)
            b = _moved(stub, packed, found.packed, place)
            add = _moved(stub, stub.memrefs[2], found.out, place) if accumulates else "null"
            stub.call(
                kernel.symbol,
                f"ptr {a}, i64 {a_stride}, ptr {b}, ptr null, ptr {add}, ptr {c}, i64 {c_stride}, "
                f"i64 {rows}, i64 {sizes[found.column]}, i64 {depth}, "
                f"float {literal(-inf)}, float {literal(inf)}",
            )


def _moved(stub: Stub, memory: Memref, dims: Sequence[int], place: dict[int, str]) -> str:
    terms = [(place[loop], memory.strides[axis]) for axis, loop in enumerate(dims) if loop in place]
    return stub.at(memory.pointer, memory.element, *terms)


def _work(found: Contraction) -> int | None:
    """How many products a call multiplies; None where a size is known only at run time."""
    lhs, rhs, _ = found.operands
    sizes = [*shape_of(lhs), shape_of(rhs)[found.rhs.index(found.column)]]
    if DYNAMIC_INDEX in sizes:
        return None
    total = 1
    for size in sizes:
        total *= size
    return total


def _is_zero(value: SSAValue) -> bool:
    fill = value.owner
    if not isinstance(fill, linalg.FillOp):
        return False
    filled = fill.operands[0].owner
    if not isinstance(filled, arith.ConstantOp) or not isa(filled.value, FloatAttr[Float32Type]):
        return False
    return filled.value.value.data == 0
