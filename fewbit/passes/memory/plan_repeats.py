"""The memory of functions that are called for parts which repeat: regions of what calls them.

Buffers of such a function are planned by their lifetimes in it, as those of the entry are, and then
take part in the entry's plan as one buffer for each unit of size, which lives as long as the call.
Sizes are worked out in the entry, before the first call: all calls have the same, since what
differs from call to call is static or handed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewbit.ir.bindings import (
    add_operands,
    find_function,
    index_constant,
    is_block,
    known_integer,
    mlir_context,
    update_type,
    walk,
)
from fewbit.passes.memory.plan_memory import (
    Copies,
    Region,
    Times,
    multiply,
    regions_of,
    use_view,
)
from fewbit.passes.memory.size_bounds import planned_size
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import ENTRY, function_names
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Block, Module, OpView, Value


@dataclass(frozen=True)
class PlanRepeats(BindingsPass):
    """Give functions of parts that repeat memory of the entry in place of their allocations."""

    name = "plan-repeats"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        for name in function_names(module)[1:]:
            plan_repeats(module, ENTRY, name)


def plan_repeats(module: Module, entry: str, name: str) -> None:
    """Have the entry allocate regions for the buffers of a function, for each call of it."""
    from torch_mlir import ir

    with mlir_context(), ir.Location.unknown():
        caller, callee = find_function(module, entry), find_function(module, name)
        calls = [op for op in walk(caller) if _calls(op, name)]
        block = callee.entry_block
        times = Times(block)
        with ir.InsertionPoint(calls[0]):
            known = _Sizes(calls[0], dict(_pairs(block, calls[0])))
            sizes = {op.operation: known.of_alloc(op) for op in times.allocs}
        regions = regions_of(times.allocs, sizes, times, Times(caller.entry_block))
        for region in regions:
            region.place()
        with ir.InsertionPoint(calls[0]):
            scales = [multiply(index_constant(1), *r.dims) if r.dims else None for r in regions]
        for call in calls:
            _allocate(call, regions, scales)
        _use_regions(callee, regions)


def _calls(op: OpView, name: str) -> bool:
    return op.operation.name == "func.call" and op.callee.value == name


def _pairs(block: Block, call: OpView) -> zip[tuple[Any, Any]]:
    return zip(block.arguments, call.operation.operands, strict=True)


class _Sizes(Copies):
    """Sizes in a callee, as its caller knows them: a size is one value wherever it is asked for."""

    def __init__(self, call: OpView, known: dict[Any, Any]) -> None:
        super().__init__(known)
        self.dims: dict[Any, Any] = {}
        for op in call.operation.block.operations:
            if op.operation == call.operation:
                break
            if op.operation.name == "memref.dim":
                axis = known_integer(op.operation.operands[1])
                self.dims.setdefault((op.operation.operands[0], axis), op.operation.results[0])

    def of_alloc(self, alloc: OpView) -> list[int | Value]:
        return [planned_size(self.of(size)) for size in alloc.operation.operands]

    def of(self, value: Value) -> Value:
        if value not in self.known and not is_block(value.owner):
            found = self._dimension(value.owner) if value.owner.name == "memref.dim" else None
            if found is not None:
                self.known[value] = found
        return super().of(value)

    def _dimension(self, op: Any) -> Value | None:
        """Return the size that the caller has for a dimension of memory that it gives."""
        from torch_mlir import ir

        axis = known_integer(op.operands[1])
        source = self.known.get(op.operands[0])
        if source is None or axis is None:
            return None
        if not is_block(source.owner) and source.owner.name == "memref.alloc":
            type = ir.MemRefType(source.type)
            return source.owner.operands[sum(map(type.is_dynamic_dim, range(axis)))]
        return self.dims.get((source, axis))


def _allocate(call: OpView, regions: Sequence[Region], scales: Sequence[Value | None]) -> None:
    """Give a call memory for each region, and the unit of those of dynamic size."""
    from torch_mlir import ir
    from torch_mlir.dialects import memref

    byte = ir.IntegerType.get_signless(8)
    given: list[Value] = []
    with ir.InsertionPoint(call), call.operation.location:
        for region, scale in zip(regions, scales, strict=True):
            if scale is None:
                given.append(memref.AllocOp(ir.MemRefType.get([region.plan.peak], byte), [], []))
                continue
            size = multiply(index_constant(region.plan.peak), *region.dims)
            dynamic = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], byte)
            given += [memref.AllocOp(dynamic, [size], []).result, scale]
    add_operands(call, given)


def _use_regions(callee: Any, regions: Sequence[Region]) -> None:
    from torch_mlir import ir

    block, byte = callee.entry_block, ir.IntegerType.get_signless(8)
    placed: list[tuple[OpView, Value, Value]] = []
    with ir.InsertionPoint(block.operations[0]):
        for region in regions:
            peak = ir.ShapedType.get_dynamic_size() if region.dims else region.plan.peak
            memory = block.add_argument(ir.MemRefType.get([peak], byte), ir.Location.unknown())
            unit: list[Value] = []
            if region.dims:
                unit = [block.add_argument(ir.IndexType.get(), ir.Location.unknown())]
            offsets = [multiply(index_constant(offset), *unit) for offset in region.plan.offsets]
            placed += zip(region.allocs, [memory] * len(offsets), offsets, strict=True)
    update_type(callee)
    for alloc, memory, offset in placed:
        use_view(alloc, memory, offset)
