"""Float matmuls on tensors, each as one `linalg.contract`.

A generic op that multiplies and adds is a matmul, however its loops are ordered. A transpose or
broadcast of a factor becomes part of the indices at which the factor is read. A sum that begins
with zeros is marked `from_zero`, and has no loop that fills it.

A matmul has to stay what it is while loops are fused: what makes a factor would be computed again
for every element of the result, and a gather of columns would be undone. Upstream fuses only what
has one user; until `release_matmuls`, factors and results of matmuls have a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewbit.ir.bindings import is_block, is_constant, mlir_context, walk
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module, OpView, Value

FROM_ZERO = "from_zero"
USER = "bufferization.dealloc_tensor"
"""An op of no result that may use any tensor, and is not removed for having no effect."""
ELEMENTS = ("f32", "f64")

Index = tuple[int, ...]
"""For each dimension of a tensor, the loop that it is read by."""


@dataclass(frozen=True)
class NameMatmuls(BindingsPass):
    """Turn generic ops that are matmuls into `linalg.contract`."""

    name = "name-matmuls"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        name_matmuls(module)


def name_matmuls(module: Module) -> int:
    """Replace generic ops that are matmuls, in place; return how many there were."""
    from torch_mlir import ir

    with mlir_context(), ir.Location.unknown():
        matmuls = [op for op in walk(module) if _is_matmul(op)]
        for op in matmuls:
            _name(op)
        return len(matmuls)


def index_of(map: Any) -> Index | None:
    """Return the loops of an indexing map; None where it is not plain loops, each once."""
    from torch_mlir import ir

    results = ir.AffineMapAttr(map).value.results
    if not all(isinstance(result, ir.AffineDimExpr) for result in results):
        return None
    index = tuple(ir.AffineDimExpr(result).position for result in results)
    return index if len(set(index)) == len(index) else None


def indices_of(op: OpView) -> list[Index | None]:
    return [index_of(map) for map in op.operation.attributes["indexing_maps"]]


def _is_matmul(op: OpView) -> bool:
    if op.operation.name != "linalg.generic" or len(op.inputs) != 2 or len(op.outputs) != 1:
        return False
    if not all(_element(value) in ELEMENTS for value in op.operation.operands):
        return False
    if len({_element(value) for value in op.operation.operands}) > 1:
        return False
    indices = indices_of(op)
    return None not in indices and _multiplies(op) and _has_rows(op, indices)


def _element(value: Value) -> str:
    from torch_mlir import ir

    type = value.type
    return str(ir.RankedTensorType(type).element_type) if "tensor" in str(type) else ""


def _multiplies(op: OpView) -> bool:
    """Return whether the body is `total + a * b`, fused or not."""
    block = op.operation.regions[0].blocks[0]
    a, b, total = block.arguments
    names = [inner.operation.name for inner in block.operations]
    if names == ["math.fma", "linalg.yield"]:
        fused = block.operations[0].operation
        return set(fused.operands[:2]) == {a, b} and fused.operands[2] == total
    if names != ["arith.mulf", "arith.addf", "linalg.yield"]:
        return False
    product, sum, end = (inner.operation for inner in block.operations)
    return (
        set(product.operands) == {a, b}
        and set(sum.operands) == {total, product.result}
        and end.operands[0] == sum.result
    )


def _has_rows(op: OpView, indices: Sequence[Any]) -> bool:
    """Return whether the op has a reduction, and rows or columns of more than one element."""
    from torch_mlir import ir

    if not _is_contraction(indices):
        return False
    a, b, c = map(set, indices)
    result = ir.RankedTensorType(op.outputs[0].type)
    sizes = {loop: result.shape[axis] for axis, loop in enumerate(indices[2])}
    return bool(a & b - c) and any(sizes[loop] != 1 for loop in c - (a & b))


def _is_contraction(indices: Sequence[Any]) -> bool:
    """Return whether no loop belongs to one tensor alone."""
    every = [loop for index in indices for loop in index]
    return all(every.count(loop) > 1 for loop in every)


def _name(op: OpView) -> None:
    from torch_mlir import ir
    from torch_mlir.dialects import bufferization, linalg

    total = op.outputs[0]
    factors = list(op.inputs)
    indices: list[Any] = indices_of(op)
    loops = 1 + max(loop for index in indices for loop in index)
    for i, factor in enumerate(factors):
        source, index = _behind_moves(factor, indices[i])
        moved = [*indices[:i], index, *indices[i + 1 :]]
        if _is_contraction(moved):
            factors[i], indices = source, moved
    maps = ir.ArrayAttr.get([_map(loops, index) for index in indices])
    with ir.InsertionPoint(op), op.operation.location:
        fresh = _skip_fill(total) if _is_zero(total) else None
        begin = total if fresh is None else fresh
        contraction = linalg.ContractOp([total.type], factors, [begin], maps)
        linalg.fill_builtin_region(contraction.operation)
        for value in (*factors, contraction.operation.results[0]):
            bufferization.DeallocTensorOp(value)
    if fresh is not None:
        contraction.operation.attributes[FROM_ZERO] = ir.UnitAttr.get()
    op.operation.results[0].replace_all_uses_with(contraction.operation.results[0])
    op.operation.erase()


def _map(loops: int, index: Sequence[int]) -> Any:
    from torch_mlir import ir

    dims = [ir.AffineDimExpr.get(loop) for loop in index]
    return ir.AffineMapAttr.get(ir.AffineMap.get(loops, 0, dims))


def _generic(value: Value) -> OpView | None:
    """Return the generic op of one input and one output that gives a value."""
    if is_block(value.owner) or value.owner.name != "linalg.generic":
        return None
    op = value.owner.opview
    return op if len(op.inputs) == len(op.outputs) == 1 else None


def _gives_its_input(op: OpView) -> bool:
    block = op.operation.regions[0].blocks[0]
    end = list(block.operations)[-1].operation
    return end.operands[0] == block.arguments[0]


def _behind_moves(value: Value, index: Index) -> tuple[Value, Index]:
    """Return the tensor behind transposes and broadcasts, and the loops that read it."""
    op = _generic(value)
    if op is None or not _gives_its_input(op) or "tensor" not in str(op.inputs[0].type):
        return value, index
    source, target = indices_of(op)
    if source is None or target is None or len(target) < len(set(source) | set(target)):
        return value, index
    read_by = dict(zip(target, index, strict=True))
    return _behind_moves(op.inputs[0], tuple(read_by[loop] for loop in source))


def _is_zero(total: Value) -> bool:
    """Return whether a tensor was just filled with zeros."""
    from torch_mlir import ir

    op = _generic(total)
    if op is None or not _gives_its_input(op):
        return False
    value = op.inputs[0]
    if not is_constant(value) or not isinstance(value.type, ir.F32Type | ir.F64Type):
        return False
    return ir.FloatAttr(value.owner.attributes["value"]).value == 0


def _skip_fill(total: Value) -> Value:
    """Return the tensor that was filled, as it was before."""
    return total.owner.opview.outputs[0]
