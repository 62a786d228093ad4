"""A transpose on its way down, and how values go from one side of it to the other."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from fewbit.dialects import mico
from fewbit.dialects.mico.syntax import ints


class Transposed(NamedTuple):
    """A transposed value: its dimension i is dimension order[i] of the source."""

    source: SSAValue
    order: tuple[int, ...]

    @property
    def inverse(self) -> tuple[int, ...]:
        return tuple(self.order.index(d) for d in range(len(self.order)))

    def forward(self, value: SSAValue, type: Attribute) -> SSAValue:
        """Transpose a value from the layout of the source to the one that users expect."""
        return mico.TransposeOp.of(value, permutation=self.order, result_types=[type]).result

    def back(self, value: SSAValue) -> SSAValue:
        """Transpose a value from the layout that users expect to that of the source."""
        transposed = sinking(value)
        if transposed is not None and transposed.order == self.order:
            return transposed.source
        return mico.TransposeOp.of(value, permutation=self.inverse).result

    def type_back(self, type: Attribute) -> TensorType[Attribute]:
        shape = mico.shape_of(type)
        return TensorType(mico.element_type(type), [shape[d] for d in self.inverse])


def sinking(value: SSAValue) -> Transposed | None:
    """Return the transpose behind a value, if it is one that sinks: channels-last to -first."""
    op = value.owner
    if not isinstance(op, mico.TransposeOp):
        return None
    order, rank = ints(op.permutation), len(op.permutation)
    if rank < 3 or order != (0, rank - 1, *range(1, rank - 1)):
        return None
    return Transposed(op.input, order)
