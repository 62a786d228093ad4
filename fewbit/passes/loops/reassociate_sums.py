"""Sums over elements that lie side by side in memory, in lanes.

A sum of floats in order is a chain: each addition waits for the one before. LLVM computes it in
lanes if it is told that the order is free. It is told so for sums alone, and to take a fixed number
of lanes (`add-in-lanes`), so that a sum has the same bits on all processors of a family: how lanes
are added up in the end, and the remainder, follows from the instructions that they have. A sum
is never divided among threads, so their number changes nothing. Sums of strided elements stay in
order: lanes would gather, and tiles, which take several such sums at a time, must not change their
bits. So do sums of scaled integers, group by group: numerics fixes their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewbit.ir.bindings import dims_of, loop_kinds, mlir_context, walk
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Block, Module, OpView, Value

_FREE = "#arith.fastmath<reassoc>"


@dataclass(frozen=True)
class ReassociateSums(BindingsPass):
    """Free the order of sums over elements side by side."""

    name = "reassociate-sums"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        reassociate_sums(module)


def reassociate_sums(module: Module) -> None:
    """Free the order of sums along the innermost loop of a linalg.generic, in place."""
    from torch_mlir import ir

    with mlir_context(), ir.Location.unknown():
        free = ir.Attribute.parse(_FREE)
        for op in list(walk(module)):
            if op.operation.name != "linalg.generic" or not _sums_along_rows(op):
                continue
            for addition in _sums(op.regions[0].blocks[0]):
                addition.operation.attributes["fastmath"] = free


def _sums_along_rows(op: OpView) -> bool:
    """Return whether the innermost loop is a reduction with unit stride in all that it reads."""
    kinds = loop_kinds(op)
    if kinds[-1:] != ["reduction"]:
        return False
    innermost = len(kinds) - 1
    maps = [list(map.value.results) for map in op.operation.attributes["indexing_maps"]]
    return not any(innermost in dims_of(index) for results in maps for index in results[:-1])


def _sums(body: Block) -> list[OpView]:
    """Return the additions of a term to an accumulator."""
    *_, end = body.operations
    grown: list[OpView] = []
    for argument, value in zip(
        list(body.arguments)[-len(end.operands) :], end.operands, strict=True
    ):
        owner = value.owner
        if getattr(owner, "name", None) != "arith.addf":
            continue
        if argument not in list(owner.operands) or len(list(argument.uses)) != 1:
            continue
        if not any(map(_scales_integers, owner.operands)):
            grown.append(owner)
    return grown


def _scales_integers(value: Value) -> bool:
    """Return whether a term is an integer accumulator times scales of a group, or a sum of such."""
    from torch_mlir import ir

    owner = value.owner
    match getattr(owner, "name", None):
        case "arith.mulf" | "arith.addf":
            return any(map(_scales_integers, owner.operands))
        case "arith.sitofp":
            return ir.IntegerType(owner.operands[0].type).width == 32
        case _:
            return False
