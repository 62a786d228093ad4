"""Operands by their SSA value, so that semantics read as the ops are defined.

given = Operands(op, operands)
given[op.input], given.get(op.bias)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute, Operation, SSAValue

from fewbit.dialects.mico import element_width
from fewbit.interpreter.values import Value, dtype_of
from fewbit.numerics import Quantized


class Operands:
    def __init__(self, op: Operation, operands: Sequence[Value]) -> None:
        self._values = dict(zip(op.operands, operands, strict=True))

    def __getitem__(self, value: SSAValue) -> Value:
        return self._values[value]

    def get(self, value: SSAValue | None) -> Value | None:
        return None if value is None else self._values[value]

    def tensor(
        self,
        values: SSAValue,
        scale: SSAValue | None,
        zero_point: SSAValue | None,
        offset: SSAValue | None = None,
    ) -> Value | Quantized:
        """Return a float tensor as it is, and integers with their scales and their like."""
        width = element_width(values.type)
        if width is None:
            return self[values]
        scales = np.asarray(1 if scale is None else self[scale], np.float32)
        zero = self.get(zero_point)
        if zero is not None:
            zero = np.broadcast_to(zero.astype(np.int32), scales.shape)
        return Quantized(self[values], scales, zero, width, self.get(offset))


def as_type(value: npt.ArrayLike, type: Attribute) -> Value:
    """Convert a result to the type that the op declares: arithmetic is in float32 or wider."""
    return np.asarray(value).astype(dtype_of(type), copy=False)
