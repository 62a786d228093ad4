"""torch-mlir's tm_tensor dialect: prefix sums, indexed writes, sorting.

Each op computes in the order that it says: a scan along its dimension, a scatter update after
update, a sort that leaves equal elements in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from itertools import product

import numpy as np
from xdsl.ir import Region

from fewbit.dialects.upstream.tm_tensor import ScanOp, ScatterOp, SortOp, YieldOp
from fewbit.errors import InterpretError
from fewbit.interpreter.body import body_of, evaluate
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import Leave, register
from fewbit.interpreter.values import Value


@register(YieldOp)
def yield_(frame: Frame, op: YieldOp, operands: Sequence[Value]) -> Leave:
    return Leave(tuple(operands))


def _apply(frame: Frame, region: Region, arguments: Sequence[Value]) -> Value:
    """Apply a region of one result; to arrays if its body is elementwise."""
    body = body_of(frame, region.block)
    if not body.elementwise:
        raise InterpretError("control flow in the body of this op is not interpreted")
    scope = evaluate(frame, body, dict(zip(region.block.args, arguments, strict=True)))
    return scope[body.yielded[0]]


@register(ScanOp)
def scan(frame: Frame, op: ScanOp, operands: Sequence[Value]) -> Sequence[Value]:
    source, output, initial = operands
    axis = op.dimension.value.data
    inclusive = bool(op.inclusive.value.data)
    items = np.moveaxis(source, axis, 0)
    result = np.array(output)
    prefixes = np.moveaxis(result, axis, 0)
    total = initial
    for i in range(len(items)):
        if i == 0:
            prefixes[0] = items[0] if inclusive else initial
            continue
        item = items[i] if inclusive else items[i - 1]
        total = prefixes[i] = _apply(frame, op.region, (prefixes[i - 1], item))
    return result, np.array(total)


@register(ScatterOp)
def scatter(frame: Frame, op: ScatterOp, operands: Sequence[Value]) -> Sequence[Value]:
    updates, indices, original = operands
    dims = op.dimension_map.get_values()
    result = np.array(original)
    window = updates.shape[1:]
    for update, coordinates in zip(updates, indices, strict=True):
        start = [0] * result.ndim
        for dim, coordinate in zip(dims, coordinates, strict=True):
            start[dim] = int(coordinate)
        # An update may leave out leading dimensions of size 1 of its window.
        sizes = [1] * (result.ndim - len(window)) + list(window)
        if any(
            s < 0 or s + n > size for s, n, size in zip(start, sizes, result.shape, strict=True)
        ):
            raise InterpretError(f"writes at {start}, outside of a tensor of {list(result.shape)}")
        place = tuple(slice(s, s + n) for s, n in zip(start, sizes, strict=True))
        result[place] = _apply(frame, op.region, (update.reshape(sizes), result[place]))
    return (result,)


@register(SortOp)
def sort(frame: Frame, op: SortOp, operands: Sequence[Value]) -> Sequence[Value]:
    axis = op.dimension.value.data
    results = [np.moveaxis(np.array(operand), axis, -1) for operand in operands]
    for lane in product(*map(range, results[0].shape[:-1])):
        columns = [result[lane] for result in results]

        def stays(i: int, j: int, columns: Sequence[Value] = columns) -> bool:
            pairs = [column[k] for column in columns for k in (i, j)]
            return bool(_apply(frame, op.region, pairs))

        def compare(i: int, j: int) -> int:
            forwards, backwards = stays(i, j), stays(j, i)
            return 0 if forwards == backwards else -1 if forwards else 1

        order = sorted(range(results[0].shape[-1]), key=cmp_to_key(compare))
        for result, column in zip(results, columns, strict=True):
            result[lane] = column[order]
    return [np.moveaxis(result, -1, axis) for result in results]
