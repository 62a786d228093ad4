"""Where a program's time goes: cycles of each call that its entry makes, counted by the library.

The entry calls one loop nest or kernel after another and waits after each for all threads. In a
library that is compiled with a profile, the first thread reads the processor's counter before each
call and after the wait, and adds the difference to a row of a table, which the library offers to
its caller. A row also has what a call works on, so that its speed can be compared with bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from fewbit.codegen.stubs import KernelCalls, Stub
from fewbit.dialects import kernel
from fewbit.dialects.mico import shape_of
from fewbit.ir.bindings import find_function, mlir_context
from fewbit.ir.bindings_locations import layer_of
from fewbit.ir.locations import place_of
from fewbit.ir.memref_views import root_of
from fewbit.llvm.function import Prototype, forward
from fewbit.llvm.values import Constant, array, constant, string, structure, symbol
from fewbit.passes.loops.share_work import BARRIER
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import ENTRY
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Block, Module, OpView, Value

NOW, ADD = "profile.now", "profile.add"
LOOP = "loop"
"""What stands for a kernel where a call is of a loop nest."""
OTHER = "other"
"""What stands for a layer where a call is part of none."""


@dataclass(frozen=True)
class Row:
    """One call in the entry; amounts are of one execution, 0 where sizes are not known."""

    layer: str
    kernel: str
    macs: int
    bytes: int
    """The size of all arrays that the call is given."""
    weight_bytes: int
    """The size of the weights among them."""


@dataclass(frozen=True)
class LayerDepths:
    """How many products are summed for an element of each layer's output, by its name."""

    depths: Mapping[str, int]


@dataclass(frozen=True)
class ProfileRows:
    """The rows of the table that a library with a profile keeps."""

    rows: Sequence[Row]


@dataclass(frozen=True)
class CountCycles(BindingsPass):
    """Count the cycles of each call that the entry makes."""

    name = "count-cycles"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        stubs, depths = ctx.get(KernelCalls).stubs, ctx.get(LayerDepths).depths
        ctx.put(ProfileRows(count_cycles(module, ENTRY, stubs, depths)))


def depths_of_layers(module: ModuleOp) -> dict[str, int]:
    """Count the terms of each element of a layer's output, before the layer is a call."""
    return {
        place_of(op).layer or op.name: prod(shape_of(op.weight.type)[1:])
        for op in module.walk()
        if isinstance(op, kernel.ContractionOp)
    }


def count_cycles(
    module: Module, entry: str, stubs: Sequence[Stub], depths: Mapping[str, int]
) -> list[Row]:
    """Count the cycles of each call of the entry, in place; what the rows of the table are."""
    from torch_mlir import ir
    from torch_mlir.dialects import arith, func

    kernels = {stub.name: stub.called[0] if stub.called else stub.name for stub in stubs}
    rows: list[Row] = []
    with mlir_context(), ir.Location.unknown():
        i64, index = ir.IntegerType.get_signless(64), ir.IndexType.get()
        block = find_function(module, entry).entry_block
        weights, _, thread, _, _ = list(block.arguments)[-5:]
        with ir.InsertionPoint(module.body):
            func.FuncOp(NOW, ir.FunctionType.get([], [i64]), visibility="private")
            types = ir.FunctionType.get([i64, i64, index], [])
            func.FuncOp(ADD, types, visibility="private")
        for call, wait in list(_calls(block)):
            with ir.InsertionPoint(call):
                start = func.CallOp([i64], ir.FlatSymbolRefAttr.get(NOW), []).result
                number = arith.ConstantOp(i64, len(rows)).result
                end = func.CallOp([], ir.FlatSymbolRefAttr.get(ADD), [number, start, thread])
            end.operation.move_after(wait.operation)
            rows.append(_row(call, kernels, depths, weights))
    return rows


def _calls(block: Block) -> Iterator[tuple[OpView, OpView]]:
    """Every call of loops or kernels, with the wait behind it."""
    last = None
    for op in block.operations:
        if op.operation.name == "func.call":
            callee = op.callee.value
            if callee != BARRIER:
                last = op
            elif last is not None:
                yield last, op
                last = None
        else:
            last = None
        for region in op.operation.regions:
            for inner in region.blocks:
                yield from _calls(inner)


def _row(call: Any, kernels: Mapping[str, str], depths: Mapping[str, int], weights: Value) -> Row:
    callee = call.callee.value
    layer = layer_of(call) or OTHER
    name = kernels.get(callee, LOOP if callee.startswith("program.") else callee)
    memory = [v for v in call.operation.operands if "memref" in str(v.type)]
    constants = [v for v in memory if root_of(v) == weights]
    macs = 0
    if any(kind in name for kind in ("matmul", "conv2d", "depthwise")):
        depth = _sizes(memory[0])[-1] if "matmul" in name else depths.get(layer, 0)
        macs = max(0, prod(_sizes(memory[-1])) * depth)
    return Row(layer, name, macs, sum(map(_bytes, memory)), sum(map(_bytes, constants)))


def _sizes(value: Value) -> list[int]:
    """Sizes of a memref, 0 for those that are not known."""
    from torch_mlir import ir

    type = ir.MemRefType(value.type)
    return [0 if type.is_dynamic_dim(i) else type.get_dim_size(i) for i in range(type.rank)]


def _bytes(value: Value) -> int:
    from torch_mlir import ir

    element = ir.MemRefType(value.type).element_type
    bits = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 64
    return prod(_sizes(value)) * -(-bits // 8)


def profile_ir(name: str, rows: Sequence[Row]) -> str:
    """LLVM IR of what `runtime/profile.c` declares: the table; and its functions by their names."""
    texts = {text: f"profile.text.{i}" for i, text in enumerate(_texts(rows))}
    strings = [f"@{at} = private constant {string(text).typed}" for text, at in texts.items()]
    table = array([_initial(row, texts) for row in rows]) if rows else array([constant("i64", 0)])
    return "\n".join(
        [
            *strings,
            f"@profile.table = global {table.typed}, align 64",
            f"@profile.rows = constant {constant('i64', len(rows)).typed}",
            forward(f"{name}_profile", Prototype.of("profile.get", "ptr", "ptr")),
            forward(f"{name}_ticks", Prototype.of("profile.ticks", "i64")),
        ]
    )


def _initial(row: Row, texts: Mapping[str, str]) -> Constant:
    """A row in which nothing was counted yet."""
    amounts = (row.macs, row.bytes, row.weight_bytes, 0, 0, -1)
    names = [symbol(texts[text]) for text in (row.layer, row.kernel)]
    return structure([*names, *(constant("i64", amount) for amount in amounts)])


def _texts(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(text for row in rows for text in (row.layer, row.kernel)))
