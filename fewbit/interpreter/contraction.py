"""Contractions (sums of products) as batched matmuls.

Two factors over the same loops are contracted by one batched `matmul`: loops of both factors and
of the result are the batch, loops of one factor its rows or columns, and summed loops of both the
inner dimension. Convolutions arrive here with the window loops in the inner dimension. Integers
go through float64 where that is exact, and stay integers where it is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fewbit.interpreter.values import Value

EXACT_IN_FLOAT64 = 1 << 53


def contract(lhs: Value, rhs: Value, sizes: Sequence[int], summed: Sequence[int]) -> Value:
    """Sum lhs·rhs over the loops `summed`; float64 for float64 factors, int64 for int64 ones.

    The factors broadcast over the loops, whose sizes are `sizes`; so does the result, which has
    size 1 along the summed loops.
    """
    rank = len(sizes)
    lhs, rhs = (np.reshape(x, [1] * (rank - np.ndim(x)) + list(np.shape(x))) for x in (lhs, rhs))
    times = 1
    for loop in summed:
        if lhs.shape[loop] == 1 and rhs.shape[loop] == 1:
            times *= sizes[loop]
        elif rhs.shape[loop] == 1:
            lhs = lhs.sum(axis=loop, keepdims=True)
        elif lhs.shape[loop] == 1:
            rhs = rhs.sum(axis=loop, keepdims=True)
    product = _multiply(lhs, rhs, [loop for loop in summed if lhs.shape[loop] > 1])
    return product if times == 1 else product * product.dtype.type(times)


def _multiply(lhs: Value, rhs: Value, inner: list[int]) -> Value:
    outer = [loop for loop in range(lhs.ndim) if loop not in inner]
    batch = [loop for loop in outer if lhs.shape[loop] > 1 and rhs.shape[loop] > 1]
    rows = [loop for loop in outer if lhs.shape[loop] > 1 and loop not in batch]
    columns = [loop for loop in outer if rhs.shape[loop] > 1 and loop not in batch]
    left = _matrix(lhs, batch, rows, inner)
    right = _matrix(rhs, batch, inner, columns)
    order = [*batch, *rows, *columns]
    sizes = [max(lhs.shape[loop], rhs.shape[loop]) for loop in order]
    product = _matmul(left, right).reshape(sizes)
    shape = [1] * lhs.ndim
    for loop, size in zip(order, sizes, strict=True):
        shape[loop] = size
    return product.transpose(np.argsort(order).tolist()).reshape(shape)


def _matrix(factor: Value, *groups: list[int]) -> Value:
    """Return the factor with each group of loops as one dimension."""
    order = [loop for group in groups for loop in group]
    outer = [loop for loop in range(factor.ndim) if loop not in order]
    shape = [math.prod(factor.shape[loop] for loop in group) for group in groups]
    return factor.transpose([*outer, *order]).reshape(shape)


def _matmul(lhs: Value, rhs: Value) -> Value:
    if lhs.dtype.kind != "i":
        return np.matmul(lhs, rhs)
    if lhs.shape[-1] * _magnitude(lhs) * _magnitude(rhs) < EXACT_IN_FLOAT64:
        exact = np.matmul(lhs.astype(np.float64), rhs.astype(np.float64))
        return exact.astype(np.int64)
    return np.matmul(lhs, rhs)


def _magnitude(values: Value) -> int:
    return max(-int(values.min(initial=0)), int(values.max(initial=0)))
