"""Flatten channels-last images as they lie, and put the columns of the next weight in that order.

`propagate-layout` leaves one transpose in front of a classifier: the image is flattened with its
channels first, because that is the order of the weight's columns. They are moved once, here, in
place of the image at each run. Between the two may stand what treats all features of a row alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.transforms.dead_code_elimination import dce

from fewbit.dialects import kernel, mico
from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.dialects.traits import TreatsFeaturesAlike
from fewbit.ir.symbols import using
from fewbit.passes.graph.changed_weights import ChangedWeights, is_constant
from fewbit.passes.kernel.layout.transposed import sinking
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program


@dataclass(frozen=True)
class FoldFlatten(ModulePass):
    """Drop the transposes between an image and a linear layer."""

    name = "fold-flatten"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fold_flatten(compile_context(ctx).program(op))


def fold_flatten(program: Program) -> None:
    """Drop the transposes between an image and a linear layer, in place."""
    weights = ChangedWeights(program)
    with using(weights.symbols):
        for op in list(program.module.walk()):
            # Groups that have scales are of neighbours, so their columns stay where they are.
            if isinstance(op, kernel.MatmulOp) and is_constant(op.weight) and not op.scale_groups:
                _fold(op, weights)
        dce(program.module)
        weights.sweep()


def _fold(op: kernel.MatmulOp, weights: ChangedWeights) -> None:
    flatten = _flatten_behind(op.x)
    transposed = None if flatten is None else sinking(flatten.input)
    if flatten is None or transposed is None:
        return
    rows, *image = mico.shape_of(flatten.input.type)
    if DYNAMIC in image or mico.shape_of(flatten.result.type) != (rows, prod(image)):
        return
    direct = mico.ReshapeOp.of(
        transposed.source, shape=(0, prod(image)), result_types=[flatten.result.type]
    )
    direct.location = flatten.location
    Rewriter.replace_op(flatten, direct)
    columns = weights.read(op.weight)
    as_images = columns.reshape(-1, *image).transpose(transposed.inverse)
    op.operands[1] = weights.change(op.weight, as_images.reshape(columns.shape), op)


def _flatten_behind(value: SSAValue) -> mico.ReshapeOp | mico.FlattenOp | None:
    """Return the reshape behind ops that treat features alike, each with one reader."""
    while value.has_one_use():
        op = value.owner
        if isinstance(op, mico.ReshapeOp | mico.FlattenOp):
            return op
        if not TreatsFeaturesAlike.holds(op) or len(mico.shape_of(value.type)) != 2:
            return None
        value = op.operands[0]
    return None
