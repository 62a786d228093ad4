"""Tensors that are other tensors' elements in another order: no copy is needed to read them.

Between a projection and attention there are reshapes, transposes and slices. A kernel that takes
strides reads through them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from xdsl.dialects import tensor
from xdsl.ir import Operation, SSAValue

from fewbit.dialects import mico
from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.dialects.mico.syntax import ints
from fewbit.dialects.traits import MovesData
from fewbit.targets.cuda.layer import View
from fewbit.targets.cuda.memory import row_major

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Seen:
    """A tensor as part of the one that is in memory."""

    base: SSAValue
    view: View

    def is_whole(self, shape: tuple[int, ...]) -> bool:
        """Return whether it is all elements of the other, in their order."""
        count = int(np.prod(mico.shape_of(self.base.type)))
        return self.view == View(0, row_major(shape)) and int(np.prod(shape)) == count


def seen_through(value: SSAValue) -> Seen:
    """Return the first tensor that must be in memory, and where this one is in it."""
    base, chain = value, list[Operation]()
    while (op := _moved_by(base)) is not None:
        chain.append(op)
        base = op.operands[0]
    while chain:
        try:
            array = _array(mico.shape_of(base.type))
            start = array.__array_interface__["data"][0]
            for op in reversed(chain):
                array = _apply(op, array)
        except ValueError:  # a reshape that moves elements
            base = chain.pop().results[0]
            continue
        return Seen(base, View(array.__array_interface__["data"][0] - start, array.strides))
    return Seen(value, View(0, row_major(mico.shape_of(value.type))))


def _array(shape: tuple[int, ...]) -> Array:
    """Return an array nothing reads: numpy knows how to slice, transpose and reshape strides."""
    return as_strided(np.empty(1, np.int8), shape, row_major(shape))


def _moved_by(value: SSAValue) -> Operation | None:
    """Return the op that gives the elements of its first operand in another order."""
    op = value.owner
    if not isinstance(op, VIEWS) and not MovesData.holds(op):
        return None
    if len(op.operands) != 1:
        return None
    known = (*mico.shape_of(value.type), *mico.shape_of(op.operands[0].type))
    return None if DYNAMIC in known else op


VIEWS = (tensor.ExtractSliceOp, tensor.CollapseShapeOp, tensor.ExpandShapeOp)
"""Upstream's ops that move data; ours have a trait."""


def _apply(op: Operation, array: Array) -> Array:
    shape = mico.shape_of(op.results[0].type)
    if isinstance(op, mico.TransposeOp):
        return array.transpose(ints(op.permutation))
    if isinstance(op, tensor.ExtractSliceOp):
        places = zip(
            op.static_offsets.get_values(),
            op.static_sizes.get_values(),
            op.static_strides.get_values(),
            strict=True,
        )
        array = array[tuple(slice(o, o + (n - 1) * s + 1, s) for o, n, s in places)]
    return array.reshape(shape, copy=False)
