"""A pass outside the tree on upstream's bindings: functions of a program are not inlined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module


@dataclass(frozen=True)
class KeepCalls(BindingsPass):
    """Forbid inlining of functions, so that a profiler shows each."""

    name = "keep-calls"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        from torch_mlir import ir

        with module.context:
            for op in module.body.operations:
                if op.operation.name == "func.func":
                    op.attributes["no_inline"] = ir.UnitAttr.get()


PASSES = {"keep-calls": lambda: KeepCalls}
