"""The affine dialect, as far as it works on index values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, cast

import numpy as np
from xdsl.dialects import affine
from xdsl.ir.affine import AffineMap

from fewbit.dialects.upstream.affine import MaxOp
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import Value


def _results(map: AffineMap, operands: Sequence[Value]) -> list[Value]:
    # An affine expression is made of +, *, // and %, which numpy's integers have as well.
    dims, symbols = operands[: map.num_dims], operands[map.num_dims :]
    values = cast(Sequence[Any], map.eval(cast(Any, dims), cast(Any, symbols)))
    return [np.asarray(value, np.int64)[()] for value in values]


@register(affine.ApplyOp, elementwise=True)
def apply(frame: Frame, op: affine.ApplyOp, operands: Sequence[Value]) -> Sequence[Value]:
    return _results(op.map.data, operands)


@register(affine.MinOp, elementwise=True)
def min_(frame: Frame, op: affine.MinOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (reduce(np.minimum, _results(op.map.data, operands)),)


@register(MaxOp, elementwise=True)
def max_(frame: Frame, op: MaxOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (reduce(np.maximum, _results(op.map.data, operands)),)
