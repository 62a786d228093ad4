"""A program that was split between the accelerator and its host, as one again.

One memory serves both sides, so transfers are nothing; which layers were the host's is noted.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

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
        rejoin(op)
