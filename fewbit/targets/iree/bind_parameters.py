"""Constants of a program as parameters of an archive, which IREE reads by their keys."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fewbit.pipeline.context import compile_context
from fewbit.targets.iree.parameters import bind_parameters


@dataclass(frozen=True)
class BindParameters(ModulePass):
    """Turn constants into globals that an archive fills."""

    name = "bind-parameters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        known.put(bind_parameters(known.program(op)))
