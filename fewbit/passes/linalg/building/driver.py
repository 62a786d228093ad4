"""Applies lowerings: a table from op classes to the functions that lower them.

A class that is not in the table is lowered as its nearest base class is, so one row serves a family
of ops, and those that join it later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.builder import ImplicitBuilder
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from fewbit.ir.rewrite import rewrite

Lowering: TypeAlias = Callable[[Any], Sequence[SSAValue] | None]
"""The values in place of an op's results; None leaves the op as it is, and emits nothing."""

LoweringTable: TypeAlias = Mapping[type[Operation], Lowering]


def lower_ops(module: ModuleOp, table: LoweringTable) -> None:
    """Replace every op of the classes in `table`; new ops are located where the old ones were."""
    rewrite(module, [LowerOp(table)])


@dataclass(frozen=True)
class LowerOp(RewritePattern):
    table: LoweringTable

    def may_match(self, kind: type[Operation]) -> bool:
        return _nearest(self.table, kind) is not None

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        lower = _nearest(self.table, type(op))
        if lower is None:
            return
        block = Block()
        with ImplicitBuilder(block):
            values = lower(op)
        if values is None:
            return
        emitted = list(block.ops)
        for new in emitted:
            new.detach()
        rewriter.replace(op, emitted, values)


def _nearest(table: LoweringTable, kind: type[Operation]) -> Lowering | None:
    return next((table[base] for base in kind.__mro__ if base in table), None)
