"""From a program to blocks of the accelerator, and what its host interprets around them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import Conversion
from fewbit.targets.bitfusion.lowering import AcceleratorName, Lowered, lower_layers


@dataclass(frozen=True)
class ToBlocks(Conversion):
    """Schedule each layer that the accelerator can run as a block of tiled loops."""

    name = "to-blocks"
    takes = "xdsl"
    gives = "other"

    def convert(self, ctx: CompileContext, module: ModuleOp) -> Lowered:
        return lower_layers(ctx.program(module), ctx.get(AcceleratorName))
