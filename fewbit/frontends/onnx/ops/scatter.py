"""Elements written by index.

Each is a `scatter` along one axis, with indices counted from the start; where the same place is
written twice, ONNX leaves open what it holds, unless the values are combined.
"""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from fewbit.frontends.onnx.ops.indexing import flat_index, index_from_start
from fewbit.frontends.onnx.table import Call, op

_REDUCE = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _scatter(x: Tensor, axis: int, index: Tensor, updates: Tensor, how: str) -> Tensor:
    if how == "none":
        return torch.scatter(x, axis, index, updates)
    return torch.scatter_reduce(x, axis, index, updates, _REDUCE[how], include_self=True)


@op("ScatterElements", "Scatter", any_sign=True)
def scatter_elements(call: Call, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    axis = call.axis(x.ndim, 0)
    index = index_from_start(call, 1, x.shape[axis], indices)
    return _scatter(x, axis, index, updates, call.attr("reduction", "none"))


@op("ScatterND", any_sign=True)
def scatter_nd(call: Call, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    depth = int(indices.shape[-1])
    outer, rest = list(x.shape[:depth]), list(x.shape[depth:])
    flat = flat_index(indices.to(torch.int64), outer).reshape([-1, 1]).expand(-1, prod(rest))
    table = x.reshape([prod(outer), prod(rest)])
    values = updates.reshape(flat.shape)
    result = _scatter(table, 0, flat, values, call.attr("reduction", "none"))
    return result.reshape(x.shape)


@op("TensorScatter", tensors=3, any_sign=True)
def tensor_scatter(
    call: Call, past: Tensor, update: Tensor, starts: Tensor | None = None
) -> Tensor:
    axis = call.axis(past.ndim, -2)
    length = update.shape[axis]
    places = torch.arange(length).reshape([-1 if i == axis else 1 for i in range(past.ndim)])
    if starts is not None:
        places = places + starts.reshape([-1] + [1] * (past.ndim - 1))
    if call.attr("mode", "linear") == "circular":
        size = past.shape[axis]
        places = places - torch.div(places, size, rounding_mode="floor") * size
    return torch.scatter(past, axis, places.to(torch.int64).expand(update.shape), update)
