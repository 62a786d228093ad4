"""Simpler forms of `graph` ops."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from fewbit.dialects.canonicalization.replacement import replace_where_valid
from fewbit.dialects.graph import TransferOp


class ShortenTransfer(RewritePattern):
    """a → b → c is a → c, and a → b → a nothing."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransferOp, rewriter: PatternRewriter, /) -> None:
        first = op.source.owner
        if not isinstance(first, TransferOp) or first.to_device != op.from_device:
            return
        if first.from_device == op.to_device:
            rewriter.replace(op, (), (first.source,))
            return
        direct = TransferOp(first.source, first.from_device.data, op.to_device.data)
        replace_where_valid(op, direct, rewriter)


PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {TransferOp: (ShortenTransfer(),)}
