"""What is asserted of shapes is checked before the entry runs, by the shape function."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import cf
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fewbit.pipeline.entry import functions_of


@dataclass(frozen=True)
class DropAsserts(ModulePass):
    """Remove assertions from the entry."""

    name = "drop-asserts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in [inner for function in functions_of(op) for inner in function.walk()]:
            if isinstance(each, cf.AssertOp):
                Rewriter.erase_op(each)
