"""Simpler forms of `mico` ops."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from fewbit.dialects.canonicalization.replacement import replace_where_valid
from fewbit.dialects.mico import (
    BundleOp,
    ConcatOp,
    FlattenOp,
    Relu6Op,
    ReluOp,
    ReshapeOp,
    TransposeOp,
    UnbundleOp,
)
from fewbit.dialects.mico.shapes import axis
from fewbit.dialects.mico.syntax import ints
from fewbit.dialects.mico.types import shape_of
from fewbit.dialects.traits import NeverNegative


class DropReluOfRelu(RewritePattern):
    """A relu of what is never negative changes nothing."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReluOp, rewriter: PatternRewriter, /) -> None:
        if op.input.type != op.result.type:
            return
        if NeverNegative.holds(op.input.owner):
            rewriter.replace(op, (), (op.input,))


class DropReluUnderRelu6(RewritePattern):
    """relu6(relu(x)) is relu6(x), and so is relu6(relu6(x))."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Relu6Op, rewriter: PatternRewriter, /) -> None:
        inner = op.input.owner
        if isinstance(inner, Relu6Op) and op.input.type == op.result.type:
            rewriter.replace(op, (), (op.input,))
        elif isinstance(inner, ReluOp):
            direct = Relu6Op.of(inner.input, result_types=[op.result.type])
            replace_where_valid(op, direct, rewriter)


class ComposeTransposes(RewritePattern):
    """A transpose of a transpose is one transpose; one that moves nothing is none."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter, /) -> None:
        order = ints(op.permutation)
        if order == tuple(range(len(order))) and op.input.type == op.result.type:
            rewriter.replace(op, (), (op.input,))
            return
        inner = op.input.owner
        if not isinstance(inner, TransposeOp):
            return
        inner_order = ints(inner.permutation)
        composed = [inner_order[d] for d in order]
        both = TransposeOp.of(inner.input, permutation=composed, result_types=[op.result.type])
        replace_where_valid(op, both, rewriter)


class ComposeReshapes(RewritePattern):
    """A reshape of a reshape goes there directly; one to the same shape is none."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp | FlattenOp, rewriter: PatternRewriter, /) -> None:
        shape = shape_of(op.result.type)
        is_static = min(shape, default=0) >= 0
        if op.input.type == op.result.type and (is_static or _flattens_nothing(op)):
            rewriter.replace(op, (), (op.input,))
            return
        inner = op.input.owner
        if not isinstance(inner, ReshapeOp | FlattenOp):
            return
        # In an attribute, 0 and -1 are not sizes but rules.
        if any(size <= 0 for size in shape):
            return
        direct = ReshapeOp.of(inner.input, shape=shape, result_types=[op.result.type])
        replace_where_valid(op, direct, rewriter)


def _flattens_nothing(op: ReshapeOp | FlattenOp) -> bool:
    if isinstance(op, ReshapeOp):
        return False
    rank = len(shape_of(op.input.type))
    start, end = op.start_dim.value.data, op.end_dim.value.data
    return axis(start, rank, "start_dim") == axis(end, rank, "end_dim")


class DropConcatOfOne(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConcatOp, rewriter: PatternRewriter, /) -> None:
        if len(op.inputs) == 1 and op.inputs[0].type == op.result.type:
            rewriter.replace(op, (), (op.inputs[0],))


class UnbundleBundle(RewritePattern):
    """The parts of a bundle are what it was made of."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: UnbundleOp, rewriter: PatternRewriter, /) -> None:
        bundle = op.input.owner
        if isinstance(bundle, BundleOp) and bundle.operand_types == op.result_types:
            rewriter.replace(op, (), tuple(bundle.operands))


PATTERNS: dict[type[Operation], tuple[RewritePattern, ...]] = {
    ReluOp: (DropReluOfRelu(),),
    Relu6Op: (DropReluUnderRelu6(),),
    TransposeOp: (ComposeTransposes(),),
    ReshapeOp: (ComposeReshapes(),),
    FlattenOp: (ComposeReshapes(),),
    ConcatOp: (DropConcatOfOne(),),
    UnbundleOp: (UnbundleBundle(),),
}
