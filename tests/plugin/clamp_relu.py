"""A pass outside the tree: relu becomes relu6, whose range a scale of few bits covers better."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.universe import Universe

from fewbit.dialects import mico
from fewbit.ir.rewrite import rewrite


@dataclass(frozen=True)
class ReluToRelu6(RewritePattern):
    """Replace a relu of floats; integers already have a range, which clamping would change."""

    min_rank: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: mico.ReluOp, rewriter: PatternRewriter, /) -> None:
        if not is_float(op.input.type) or len(mico.shape_of(op.input.type)) < self.min_rank:
            return
        rewriter.replace(op, mico.Relu6Op.of(op.input, result_types=[op.result.type]))


def is_float(type: Attribute) -> bool:
    return mico.element_width(type) is None


@dataclass(frozen=True)
class ClampRelu(ModulePass):
    """Replace relu of floats by relu6, on tensors of at least `min_rank` dimensions."""

    name = "clamp-relu"

    min_rank: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [ReluToRelu6(self.min_rank)])


UNIVERSE = Universe(all_passes={"clamp-relu": lambda: ClampRelu})
