"""Lanes for the innermost loops of sums whose order is free, asked of LLVM by annotations.

The number of lanes is fixed, so that a sum has the same bits on all processors of a family.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewbit.ir.bindings import mlir_context
from fewbit.passes.llvm.loops import innermost, loops_of
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Block, Module

LANES = 16
_IN_LANES = (
    f"#llvm.loop_annotation<vectorize = <disable = false, width = {LANES} : i32, "
    "scalableEnable = false>, interleave = <count = 1 : i32>, unroll = <disable = true>>"
)
"""Unrolled before there are lanes, a short sum would stay one addition after another."""


@dataclass(frozen=True)
class AddInLanes(BindingsPass):
    """Annotate loops of reassociated sums in the llvm dialect."""

    name = "add-in-lanes"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        from torch_mlir import ir

        with mlir_context(), ir.Location.unknown():
            lanes = ir.Attribute.parse(_IN_LANES)
            for function in module.body.operations:
                for loop in innermost(loops_of(function)):
                    if any(map(_is_free_sum, loop.blocks)):
                        loop.back_edge.operation.attributes["loop_annotation"] = lanes


def _is_free_sum(block: Block) -> bool:
    return any(
        op.operation.name == "llvm.fadd"
        and "reassoc" in str(op.operation.attributes["fastmathFlags"])
        for op in block.operations
        if "fastmathFlags" in op.operation.attributes
    )
