"""Rotation, by `numerics/hadamard.py`."""

from __future__ import annotations

from collections.abc import Sequence

from fewbit.dialects.mico import HadamardOp
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.mico.operands import as_type
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import Value
from fewbit.numerics.hadamard import rotate


@register(HadamardOp)
def hadamard(frame: Frame, op: HadamardOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (as_type(rotate(operands[0], op.block.value.data), op.result.type),)
