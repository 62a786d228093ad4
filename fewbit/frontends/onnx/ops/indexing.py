"""Elements taken by index, and slices.

Indices of ONNX may be negative, torch's may not, in ops that gather: they are counted from the end
first, by the program where they are computed by it.
"""

from __future__ import annotations

import math
from math import prod
from typing import Any

import torch
from torch import Tensor

from fewbit.decompositions.unique import Groups
from fewbit.frontends.onnx.kinds import HELD, INT64, is_float
from fewbit.frontends.onnx.table import Call, is_symbol, op
from fewbit.frontends.onnx.values import Size, Sizes, outside_trace

_FAR = 2**31 - 1
"""From here on, limits of a slice mean its end."""


def index_from_start(call: Call, index: int, size: Size, tensor: Tensor | None = None) -> Tensor:
    """Indices along an axis of this size, counted from its start."""
    known = call.items(index)
    tensor = call.tensor(index) if tensor is None else tensor
    tensor = tensor.to(torch.int64)
    if known is not None and min(known, default=0) >= 0:
        return tensor
    return torch.where(tensor < 0, tensor + size, tensor)


@op("Gather", tensors=1, any_sign=True)
def gather(call: Call, x: Tensor) -> Tensor:
    axis = call.axis(x.ndim, 0)
    known = call.known(1)
    if known is not None and known.ndim == 0 and not is_symbol(x.shape[axis]):
        return x.select(axis, call.whole(1)[0] % int(x.shape[axis]))
    if known is None and axis == 0 and x.ndim == 2 and x.dtype.is_floating_point:
        return torch.nn.functional.embedding(index_from_start(call, 1, x.shape[0]), x)
    indices = index_from_start(call, 1, x.shape[axis])
    taken = torch.index_select(x, axis, indices.reshape([-1]))
    return taken.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


@op("GatherElements", tensors=1, any_sign=True)
def gather_elements(call: Call, x: Tensor) -> Tensor:
    axis = call.axis(x.ndim, 0)
    return torch.gather(x, axis, index_from_start(call, 1, x.shape[axis]))


def flat_index(indices: Tensor, shape: list[Any]) -> Tensor:
    """Tuples of indices along the last axis as one index into a tensor of this shape."""
    parts = [indices.select(-1, i) for i in range(indices.shape[-1])]
    parts = [torch.where(p < 0, p + size, p) for p, size in zip(parts, shape, strict=False)]
    flat = torch.zeros_like(parts[0])
    for part, size in zip(parts, shape, strict=False):
        flat = flat * size + part
    return flat


@op("GatherND", tensors=2, any_sign=True)
def gather_nd(call: Call, x: Tensor, indices: Tensor) -> Tensor:
    batch = call.attr("batch_dims", 0)
    depth = int(indices.shape[-1])
    outer = list(x.shape[:batch])
    indexed, rest = list(x.shape[batch : batch + depth]), list(x.shape[batch + depth :])
    flat = flat_index(indices.to(torch.int64), indexed)
    result = [*flat.shape, *rest]
    table = x.reshape([prod(outer), prod(indexed), prod(rest)])
    flat = flat.reshape([prod(outer), -1])
    index = flat.unsqueeze(-1).expand([*flat.shape, prod(rest)])
    return torch.gather(table, 1, index).reshape(result)


@op("Slice", tensors=1, any_sign=True)
def slices(call: Call, x: Tensor) -> Tensor:
    if call.version < 10:
        starts, ends = call.attr("starts"), call.attr("ends")
        axes, steps = call.attr("axes", list(range(len(starts)))), [1] * len(starts)
    else:
        starts, ends = call.ints(1), call.ints(2)
        axes = call.whole(3) if call.has(3) else list(range(len(starts)))
        steps = call.whole(4) if call.has(4) else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        x = _slice(x, axis % x.ndim, start, end, step)
    return x


def _slice(x: Tensor, axis: int, start: Size, end: Size, step: int) -> Tensor:
    size = x.shape[axis]
    if step > 0:
        whole = [slice(None)] * x.ndim
        last = None if isinstance(end, int) and end >= _FAR else end
        whole[axis] = slice(None if isinstance(start, int) and start == 0 else start, last, step)
        return x[tuple(whole)]
    picked = range(int(size))[slice(start, end if end >= -size else None, step)]
    if not picked:
        return x.narrow(axis, 0, 0)
    whole = [slice(None)] * x.ndim
    whole[axis] = slice(picked[-1], picked[0] + 1, -step)
    return torch.flip(x[tuple(whole)], [axis])


@op("Compress", tensors=1, any_sign=True)
def compress(call: Call, x: Tensor) -> Tensor:
    axis = call.attr("axis")
    x, axis = (x.reshape([-1]), 0) if axis is None else (x, axis)
    if call.known(1) is None:
        return torch.index_select(x, axis, torch.nonzero(call.tensor(1)).select(1, 0))
    chosen = [i for i, keep in enumerate(call.whole(1)) if keep]
    with outside_trace():
        places = torch.tensor(chosen, dtype=torch.int64)
    return torch.index_select(x, axis, call.constant(places, "chosen"))


@op("NonZero", gives=INT64)
def nonzero(call: Call, x: Tensor) -> Tensor:
    """Return where the elements are that are not 0; a run tells how many."""
    return torch.nonzero(x).T.contiguous()


@op("Unique", tensors=1, any_sign=True)
def unique(call: Call, x: Tensor) -> object:
    """Distinct elements, by value or by where each was first, and where and how often they are."""
    if call.attr("axis") is not None and x.ndim != 1:
        raise call.refusal("slices along an axis are not compared, only elements")
    flat = x.reshape([-1])
    groups = Groups.of(flat)
    first = groups.order.index_select(0, groups.begin_places)
    inverse, counts = groups.inverse, groups.counts
    if call.attr("sorted", 1) == 0:
        # Groups get new numbers, in the order of their first elements.
        is_first = torch.zeros_like(flat, dtype=torch.int64).scatter(0, first, 1)
        numbers = (is_first.cumsum(0) - 1).index_select(0, first)
        inverse = numbers.index_select(0, inverse)
        first = torch.nonzero(is_first).select(1, 0)
        counts = torch.zeros_like(inverse).scatter_add(0, inverse, torch.ones_like(inverse))
    results = [(flat.index_select(0, first), call.kind(0)), (first, INT64), (inverse, INT64)]
    results.append((counts.narrow(0, 0, first.shape[0]), INT64))
    return [call.result(*each) for each in results[: call.outputs()]]


@op("OneHot", tensors=0)
def one_hot(call: Call) -> object:
    depth = call.whole(1)[0] if call.kind(1) in (*range(2, 8), 12, 13) else int(call.numbers(1)[0])
    indices, values = call.tensor(0), call.tensor(2)
    indices = indices.to(torch.int64)
    rank = indices.ndim + 1
    axis = call.axis(rank, -1)
    positions = torch.where(indices < 0, indices + depth, indices).unsqueeze(axis)
    places = torch.arange(depth).reshape([-1 if i == axis else 1 for i in range(rank)])
    off, on = values.select(0, 0), values.select(0, 1)
    result = torch.where(positions == places, on, off)
    return call.result(result, call.kind(2))


@op("EyeLike", tensors=0)
def eye_like(call: Call) -> object:
    rows, columns = call.shape(0)
    kind = call.attr("dtype", call.kind(0))
    places = torch.arange(columns).unsqueeze(0) - torch.arange(rows).unsqueeze(1)
    result = (places == call.attr("k", 0)).to(HELD[kind])
    return call.result(result, kind)


@op("Range", tensors=0)
def numbers(call: Call) -> object:
    kind = call.kind(0)
    held = HELD[kind]
    is_whole = not is_float(kind) or any(isinstance(value, Sizes) for value in call.inputs)
    known = (item for i in range(3) for item in call.items(i) or ())
    if is_whole and not all(float(item).is_integer() for item in known):
        raise call.refusal("it has fractions beside a dynamic size")
    start, limit, delta = ((call.ints if is_whole else call.numbers)(i)[0] for i in range(3))
    if isinstance(start, float):
        count = max(0, math.ceil((limit - start) / delta))
        result = (torch.arange(count, dtype=torch.float64) * delta + start).to(held)
    else:
        result = torch.arange(start, limit, delta, dtype=held)
    return call.result(result, kind)
