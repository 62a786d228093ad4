"""Loop nests stay functions, and LLVM is told what it cannot see of them.

Arguments of most do not overlap: they are parts of one arena, of which that does not follow. LLVM
is shy of long vectors, since they once slowed processors down, so it is told how long those of the
kernels are. Copies stay loops: memory that threads hand on is not given to libc, whose calls tools
such as thread sanitizers watch without seeing our barriers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewbit.ir.bindings import mlir_context
from fewbit.passes.loops.outline_loops import outlined_of
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass
from fewbit.toolchain.isa import Isa

if TYPE_CHECKING:
    from torch_mlir.ir import Module


@dataclass(frozen=True)
class MarkLoops(BindingsPass):
    """Give functions that hold loop nests attributes of LLVM."""

    name = "mark-loops"

    vector_bits: int = 0
    """How long vectors are; 0 for those of the target's kernels."""

    def apply(self, ctx: CompileContext, module: Module) -> None:
        mark_loops(module, self.vector_bits or 32 * ctx.get(Isa).lanes)


def mark_loops(module: Module, vector_bits: int) -> None:
    """Mark the functions of the llvm dialect that are loop nests, in place."""
    from torch_mlir import ir

    with mlir_context():
        nests = {nest.name: nest for nest in outlined_of(module)}
        width = ir.ArrayAttr.get(
            [ir.StringAttr.get("prefer-vector-width"), ir.StringAttr.get(str(vector_bits))]
        )
        names = [ir.StringAttr.get(name) for name in ("noinline", "no-builtins")]
        marks = ir.ArrayAttr.get([*names, width])
        for function in module.body.operations:
            attributes = function.operation.attributes
            if function.operation.name != "llvm.func":
                continue
            nest = nests.get(ir.StringAttr(attributes["sym_name"]).value)
            if nest is None:
                continue
            attributes["passthrough"] = marks
            if not nest.overlaps:
                attributes["arg_attrs"] = _noalias_arguments(function)


def _noalias_arguments(function: Any) -> Any:
    """Return argument attributes that mark pointers `noalias`."""
    from torch_mlir import ir

    pointer = ir.Type.parse("!llvm.ptr")
    noalias = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
    none = ir.DictAttr.get({})
    arguments = function.operation.regions[0].blocks[0].arguments
    return ir.ArrayAttr.get([noalias if a.type == pointer else none for a in arguments])
