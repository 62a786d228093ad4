"""The program as IREE reads it, with the executable of our kernels in front where it calls them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import Conversion
from fewbit.targets.iree.dispatch_kernels import Kernels
from fewbit.targets.iree.source import Source, to_source


@dataclass(frozen=True)
class ToIreeSource(Conversion):
    """Write the module as text for IREE's compiler."""

    name = "to-iree-source"
    takes = "xdsl"
    gives = "other"

    def convert(self, ctx: CompileContext, module: ModuleOp) -> Source:
        kernels = ctx.find(Kernels)
        if kernels is None:
            return to_source(module)
        return to_source(module, kernels.text(), kernels.files)
