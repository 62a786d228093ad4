"""Fourier transforms in a traced graph, as matmuls with tables of cosines and sines.

One axis at a time, on pairs of a real and an imaginary part. The tables are computed in f64 and
then rounded, so that the sums are what limits how exact the results are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, prod, sqrt
from typing import Any, TypeAlias, cast

import torch
from torch.fx import Node

from fewbit.decompositions.rebuild import Builder
from fewbit.decompositions.sizes import is_static

aten = torch.ops.aten

Pair: TypeAlias = tuple[Node, Node]
"""The real and the imaginary part."""


def transform_real(b: Builder, node: Node, pairs: dict[Node, Any]) -> Any:
    """The spectrum of real numbers; None where a length is dynamic."""
    x, axes, mode, onesided = cast("tuple[Node, list[int], int, bool]", node.args)
    lengths = _lengths(x, axes)
    if lengths is None:
        return None
    last = axes[-1]
    kept = lengths[last] // 2 + 1 if onesided else lengths[last]
    parts = _transform(b, (x, 0.0), last, lengths[last], kept, -1)
    for axis in axes[:-1]:
        parts = _transform(b, parts, axis, lengths[axis], lengths[axis], -1)
    return _scale(b, parts, _factor(mode, lengths.values()))


def transform_complex(b: Builder, node: Node, pairs: dict[Node, Any]) -> Any:
    """The spectrum of complex numbers, or back."""
    x, axes, mode, forward = cast("tuple[Node, list[int], int, bool]", node.args)
    lengths = _lengths(x, axes)
    if lengths is None:
        return None
    parts = pairs[x]
    for axis in axes:
        parts = _transform(b, parts, axis, lengths[axis], lengths[axis], -1 if forward else 1)
    return _scale(b, parts, _factor(mode, lengths.values()))


def transform_to_real(b: Builder, node: Node, pairs: dict[Node, Any]) -> Any:
    """Real numbers of a spectrum; of the last axis half is given, the other is its mirror image."""
    x, axes, mode, size = cast("tuple[Node, list[int], int, int]", node.args)
    lengths = _lengths(x, axes)
    if lengths is None or not is_static(size):
        return None
    last, size = axes[-1], int(size)
    lengths[last] = size
    parts = pairs[x]
    for axis in axes[:-1]:
        parts = _transform(b, parts, axis, lengths[axis], lengths[axis], 1)
    half = size // 2 + 1
    parts = tuple(b.call(aten.slice.Tensor, part, last, 0, half) for part in parts)
    twice = _mirror_counts(b, half, size, parts[0].meta["val"].dtype)
    cosines, sines = _tables(b, half, size, size, 1, parts[0].meta["val"].dtype)
    tables = [b.call(aten.mul.Tensor, table, twice) for table in (cosines, sines)]
    real = _along(b, parts[0], last, tables[0])
    imaginary = _along(b, parts[1], last, tables[1])
    result = b.call(aten.sub.Tensor, real, imaginary)
    return b.call(aten.mul.Tensor, result, _factor(mode, lengths.values()))


def _mirror_counts(b: Builder, half: int, size: int, dtype: torch.dtype) -> Node:
    """Return how often each line of half a spectrum counts, as a column."""
    places = b.call(aten.arange.start_step, 0, half, 1, dtype=torch.int64)
    is_single = b.call(aten.eq.Scalar, places, 0)
    if size % 2 == 0:
        is_single = b.call(
            aten.bitwise_or.Tensor, is_single, b.call(aten.eq.Scalar, places, half - 1)
        )
    single = b.call(aten._to_copy.default, is_single, dtype=dtype)
    twice = b.call(aten.add.Tensor, b.call(aten.mul.Tensor, single, -1.0), 2.0)
    return b.call(aten.unsqueeze.default, twice, 1)


def _lengths(x: Node, axes: Sequence[int]) -> dict[int, int] | None:
    shape = x.meta["val"].shape
    if not all(is_static(shape[axis]) for axis in axes):
        return None
    return {axis: int(shape[axis]) for axis in axes}


def _factor(mode: int, lengths: Any) -> float:
    """Return the factor of a transform: 1, one over the root of its length, or one over it."""
    count = prod(lengths)
    return (1.0, 1 / sqrt(count), 1 / count)[mode]


def _scale(b: Builder, parts: Any, factor: float) -> Any:
    if factor == 1.0:
        return parts
    return tuple(b.call(aten.mul.Tensor, part, factor) for part in parts)


def _transform(b: Builder, parts: Any, axis: int, length: int, kept: int, sign: int) -> Pair:
    """The first `kept` lines of the transform along an axis."""
    real, imaginary = parts
    cosines, sines = _tables(b, length, kept, length, sign, real.meta["val"].dtype)
    c_real, s_real = (_along(b, real, axis, table) for table in (cosines, sines))
    if not isinstance(imaginary, Node):
        return c_real, s_real
    c_imaginary, s_imaginary = (_along(b, imaginary, axis, t) for t in (cosines, sines))
    return (
        b.call(aten.sub.Tensor, c_real, s_imaginary),
        b.call(aten.add.Tensor, s_real, c_imaginary),
    )


def _tables(
    b: Builder, rows: int, columns: int, length: int, sign: int, dtype: torch.dtype
) -> Pair:
    """Cosines and signed sines of `2π·i·k / length`, in f64 and then rounded."""
    i, k = (
        b.call(aten.arange.start_step, 0, count, 1, dtype=torch.int64) for count in (rows, columns)
    )
    product = b.call(
        aten.mul.Tensor, b.call(aten.unsqueeze.default, i, 1), b.call(aten.unsqueeze.default, k, 0)
    )
    turns = b.call(aten.remainder.Scalar, product, length)
    wide = b.call(aten._to_copy.default, turns, dtype=torch.float64)
    angles = b.call(aten.mul.Tensor, wide, sign * 2 * pi / length)
    cosines, sines = (b.call(op, angles) for op in (aten.cos.default, aten.sin.default))
    return tuple(b.call(aten._to_copy.default, t, dtype=dtype) for t in (cosines, sines))  # pyright: ignore


def _along(b: Builder, x: Node, axis: int, table: Node) -> Node:
    """The matmul of a table with one axis of a tensor."""
    rank = x.meta["val"].ndim
    axis = axis % rank
    order = [i for i in range(rank) if i != axis] + [axis]
    moved = x if axis == rank - 1 else b.call(aten.permute.default, x, order)
    shape = [*_sizes(b, moved)[:-1], table.meta["val"].shape[1]]
    flat = b.call(aten.reshape.default, moved, [-1, moved.meta["val"].shape[-1]])
    result = b.call(aten.reshape.default, b.call(aten.mm.default, flat, table), shape)
    back = [order.index(i) for i in range(rank)]
    return result if axis == rank - 1 else b.call(aten.permute.default, result, back)


def _sizes(b: Builder, x: Node) -> list[Any]:
    """Return the sizes of a tensor, of which nodes compute those that are open."""
    shape = x.meta["val"].shape
    return [
        int(size) if is_static(size) else b.call(aten.sym_size.int, x, axis)
        for axis, size in enumerate(shape)
    ]
