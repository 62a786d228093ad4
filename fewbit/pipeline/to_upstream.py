"""From xDSL to upstream's bindings, as text in generic form: weights are not in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import Conversion


@dataclass(frozen=True)
class ToUpstream(Conversion):
    """Hand the module, which may hold upstream dialects only, to upstream's MLIR."""

    name = "to-upstream"
    takes = "xdsl"
    gives = "upstream"

    def convert(self, ctx: CompileContext, module: ModuleOp) -> Any:
        from fewbit.ir.bindings import to_mlir

        return to_mlir(module, self.name)
