"""Ops that move data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fewbit.dialects.mico import ConcatOp, FlattenOp, ReshapeOp, TransposeOp
from fewbit.dialects.mico.shapes import flatten as flattened
from fewbit.dialects.mico.shapes import reshape as reshaped
from fewbit.dialects.mico.syntax import ints
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import Value


@register(FlattenOp)
def flatten(frame: Frame, op: FlattenOp, operands: Sequence[Value]) -> Sequence[Value]:
    x = operands[0]
    return (x.reshape(flattened(x.shape, op.start_dim.value.data, op.end_dim.value.data)),)


@register(ReshapeOp)
def reshape(frame: Frame, op: ReshapeOp, operands: Sequence[Value]) -> Sequence[Value]:
    x = operands[0]
    return (x.reshape(reshaped(x.shape, ints(op.shape))),)


@register(TransposeOp)
def transpose(frame: Frame, op: TransposeOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (operands[0].transpose(ints(op.permutation)),)


@register(ConcatOp)
def concat(frame: Frame, op: ConcatOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (np.concatenate(operands, axis=op.dim.value.data),)
