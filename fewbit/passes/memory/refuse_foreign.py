"""Ops that the target cannot lower are refused before it begins, all of them at once."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fewbit.errors import UnsupportedError
from fewbit.ir.locations import place_of
from fewbit.pipeline.entry import functions_of

LOWERED = frozenset((
    "arith", "affine", "bufferization", "builtin", "cf", "complex", "func", "index", "linalg",
    "math", "memref", "mico", "scf", "tensor", "vector",
))  # fmt: skip


@dataclass(frozen=True)
class RefuseForeign(ModulePass):
    """Refuse ops of dialects that are not lowered."""

    name = "refuse-foreign"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op):
            refuse_foreign(function)


def refuse_foreign(entry: func.FuncOp) -> None:
    """Raise an error for ops of dialects that are not lowered."""
    foreign = [op for op in entry.walk() if op.name.partition(".")[0] not in LOWERED]
    if not foreign:
        return
    listed = dict.fromkeys(f"{op.name} ({place_of(op)})" for op in foreign)
    raise UnsupportedError(
        f"this target has no code for {', '.join(listed)}",
        hint="the interpreter may run it: program.run(...)",
    )
