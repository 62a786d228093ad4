"""Loops around long loops stay loops: LLVM is asked not to unroll them.

Where a loop has few iterations, LLVM copies what is in it, and with it the loops in it, each of
which is then vectorized with its remainders and checks of its own. Sixteen copies of a long loop
run no faster than one that is entered sixteen times, and take most of the time of a compilation.
Loops around short loops are left to LLVM: there, to unroll both is what makes a window fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewbit.ir.bindings import is_block, mlir_context
from fewbit.passes.llvm.loops import Loop, loops_of
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module, Value

SHORT = 32
"""Iterations of a loop that LLVM may unroll as a whole."""
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
                long = [loop for loop in loops if _is_long(loop)]
                for loop in loops:
                    attributes = loop.back_edge.operation.attributes
                    if "loop_annotation" not in attributes and any(map(loop.contains, long)):
                        attributes["loop_annotation"] = kept


def _is_long(loop: Loop) -> bool:
    """Return whether a loop may have many iterations: as it does where they are not constant."""
    *_, end = loop.blocks[0].operations
    if end.operation.name != "llvm.cond_br" or is_block(end.operation.operands[0].owner):
        return True
    compare = end.operation.operands[0].owner
    if compare.name != "llvm.icmp":
        return True
    # Loops of a constant number of iterations begin at 0, which `canonicalize` sees to.
    bound = _constant(compare.operands[1])
    return bound is None or bound > SHORT


def _constant(value: Value) -> int | None:
    from torch_mlir import ir

    if is_block(value.owner) or value.owner.name != "llvm.mlir.constant":
        return None
    return ir.IntegerAttr(value.owner.attributes["value"]).value
