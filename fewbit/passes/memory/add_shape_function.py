"""The function that computes the shapes of outputs, put beside the entry and lowered with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewbit.passes.memory.make_shape_function import ShapeFunction
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module


@dataclass(frozen=True)
class AddShapeFunction(BindingsPass):
    """Add the shape function to the module, where there is one."""

    name = "add-shape-function"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        shapes = ctx.find(ShapeFunction)
        if shapes is None:
            return
        for op in shapes.module.body.operations:
            module.body.append(op.operation.clone())
