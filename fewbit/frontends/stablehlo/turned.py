"""Ops that work in any order of dimensions, done in the order in which their tensors lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fewbit.frontends.stablehlo.constants import Constant
from fewbit.frontends.stablehlo.emit import Emitter, Turned
from fewbit.frontends.stablehlo.ops import Op, Value


def turned_island(
    emitter: Emitter, op: Op, order: Sequence[int], attributes: Mapping[str, str] | None = None
) -> Turned:
    """The island of an op whose tensors lie in `order`, with attributes that fit it.

    Operands of rank 0 stay as they are; all others have the rank of the result.
    """
    inverse = tuple(order.index(d) for d in range(len(order)))
    operands: list[Value] = []
    for operand in op.operands:
        if operand.tensor.rank == 0:
            operands.append(operand)
            continue
        made = Value(operand.tensor.turned(inverse))
        bound = emitter.bound(operand)
        if isinstance(bound, Constant):
            emitter.bind(made, bound.turned(inverse))
        else:
            emitter.bind(made, Turned.plain(emitter.value(operand, inverse), len(order)))
        operands.append(made)
    result = Value(op.result.tensor.turned(inverse))
    given = dict(op.attributes if attributes is None else attributes)
    turned = Op(op.name, operands, [result], given, [], op.source)
    return Turned(emitter.island(turned)[0].tensor, tuple(order))
