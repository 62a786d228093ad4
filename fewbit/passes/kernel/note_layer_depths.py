"""What a profile must know of layers, noted while they are still ops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fewbit.passes.loops.count_cycles import LayerDepths, depths_of_layers
from fewbit.pipeline.context import compile_context


@dataclass(frozen=True)
class NoteLayerDepths(ModulePass):
    """Note the reduction depth of each layer: its MACs for an element of the output."""

    name = "note-layer-depths"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        compile_context(ctx).put(LayerDepths(depths_of_layers(op)))
