"""A program that was split between the accelerator and its host, as one again.

One memory serves both sides, so transfers are nothing; which layers were the host's is noted.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fewbit.dialects.mico import QuantizedLayerOp
from fewbit.ir.layers import layer_name
from fewbit.ir.locations import named_location
from fewbit.pipeline.context import compile_context
from fewbit.targets.gemmini.call_streams import OnHost
from fewbit.targets.partition import elsewhere, rejoin

DEVICE = "gemmini"
"""The accelerator's name in programs that are split."""


@dataclass(frozen=True)
class RejoinDevices(ModulePass):
    """Undo a partition, and note what was placed on the host."""

    name = "rejoin-devices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        compile_context(ctx).put(OnHost(elsewhere(op, DEVICE)))
        _name_layers(op)
        rejoin(op)


def _name_layers(module: ModuleOp) -> None:
    """Let locations have the names of layers, by which the host's are found once they are calls."""
    for op in module.walk():
        if isinstance(op, QuantizedLayerOp) and (name := layer_name(op)) is not None:
            op.location = named_location(name, op.location)
