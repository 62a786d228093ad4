"""The first convolution of a network as a spread image and a convolution of one column."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from fewbit.dialects import kernel, mico
from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.dialects.mico.syntax import ints
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.unfold import Unfold, refuse
from fewbit.passes.graph.changed_weights import is_constant
from fewbit.targets.cuda.layer import Precision

TO_LAST = (0, 2, 3, 1)


def unfold_of(op: kernel.Conv2dOp, precision: Precision) -> Unfold | None:
    """Return how a convolution on tensor cores, of an image with few channels, is spread."""
    if not op.is_float or precision == "f32" or DYNAMIC in mico.shape_of(op.x.type)[1:]:
        return None
    if image_of(op) is None or not _is_known(op.weight):
        return None
    _, height, width, channels = mico.shape_of(op.x.type)
    filters, _, kh, kw = mico.shape_of(op.weight.type)
    (top, _), (left, _) = op.padding_pairs
    (sh, sw), (dh, dw) = ints(op.stride), ints(op.dilation)
    groups = op.groups.value.data
    if channels % groups or filters % groups:
        return None
    how = ((sh, sw), (top, left), (dh, dw), groups, precision)
    problem = Convolution(1, height, width, channels, filters, kh, kw, *how)
    return Unfold(problem) if refuse(problem) is None else None


def image_of(op: kernel.Conv2dOp) -> SSAValue | None:
    """Return the image before it was transposed to channels-last."""
    turn = op.x.owner
    if not isinstance(turn, mico.TransposeOp) or ints(turn.permutation) != TO_LAST:
        return None
    image = turn.operands[0]
    return image if mico.element_type(image.type) == f32 else None


def _is_known(weight: SSAValue) -> bool:
    owner = weight.owner
    if isinstance(owner, mico.DequantizeOp):
        return all(is_constant(value) for value in owner.operands)
    return is_constant(weight)
