"""Neighbouring loops over neighbouring elements become one loop.

A tensor of 32 x 32 x 16 that is only read element by element is 16384 elements in a row. Two loops
are one where every operand has both as neighbouring dimensions, in the same order, or neither. A
long inner loop is what LLVM vectorizes well, and what threads can share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewbit.ir.bindings import find_function, loop_kinds, mlir_context, walk
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import function_names
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import AffineDimExpr, Module, OpView, Value

Dims = list[int]


@dataclass(frozen=True)
class CollapseLoops(BindingsPass):
    """Join neighbouring loops over neighbouring elements."""

    name = "collapse-loops"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        for name in function_names(module):
            collapse_loops(module, name)


def collapse_loops(module: Module, entry: str) -> None:
    """Collapse the loops of every linalg.generic on memory, in place."""
    from torch_mlir import ir

    with mlir_context(), ir.Location.unknown():
        for op in list(walk(find_function(module, entry))):
            if op.operation.name == "linalg.generic":
                _collapse(op)


def _collapse(op: OpView) -> None:
    dims_of_operands = [_plain_dims(op, i) for i in range(len(op.operands))]
    maps = [dims for dims in dims_of_operands if dims is not None]
    if len(maps) < len(dims_of_operands) or _uses_index(op):
        return
    kinds = loop_kinds(op)
    groups = _groups(kinds, maps)
    if len(groups) == len(kinds):
        return
    _replace(op, maps, groups, [kinds[group[0]] for group in groups])


def _plain_dims(op: OpView, number: int) -> Dims | None:
    """Return the loops that index a dense operand; None where indices are more than loops."""
    from torch_mlir import ir

    value = op.operands[number]
    results = op.operation.attributes["indexing_maps"][number].value.results
    if not isinstance(value.type, ir.MemRefType):
        return None if list(results) else []
    if not all(isinstance(r, ir.AffineDimExpr) for r in results):
        return None
    layout = value.type.layout
    if not isinstance(layout, ir.AffineMapAttr) or layout.value != ir.AffineMap.get_identity(
        value.type.rank
    ):
        return None
    return [r.position for r in results]


def _uses_index(op: OpView) -> bool:
    return any(inner.operation.name == "linalg.index" for inner in walk(op))


def _groups(kinds: list[str], maps: list[Dims]) -> list[Dims]:
    """Return groups of loops that become one, in order."""
    groups: list[Dims] = []
    for loop in range(len(kinds)):
        if groups and kinds[loop] == kinds[loop - 1] and _neighbours(loop - 1, loop, maps):
            groups[-1].append(loop)
        else:
            groups.append([loop])
    return groups


def _neighbours(a: int, b: int, maps: list[Dims]) -> bool:
    for dims in maps:
        if a not in dims and b not in dims:
            continue
        if a not in dims or b not in dims or dims.index(b) != dims.index(a) + 1:
            return False
    return True


def _replace(op: OpView, maps: list[Dims], groups: list[Dims], kinds: list[str]) -> None:
    from torch_mlir import ir
    from torch_mlir.dialects import linalg

    number = {group[0]: i for i, group in enumerate(groups)}
    width = {group[0]: len(group) for group in groups}
    exprs: list[list[AffineDimExpr]] = []
    values: list[Value] = []
    with ir.InsertionPoint(op), op.operation.location:
        for value, dims in zip(op.operands, maps, strict=True):
            first = [dim for dim in dims if dim in number]
            exprs.append([ir.AffineDimExpr.get(number[dim]) for dim in first])
            values.append(_collapse_memory(value, [width[dim] for dim in first]))
        inputs = len(op.inputs)
        collapsed = linalg.GenericOp(
            [],
            values[:inputs],
            values[inputs:],
            ir.ArrayAttr.get(
                [ir.AffineMapAttr.get(ir.AffineMap.get(len(groups), 0, e)) for e in exprs]
            ),
            ir.ArrayAttr.get([_iterator(kind) for kind in kinds]),
        )
    op.operation.regions[0].blocks[0].append_to(collapsed.operation.regions[0])
    op.operation.erase()


def _iterator(kind: str) -> Any:
    from torch_mlir import ir

    return ir.Attribute.parse(f"#linalg.iterator_type<{kind}>")


def _collapse_memory(value: Value, widths: list[int]) -> Value:
    """Collapse `widths` neighbouring dimensions of memory at a time."""
    from torch_mlir import ir
    from torch_mlir.dialects import memref

    if not widths or all(width == 1 for width in widths):
        return value
    groups: list[list[int]] = []
    sizes: list[int] = []
    start = 0
    for width in widths:
        axes = list(range(start, start + width))
        groups.append(axes)
        sizes.append(_product([value.type.shape[axis] for axis in axes]))
        start += width
    type = ir.MemRefType.get(sizes, value.type.element_type)
    return memref.CollapseShapeOp(type, value, groups).result


def _product(sizes: list[int]) -> int:
    from torch_mlir import ir

    dynamic = ir.ShapedType.get_dynamic_size()
    total = 1
    for size in sizes:
        if size == dynamic:
            return dynamic
        total *= size
    return total
