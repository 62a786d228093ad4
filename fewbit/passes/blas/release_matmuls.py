"""The users that kept matmuls whole while loops were fused, removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewbit.ir.bindings import mlir_context, walk
from fewbit.passes.blas.name_matmuls import USER
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module


@dataclass(frozen=True)
class ReleaseMatmuls(BindingsPass):
    """Remove what `name-matmuls` added to keep matmuls whole."""

    name = "release-matmuls"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        with mlir_context():
            for op in list(walk(module)):
                if op.operation.name == USER:
                    op.operation.erase()
