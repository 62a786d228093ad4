"""The program as IREE reads it, with the executable of our kernels in front where it calls them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from fewbit.dialects.graph import Graph
from fewbit.dialects.kernel import Kernel
from fewbit.dialects.mico import Mico
from fewbit.errors import UnsupportedError
from fewbit.ir.locations import place_of
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
        _refuse_ours(module)
        kernels = ctx.find(Kernels)
        if kernels is None:
            return to_source(module)
        return to_source(module, kernels.text(), kernels.files)


def _refuse_ours(module: ModuleOp) -> None:
    """Refuse ops that only we know: IREE would say no more than that it does not know them."""
    ours = {dialect.name for dialect in (Graph, Kernel, Mico)}
    left = [op for op in module.walk() if op.name.partition(".")[0] in ours]
    if not left:
        return
    listed = dict.fromkeys(f"{op.name} ({place_of(op)})" for op in left)
    raise UnsupportedError(
        f"IREE does not know {', '.join(listed)}",
        hint="lower them before: fewbit-opt --print-pipeline -t iree-cpu shows how",
    )
