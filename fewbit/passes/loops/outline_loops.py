"""Every loop nest of the entry function as a function; equal ones are one function.

A function's arguments can be declared not to overlap; parts of one arena cannot. With that, LLVM
keeps accumulators in registers and vectorizes without checks at run time. The functions are named
after the layers that they come from, which profilers and error messages show. Each is told its
thread and the number of threads, and does its part of one parallel loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from fewbit.ir.bindings import (
    find_function,
    index_constant,
    is_constant,
    loop_kinds,
    mlir_context,
    walk,
)
from fewbit.ir.bindings_locations import layer_suffix
from fewbit.ir.memref_views import root_of
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import function_names
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Attribute, Block, Module, OpView, Value

WORTH_SPLITTING = 2048
"""Iterations below which waiting for other threads costs more than they save."""
LONG_ENOUGH = 8
"""Iterations of a loop that can be split over several threads."""


NEST = "loop_nest"
"""The attribute of functions that hold a loop nest."""
ITERATIONS = "fewbit.iterations"
"""The attribute of functions of which a run knows whether threads should share them."""


class ThreadArguments(NamedTuple):
    """The last two arguments of what threads share: which of them calls, and how many there are.

    Loop nests and stubs of kernels take them. A call is written for one thread alone; `share-work`
    gives it the threads.
    """

    thread: Value
    threads: Value

    @staticmethod
    def alone() -> ThreadArguments:
        """Return the first thread of one, at the insertion point."""
        return ThreadArguments(index_constant(0), index_constant(1))

    @staticmethod
    def of(block: Block) -> ThreadArguments:
        """Return the thread arguments of a function, by its entry block."""
        return ThreadArguments(*list(block.arguments)[-2:])

    def give_to(self, call: OpView) -> None:
        """Pass these threads to a call."""
        operands = call.operation.operands
        operands[len(operands) - 2], operands[len(operands) - 1] = self


class Iterations(NamedTuple):
    """How many iterations a function has: a known factor, times dimensions of its arguments."""

    worth: int
    """How many are worth sharing."""
    known: int
    dims: tuple[tuple[int, int], ...]
    """Arguments, by number, and their dimensions."""

    @staticmethod
    def of(function: Any) -> Iterations | None:
        """Return what a function's attribute says."""
        from torch_mlir import ir

        attributes = function.operation.attributes
        if ITERATIONS not in attributes:
            return None
        worth, known, *dims = ir.DenseI64ArrayAttr(attributes[ITERATIONS])
        return Iterations(worth, known, tuple(zip(dims[::2], dims[1::2], strict=True)))

    @property
    def numbers(self) -> list[int]:
        """What the attribute has."""
        return [self.worth, self.known, *(number for dim in self.dims for number in dim)]


@dataclass(frozen=True)
class Outlined:
    """A function that holds one loop nest, as its attribute says."""

    name: str
    overlaps: bool
    """Whether its arguments may share memory, so that they cannot be called distinct."""
    split: int | None
    """The depth of the loop that threads share; None where the first thread does it all."""

    def write(self, function: Any) -> None:
        """Set the attribute of a function that is this nest."""
        from torch_mlir import ir

        parts: dict[str, Attribute] = {"overlaps": ir.BoolAttr.get(self.overlaps)}
        if self.split is not None:
            parts["split"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.split)
        function.operation.attributes[NEST] = ir.DictAttr.get(parts)


def outlined_of(module: Module) -> list[Outlined]:
    """Return the outlined loop nests, in order, in the func and in the llvm dialect."""
    from torch_mlir import ir

    nests: list[Outlined] = []
    for op in module.body.operations:
        if NEST not in op.operation.attributes:
            continue
        parts = ir.DictAttr(op.operation.attributes[NEST])
        split = ir.IntegerAttr(parts["split"]).value if "split" in parts else None
        name = ir.StringAttr(op.operation.attributes["sym_name"]).value
        nests.append(Outlined(name, ir.BoolAttr(parts["overlaps"]).value, split))
    return nests


@dataclass(frozen=True)
class OutlineLoops(BindingsPass):
    """Move every loop nest of the entry into a function."""

    name = "outline-loops"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        outline_loops(module, *function_names(module))


def outline_loops(module: Module, *names: str) -> list[Outlined]:
    """Move each linalg op of these functions into one of its own; return those, in place."""
    from torch_mlir import ir

    with mlir_context(), ir.Location.unknown():
        outlined: dict[str, Outlined] = {}
        for name in names:
            function = find_function(module, name)
            for number, op in enumerate(list(_loops(function.entry_block))):
                _outline(module, op, f"{name}_{number:03}{layer_suffix(op)}", outlined)
        return list(outlined.values())


def _loops(block: Block) -> Iterator[OpView]:
    for op in block.operations:
        if op.operation.name.startswith("linalg."):
            yield op
            continue
        for region in op.operation.regions:
            for inner in region.blocks:
                yield from _loops(inner)


def _outline(module: Module, op: OpView, name: str, known: dict[str, Outlined]) -> None:
    from torch_mlir import ir
    from torch_mlir.dialects import func

    constants, arguments = _captures(op)
    overlaps = _overlap(op, arguments)
    split = _loop_to_split(op)
    iterations = None if split is None else _iterations(op, arguments)
    index = ir.IndexType.get()
    type = ir.FunctionType.get([*(v.type for v in arguments), index, index], [])
    with ir.InsertionPoint(module.body), op.operation.location:
        outlined = func.FuncOp(name, type, visibility="private")
    block = outlined.add_entry_block()
    with ir.InsertionPoint(op), op.operation.location:
        whole = ThreadArguments.alone()
        call = func.CallOp([], ir.FlatSymbolRefAttr.get(name), [*arguments, *whole])
    with ir.InsertionPoint(block), op.operation.location:
        end = func.ReturnOp([])
    op.operation.move_before(end.operation)
    inside: dict[Value, Value] = dict(zip(arguments, block.arguments, strict=False))
    with ir.InsertionPoint(op):
        for value in constants:
            inside[value] = value.owner.clone().results[0]
    _replace_operands(op, inside)
    # Layers of the same shape have the same loops: one function serves them all.
    body = f"{overlaps} {outlined.operation.get_asm(use_local_scope=True)}".replace(
        f"@{name}(", "@(", 1
    )
    if body in known:
        call.operation.attributes["callee"] = ir.FlatSymbolRefAttr.get(known[body].name)
        outlined.operation.erase()
    else:
        known[body] = Outlined(name, overlaps, split)
        known[body].write(outlined)
        if iterations is not None:
            numbers = ir.DenseI64ArrayAttr.get(iterations.numbers)
            outlined.operation.attributes[ITERATIONS] = numbers


def _captures(op: OpView) -> tuple[list[Value], list[Value]]:
    """Return the values that an op captures: constants, which can be copied, and others."""
    defined: set[Any] = set()
    used: dict[Any, None] = {}
    for inner in walk(op):
        for region in inner.operation.regions:
            for block in region.blocks:
                defined.update(block.arguments)
        defined.update(inner.operation.results)
        used.update(dict.fromkeys(inner.operation.operands))
    outside = [value for value in used if value not in defined]
    constants = [value for value in outside if is_constant(value)]
    return constants, [value for value in outside if not is_constant(value)]


def _replace_operands(op: OpView, inside: dict[Value, Value]) -> None:
    for inner in walk(op):
        operands = inner.operation.operands
        for i in range(len(operands)):
            if operands[i] in inside:
                operands[i] = inside[operands[i]]


def _overlap(op: OpView, arguments: list[Value]) -> bool:
    """Return whether the op writes to memory that another of its arguments is part of."""
    written = {root_of(value) for value in op.operation.opview.outputs}
    roots = [root_of(value) for value in arguments if "memref" in str(value.type)]
    return any(roots.count(root) > 1 for root in written)


def _loop_to_split(op: OpView) -> int | None:
    """Return the loop that threads share: the first parallel one that is long enough."""
    kinds, sizes = loop_kinds(op), _loop_sizes(op)
    known = [size for size in sizes if size is not None]
    total = 1
    for size in known:
        total *= size
    parallel = [i for i, kind in enumerate(kinds) if kind == "parallel"]
    dynamic = len(known) < len(sizes)
    if not parallel or (total < WORTH_SPLITTING and not dynamic):
        return None
    for i in parallel:
        if (size := sizes[i]) is not None and size >= LONG_ENOUGH:
            return i
    for i in parallel:
        if sizes[i] is None:
            return i
    return max(parallel, key=lambda i: sizes[i] or 0)


def _loop_sizes(op: OpView) -> list[int | None]:
    """Return the number of iterations of each loop, where a dimension of an operand is static."""
    from torch_mlir import ir

    kinds = loop_kinds(op)
    sizes: list[int | None] = [None] * len(kinds)
    for map, value in zip(op.operation.attributes["indexing_maps"], op.operands, strict=False):
        if not isinstance(value.type, ir.MemRefType):
            continue
        type = ir.MemRefType(value.type)
        for axis, result in enumerate(ir.AffineMapAttr(map).value.results):
            if isinstance(result, ir.AffineDimExpr) and not type.is_dynamic_dim(axis):
                sizes[result.position] = type.get_dim_size(axis)
    return sizes


def _iterations(op: OpView, arguments: list[Value]) -> Iterations | None:
    """Return how many iterations a nest has; None where it is known, or no dimension says it."""
    sizes = _loop_sizes(op)
    dims = {loop: dim for loop, dim in _loop_dims(op, arguments) if sizes[loop] is None}
    if None not in sizes or sizes.count(None) > len(dims):
        return None
    known = prod(size for size in sizes if size is not None)
    return Iterations(WORTH_SPLITTING, known, tuple(dims.values()))


def _loop_dims(op: OpView, arguments: list[Value]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield loops with the dimension of an argument that each goes along."""
    from torch_mlir import ir

    for map, value in zip(op.operation.attributes["indexing_maps"], op.operands, strict=False):
        if value not in arguments or not isinstance(value.type, ir.MemRefType):
            continue
        for axis, result in enumerate(ir.AffineMapAttr(map).value.results):
            if isinstance(result, ir.AffineDimExpr):
                yield result.position, (arguments.index(value), axis)
