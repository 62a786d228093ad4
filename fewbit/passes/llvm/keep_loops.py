"""Loops around long loops stay loops: LLVM is asked not to unroll them.

Where a loop has few iterations, LLVM copies what is in it, and with it the loops in it, each of
which is then vectorized with its remainders and checks of its own. Sixteen copies of a long loop
run no faster than one that is entered sixteen times, and take most of the time of a compilation.
Loops around short loops are left to LLVM: there, to unroll both is what makes a window fast. A loop
is as long as all that it does, with what the loops in it repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from fewbit.ir.bindings import is_block, mlir_context
from fewbit.passes.llvm.loops import Loop, loops_of
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module, Value

SHORT = 32
"""Iterations, with those of the loops inside, that LLVM may unroll as a whole."""
_KEPT = "#llvm.loop_annotation<unroll = <disable = true>>"


@dataclass(frozen=True)
class KeepLoops(BindingsPass):
    """Annotate loops around long loops in the llvm dialect."""

    name = "keep-loops"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        from torch_mlir import ir

        with mlir_context(), ir.Location.unknown():
            kept = ir.Attribute.parse(_KEPT)
            for function in module.body.operations:
                loops = loops_of(function)
                lengths = _lengths(loops)
                long = [loop for loop in loops if lengths[loop.first] > SHORT]
                for loop in loops:
                    attributes = loop.back_edge.operation.attributes
                    if "loop_annotation" not in attributes and any(map(loop.contains, long)):
                        attributes["loop_annotation"] = kept


def _lengths(loops: Sequence[Loop]) -> dict[int, float]:
    """Return the iterations of loops with those of the loops inside, by their first blocks."""
    lengths: dict[int, float] = {}
    for loop in loops:
        inside = [lengths[other.first] for other in loops if loop.contains(other)]
        lengths[loop.first] = _iterations(loop) * max(inside, default=1)
    return lengths


def _iterations(loop: Loop) -> float:
    """Return how many iterations a loop has; infinity where they are not constant."""
    *_, end = loop.blocks[0].operations
    if end.operation.name != "llvm.cond_br" or is_block(end.operation.operands[0].owner):
        return inf
    compare = end.operation.operands[0].owner
    # Loops of a constant number of iterations begin at 0, which `canonicalize` sees to.
    bound = _constant(compare.operands[1]) if compare.name == "llvm.icmp" else None
    return inf if bound is None else bound


def _constant(value: Value) -> int | None:
    from torch_mlir import ir

    if is_block(value.owner) or value.owner.name != "llvm.mlir.constant":
        return None
    return ir.IntegerAttr(value.owner.attributes["value"]).value
