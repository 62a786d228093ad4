"""Ops that work in any order of dimensions, applied to transposed tensors as they are.

A transpose before the op then cancels against one behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fewbit.frontends.stablehlo.constants import Constant
from fewbit.frontends.stablehlo.emit import Emitter, Transposed
from fewbit.frontends.stablehlo.ops import Op, Value


def transposed_island(
    emitter: Emitter, op: Op, order: Sequence[int], attributes: Mapping[str, str] | None = None
) -> Transposed:
    """The island of an op whose tensors are transposed by `order`, with attributes that fit it.

    Operands of rank 0 stay as they are; all others have the rank of the result.
    """
    inverse = tuple(order.index(d) for d in range(len(order)))
    operands: list[Value] = []
    for operand in op.operands:
        if operand.tensor.rank == 0:
            operands.append(operand)
            continue
        value = Value(operand.tensor.transpose(inverse))
        bound = emitter.bound(operand)
        if isinstance(bound, Constant):
            emitter.bind(value, bound.transpose(inverse))
        else:
            emitter.bind(value, Transposed.plain(emitter.value(operand, inverse), len(order)))
        operands.append(value)
    result = Value(op.result.tensor.transpose(inverse))
    given = dict(op.attributes if attributes is None else attributes)
    transposed = Op(op.name, operands, [result], given, [], op.source)
    return Transposed(emitter.island(transposed)[0].tensor, tuple(order))
