"""Sizes that must be equal are asserted, where there are dynamic ones.

Two inputs of one batch may be given with two batches: loops would then read beyond the end of one.
So would one input whose batch meets a tensor of fixed size, or which is split into parts of unequal
size, and two tensors of which masks choose parts. Each loop of an op on tensors runs over one size,
so all dimensions that it indexes must have it. What is asserted here is evaluated from the shapes
of inputs before anything runs; what is always true is folded away. A kernel's rows are asserted
while it is still an op, all else once it is loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects import arith, cf, func, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from fewbit.dialects import kernel, mico
from fewbit.pipeline.entry import functions_of

Place = tuple[SSAValue, int]
"""A tensor, and one of its dimensions."""


@dataclass(frozen=True)
class AssertSizes(ModulePass):
    """Assert that sizes which must be equal are."""

    name = "assert-sizes"

    kernels: bool = False
    """Whether ops of the kernel dialect are looked at, or loops and slices."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op):
            (assert_kernel_sizes if self.kernels else assert_tensor_sizes)(function)


def assert_kernel_sizes(entry: func.FuncOp) -> None:
    """Assert what kernels take for granted."""
    _assert_equal_sizes(entry, _equal_rows)


def assert_tensor_sizes(entry: func.FuncOp) -> None:
    """Assert what loops over tensors, slices and concatenations take for granted."""
    for op in list(entry.body.block.ops):
        if isinstance(op, tensor.ExtractSliceOp):
            _assert_inside(op)
    _assert_equal_sizes(entry, _equal_places)


def _assert_equal_sizes(
    entry: func.FuncOp, equal: Callable[[Operation], Iterable[Sequence[Place]]]
) -> None:
    block = entry.body.block
    is_dynamic = any(DYNAMIC_INDEX in _shape(argument) for argument in block.args)
    if not is_dynamic and not slices_by_data(entry):
        return
    for op in list(block.ops):
        for places in equal(op):
            for a, b in pairwise(places):
                _assert_equal(a, b, op)


def slices_by_data(entry: func.FuncOp) -> bool:
    """Return whether a tensor is cut to a size that is computed from what tensors contain."""
    return any(
        isinstance(op, tensor.ExtractSliceOp) and not all(map(_is_shape_arithmetic, op.sizes))
        for op in entry.body.block.ops
    )


def _assert_inside(op: tensor.ExtractSliceOp) -> None:
    """Assert that a slice lies in a tensor whose size is dynamic."""
    given = [
        _values(static, dynamic)
        for static, dynamic in (
            (op.static_offsets.get_values(), op.offsets),
            (op.static_sizes.get_values(), op.sizes),
            (op.static_strides.get_values(), op.strides),
        )
    ]
    for axis, extent in enumerate(_shape(op.source)):
        offset, size, stride = (values[axis] for values in given)
        if extent != DYNAMIC_INDEX or not all(map(_is_shape_arithmetic, (offset, size, stride))):
            continue
        checks: list[Operation] = []

        def value(number: int | SSAValue, checks: list[Operation] = checks) -> SSAValue:
            if isinstance(number, SSAValue):
                return number
            checks.append(constant := arith.ConstantOp(IntegerAttr(number, IndexType())))
            return constant.result

        steps = arith.SubiOp(value(size), value(1))
        reach = arith.MuliOp(steps.result, value(stride))
        last = arith.AddiOp(value(offset), reach.result)
        dim = tensor.DimOp(_of_equal_size(op.source), value(axis))
        below = arith.CmpiOp(last.result, dim.results[0], "slt")
        begun = arith.CmpiOp(value(offset), value(0), "sge")
        inside = arith.AndIOp(below.result, begun.result)
        empty = arith.CmpiOp(value(size), value(0), "sle")
        fits = arith.OrIOp(inside.result, empty.result)
        checks += [steps, reach, last, dim, below, begun, inside, empty, fits]
        checks.append(cf.AssertOp(fits.result, "a slice is not inside its tensor"))
        for each in checks:
            each.location = op.location
        Rewriter.insert_op(checks, InsertPoint.before(op))


def _of_equal_size(value: SSAValue) -> SSAValue:
    """Return the tensor that loops begin with which only write elements of it, one by one."""
    if isinstance(value.owner, tensor.InsertOp):
        return _of_equal_size(value.owner.dest)
    loop = value.owner
    if not isinstance(value, OpResult) or not isinstance(loop, scf.ForOp):
        return value
    end = loop.body.block.last_op
    assert end is not None
    if _of_equal_size(end.operands[value.index]) is not loop.body.block.args[1 + value.index]:
        return value
    return _of_equal_size(loop.iter_args[value.index])


def _values(static: Sequence[int], dynamic: Sequence[SSAValue]) -> list[int | SSAValue]:
    """Return static numbers, with values in place of the dynamic ones."""
    values = iter(dynamic)
    return [next(values) if number == DYNAMIC_INDEX else number for number in static]


def _is_shape_arithmetic(value: int | SSAValue) -> bool:
    """Return whether a number is computed from sizes alone, not from what tensors contain."""
    if isinstance(value, int):
        return True
    owner = value.owner
    if isinstance(owner, tensor.DimOp | arith.ConstantOp):
        return True
    if not isinstance(owner, Operation) or owner.dialect_name() not in ("arith", "affine"):
        return False
    return all(map(_is_shape_arithmetic, owner.operands))


def _shape(value: SSAValue) -> tuple[int, ...]:
    """Return sizes; a scalar has none."""
    type = value.type
    return mico.shape_of(type) if isa(type, TensorType[Attribute]) else ()


def _is_dynamic(place: Place) -> bool:
    value, axis = place
    return _shape(value)[axis] == DYNAMIC_INDEX


def _equal_rows(op: Operation) -> Iterator[list[Place]]:
    """Yield the dimensions of rows, which a kernel's operands share."""
    if isinstance(op, kernel.ContractionOp):
        operands = [v for v in (op.x, op.add, op.x_scale) if v is not None]
        for axis in range(len(op.rows_shape(_shape(op.x)))):
            yield [(v, axis) for v in operands if len(_shape(v)) > axis]


def _equal_places(op: Operation) -> Iterator[list[Place]]:
    """Yield dimensions that have one size."""
    if isinstance(op, LinalgStructuredOperation):
        yield from _loops([m.data.results for m in op.get_indexing_maps()], op.operands)
    elif isinstance(op, linalg.ReduceOp):
        yield from _loops(_with_and_without(op.input, op.dimensions.get_values()), op.operands)
    elif isinstance(op, linalg.BroadcastOp):
        wide, narrow = _with_and_without(op.init, op.dimensions.get_values())
        yield from _loops((narrow, wide), op.operands)
    elif isinstance(op, tensor.ConcatOp):
        yield from _concat_places(op)


def _with_and_without(
    wide: SSAValue, dropped: Sequence[int]
) -> tuple[list[AffineExpr], list[AffineExpr]]:
    """Return the loops of a tensor, and of one that lacks some of its dimensions."""
    loops: list[AffineExpr] = [AffineDimExpr(i) for i in range(len(_shape(wide)))]
    return loops, [loop for i, loop in enumerate(loops) if i not in dropped]


def _loops(
    indices: Sequence[Sequence[object]], operands: Sequence[SSAValue]
) -> Iterator[list[Place]]:
    by_loop: dict[int, list[Place]] = {}
    for exprs, value in zip(indices, operands, strict=True):
        for axis, expr in enumerate(exprs):
            if isinstance(expr, AffineDimExpr):
                by_loop.setdefault(expr.position, []).append((value, axis))
    yield from by_loop.values()


def _concat_places(op: tensor.ConcatOp) -> Iterator[list[Place]]:
    rank = len(_shape(op.operands[0]))
    for axis in range(rank):
        if axis != op.dim.value.data % rank:
            yield [(value, axis) for value in op.operands]


def _assert_equal(a: Place, b: Place, op: Operation) -> None:
    if a == b or not (_is_dynamic(a) or _is_dynamic(b)):
        return
    checks: list[Operation] = []
    dims: list[SSAValue] = []
    for value, axis in (a, b):
        number = arith.ConstantOp(IntegerAttr(axis, IndexType()))
        dim = tensor.DimOp(value, number.result)
        checks += [number, dim]
        dims.append(dim.results[0])
    same = arith.CmpiOp(dims[0], dims[1], "eq")
    checks += [same, cf.AssertOp(same.result, "sizes differ")]
    for each in checks:
        each.location = op.location
    Rewriter.insert_op(checks, InsertPoint.before(op))
