"""All memory that a program needs between inputs and outputs, as one arena that its caller gives.

Each `memref.alloc` becomes a view of the arena at an offset that was planned by lifetimes. Where
sizes are known only at run time, buffers whose sizes are the same product of such dimensions, times
a known number, are planned together in units of that product; their regions follow one another.
A batch of any size thus needs just that many times the memory of one sample. A size that data
decides on is planned by its bound, and the buffer has its true size there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from fewbit.errors import UnsupportedError
from fewbit.ir.bindings import (
    find_function,
    index_constant,
    is_block,
    known_integer,
    mlir_context,
    update_type,
    walk,
)
from fewbit.ir.memref_views import VIEWS
from fewbit.passes.memory.arena import Buffer, Plan, plan
from fewbit.passes.memory.size_bounds import affine_factor, is_size_computation, planned_size
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import ENTRY
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Block, Module, OpView, Value

LOOPS = ("scf.for", "scf.while", "scf.forall", "scf.parallel")


@dataclass
class Region:
    """Buffers whose sizes are in the same unit: a product of dimensions, empty for bytes."""

    dims: tuple[Value, ...]
    allocs: list[OpView] = field(default_factory=list["OpView"])
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    plan: Plan = field(default_factory=lambda: Plan((), 0))

    def place(self) -> None:
        """Find a place for each buffer; one of any size is aligned as far as its unit is."""
        self.plan = plan(self.buffers, 64 if not self.dims else 16)


@dataclass(frozen=True)
class Arena:
    """What was planned; `static` is the size in bytes, None where dimensions have a part in it."""

    static: int | None
    regions: tuple[Region, ...]


@dataclass(frozen=True)
class PlanMemory(BindingsPass):
    """Give the entry one arena in place of its allocations."""

    name = "plan-memory"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        ctx.put(plan_memory(module, ENTRY))


def plan_memory(module: Module, entry: str) -> Arena:
    """Give the entry an arena in place of its allocations, and a function that returns its size.

    The arena is the entry's last argument; `<entry>_arena_bytes` takes the same other arguments.
    """
    from torch_mlir import ir

    with mlir_context(), ir.Location.unknown():
        function = find_function(module, entry)
        regions = _regions(function.entry_block)
        for region in regions:
            region.place()
        _make_size_function(module, function, regions)
        _use_arena(function, regions)
        static = sum(r.plan.peak for r in regions) if all(not r.dims for r in regions) else None
        return Arena(static, tuple(regions))


def _regions(block: Block) -> list[Region]:
    sizes = _planned_sizes(block)
    times = Times(block)
    return regions_of(times.allocs, sizes, times, times)


def regions_of(
    allocs: Sequence[OpView],
    sizes: Mapping[Any, Sequence[int | Value]],
    lives: Times,
    times: Times,
) -> list[Region]:
    """Return buffers by their units: their sizes, where they live, and when sizes are computed."""
    regions: dict[tuple[Any, ...], Region] = {}
    for op in allocs:
        factor, dims = _product_of(sizes[op.operation], times)
        region = regions.setdefault(dims, Region(dims))
        first, last = lives.lifetime(op)
        region.allocs.append(op)
        region.buffers.append(Buffer(_unit_bytes(op, factor, bool(dims)), first, last))
    return sorted(regions.values(), key=lambda r: len(r.dims))


def _planned_sizes(block: Block) -> dict[Any, list[int | Value]]:
    """Return the dynamic sizes that allocations are planned with, by their ops."""
    from torch_mlir import ir

    planned: dict[Any, list[int | Value]] = {}
    for op in list(_within(block)):
        if op.operation.name == "memref.alloc":
            with ir.InsertionPoint(op), op.operation.location:
                planned[op.operation] = [planned_size(size) for size in op.operation.operands]
    return planned


def _within(block: Block) -> Iterator[OpView]:
    return (each for op in block.operations for each in walk(op))


def _product_of(values: Sequence[int | Value], times: Times) -> tuple[int, tuple[Value, ...]]:
    """Return the product of sizes as a number and the dynamic dimensions that it multiplies."""
    factor, dims = 1, list[Any]()
    for value in values:
        known, unknown = _terms(value)
        factor *= known
        dims += unknown
    return factor, tuple(sorted(dims, key=times.start_of))


def _terms(value: int | Value) -> tuple[int, list[Value]]:
    """Return a size as a number times other sizes; `x * 8 / 8` is x."""
    if isinstance(value, int):
        return value, []
    if (number := known_integer(value)) is not None:
        return number, []
    op = value.owner
    if is_block(op):
        return 1, [value]
    if op.name == "arith.muli":
        (a, more), (b, others) = (_terms(operand) for operand in op.operands)
        return a * b, [*more, *others]
    if op.name == "affine.apply":
        times = affine_factor(op)
        if times is not None:
            known, unknown = _terms(op.operands[0])
            return known * times, unknown
    if op.name in ("arith.divsi", "arith.divui", "arith.floordivsi"):
        known, unknown = _terms(op.operands[0])
        divisor, unknown_divisors = _terms(op.operands[1])
        if not unknown_divisors and divisor > 0 and known % divisor == 0:
            return known // divisor, unknown
    return 1, [value]


def _unit_bytes(op: OpView, factor: int, dynamic: bool) -> int:
    from torch_mlir import ir

    type = ir.MemRefType(op.operation.results[0].type)
    sizes = [type.get_dim_size(i) for i in range(type.rank) if not type.is_dynamic_dim(i)]
    size = factor * prod(sizes) * element_bytes(type.element_type)
    # Any multiple of an aligned unit is aligned.
    return -(-size // 16) * 16 if dynamic else size


def element_bytes(type: Any) -> int:
    from torch_mlir import ir

    if isinstance(type, ir.IndexType):
        return 8
    return -(-type.width // 8)


class Times:
    """When ops of a function happen: each starts at a time and ends at one."""

    def __init__(self, block: Block) -> None:
        self.order: list[OpView] = []
        self.start: dict[Any, int] = {}
        self.end: dict[Any, int] = {}
        self._visit(block)

    def _visit(self, block: Block) -> None:
        for op in block.operations:
            self.start[op.operation] = len(self.order)
            self.order.append(op)
            for region in op.operation.regions:
                for inner in region.blocks:
                    self._visit(inner)
            self.end[op.operation] = len(self.order)

    @property
    def allocs(self) -> list[OpView]:
        return [op for op in self.order if op.operation.name == "memref.alloc"]

    def start_of(self, value: Value) -> int:
        return -1 if is_block(value.owner) else self.start[value.owner]

    def lifetime(self, alloc: OpView) -> tuple[int, int]:
        first = self.start[alloc.operation]
        last = first
        for use in _uses(alloc.operation.results[0]):
            last = max(last, self._time_of_use(use, alloc))
        return first, last

    def _time_of_use(self, use: Any, alloc: OpView) -> int:
        """Return the time of a use; in a loop that the buffer outlives, the end of that loop."""
        home, around = list(_above(alloc.operation)), list(_above(use))
        if any(op.name in LOOPS and op not in around for op in home):
            raise UnsupportedError(
                "a buffer that is made in a loop is used after it, for which this target "
                "cannot plan memory"
            )
        ends = [self.end[op] - 1 for op in around if op.name in LOOPS and op not in home]
        return max([self.start[use], *ends])


def _above(op: Any) -> Iterator[Any]:
    while op.parent is not None:
        op = op.parent
        yield op


def _uses(value: Value) -> Iterator[Any]:
    """Yield the ops that use a buffer, a view of it, or what a branch or loop yields of it."""
    seen: set[Any] = set()
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        for use in each.uses:
            op = use.owner.operation
            yield op
            waiting += _same_memory(op, use.operand_number)


def _same_memory(op: Any, operand: int) -> list[Value]:
    """Return values that are the memory which an op is given as this operand."""
    if op.name in VIEWS:
        return [op.results[0]]
    if op.name == "arith.select":
        return [op.results[0]]
    if op.name == "scf.for" and operand >= 3:
        place = operand - 3
        return [op.results[place], op.regions[0].blocks[0].arguments[1 + place]]
    if op.name == "scf.while":
        return [op.regions[0].blocks[0].arguments[operand]]
    if op.name == "scf.condition" and operand >= 1:
        place = operand - 1
        above = op.parent
        return [above.results[place], above.regions[1].blocks[0].arguments[place]]
    if op.name == "scf.yield":
        above = op.parent
        if above.name == "scf.while":
            return [above.regions[0].blocks[0].arguments[operand]]
        return [above.results[operand]]
    return []


def _make_size_function(module: Module, function: Any, regions: list[Region]) -> None:
    from torch_mlir import ir
    from torch_mlir.dialects import func

    types = [argument.type for argument in function.entry_block.arguments]
    index = ir.IndexType.get()
    name = f"{function.name.value}_arena_bytes"
    size_function = func.FuncOp(
        name, ir.FunctionType.get(types, [index]), ip=ir.InsertionPoint(module.body)
    )
    block = size_function.add_entry_block()
    with ir.InsertionPoint(block):
        copies = Copies(dict(zip(function.entry_block.arguments, block.arguments, strict=True)))
        total, about = index_constant(0), _float(index_constant(0))
        for region in regions:
            dims = [copies.of(dim) for dim in region.dims]
            total = _add(total, multiply(index_constant(region.plan.peak), *dims))
            about = _about(about, [index_constant(region.plan.peak), *dims])
        func.ReturnOp([_unless_too_large(total, about)])


TOO_LARGE = 10**15
"""Bytes that no machine has. Products of sizes may exceed 64 bits, and must not come back small."""


def _float(value: Value) -> Value:
    from torch_mlir import ir
    from torch_mlir.dialects import arith

    integer = arith.IndexCastOp(ir.IntegerType.get_signless(64), value).result
    return arith.UIToFPOp(ir.F64Type.get(), integer).result


def _about(total: Value, factors: list[Value]) -> Value:
    """Add a product of factors to a total, in floats, which do not wrap around."""
    from torch_mlir.dialects import arith

    product = _float(factors[0])
    for factor in factors[1:]:
        product = arith.MulFOp(product, _float(factor)).result
    return arith.AddFOp(total, product).result


def _unless_too_large(total: Value, about: Value) -> Value:
    """Return the total, or all ones, which no allocation grants."""
    from torch_mlir import ir
    from torch_mlir.dialects import arith

    limit = arith.ConstantOp(ir.F64Type.get(), float(TOO_LARGE)).result
    large = arith.CmpFOp(arith.CmpFPredicate.OGT, about, limit).result
    return arith.SelectOp(large, index_constant(-TOO_LARGE), total).result


def _use_arena(function: Any, regions: list[Region]) -> None:
    from torch_mlir import ir

    block = function.entry_block
    arguments = list(block.arguments)
    byte = ir.IntegerType.get_signless(8)
    arena = block.add_argument(
        ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], byte), ir.Location.unknown()
    )
    update_type(function)
    placed: list[tuple[OpView, Value]] = []
    with ir.InsertionPoint(block.operations[0]):
        copies = Copies({argument: argument for argument in arguments})
        base = index_constant(0)
        for region in regions:
            scale = multiply(index_constant(1), *map(copies.of, region.dims))
            offsets = [
                _add(base, multiply(index_constant(offset), scale))
                if region.dims
                else index_constant(offset)
                for offset in region.plan.offsets
            ]
            placed += zip(region.allocs, offsets, strict=True)
            base = _add(base, multiply(index_constant(region.plan.peak), scale))
    # The first op may itself be one that is replaced.
    for op, offset in placed:
        use_view(op, arena, offset)


def use_view(alloc: OpView, arena: Value, offset: Value) -> None:
    """Replace an allocation by memory at an offset in the arena."""
    from torch_mlir import ir
    from torch_mlir.dialects import memref

    with ir.InsertionPoint(alloc), alloc.operation.location:
        result = alloc.operation.results[0]
        view = memref.ViewOp(result.type, arena, offset, list(alloc.operation.operands))
    result.replace_all_uses_with(view.result)
    alloc.operation.erase()


class Copies:
    """Copies of computations of sizes, at the place where they are asked for."""

    def __init__(self, known: dict[Any, Any]) -> None:
        self.known = known

    def of(self, value: Value) -> Value:
        if value in self.known:
            return self.known[value]
        owner = value.owner
        if is_block(owner) or not is_size_computation(owner):
            raise UnsupportedError(
                f"the size of a buffer depends on {owner}, not only on the shapes of inputs",
                hint="this target plans all memory before it runs",
            )
        operands = [self.of(operand) for operand in owner.operands]
        copy = owner.clone()
        for i, operand in enumerate(operands):
            copy.operands[i] = operand
        self.known.update(zip(owner.results, copy.results, strict=True))
        return self.known[value]


def _add(a: Value, b: Value) -> Value:
    from torch_mlir.dialects import arith

    return arith.AddIOp(a, b).result


def multiply(first: Value, *others: Value) -> Value:
    """Return the product of some sizes."""
    from torch_mlir.dialects import arith

    for other in others:
        first = arith.MulIOp(first, other).result
    return first
