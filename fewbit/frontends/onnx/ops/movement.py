"""Concatenation, splitting, transposition and other moves of elements."""

from __future__ import annotations

import torch
from torch import Tensor

from fewbit.frontends.onnx.table import Call, op
from fewbit.frontends.onnx.values import Known, Size


@op("Transpose", any_sign=True)
def transpose(call: Call, x: Tensor) -> Tensor | Known:
    order = call.attr("perm", list(reversed(range(x.ndim))))
    value = call.inputs[0]
    if not isinstance(value, Known) or value.integers is None:
        return x.permute(order)
    return Known(
        x.permute(order),
        value.kind,
        origin=value.origin or value.name,
        integers=value.integers.permute(order),
    )


@op("Concat", any_sign=True)
def concat(call: Call, *inputs: Tensor) -> Tensor:
    if len(inputs) == 1:
        return inputs[0]
    return torch.cat(list(inputs), call.attr("axis", 1))


@op("Split", tensors=1, any_sign=True)
def split(call: Call, x: Tensor) -> list[Tensor]:
    axis = call.axis(x.ndim, 0)
    lengths: list[Size] | None = None
    if call.version < 13:
        lengths = call.attr("split")
    elif call.has(1):
        lengths = call.whole(1)
    if lengths is None:
        count = int(call.attr("num_outputs") or len(call.node.outputs))
        size: Size = x.shape[axis]
        each = -(-size // count)
        lengths = [*[each] * (count - 1), size - each * (count - 1)]
    return [x.narrow(axis, sum(lengths[:i]), length) for i, length in enumerate(lengths)]


@op("DepthToSpace", any_sign=True)
def depth_to_space(call: Call, x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    b = call.attr("blocksize")
    if call.attr("mode", "DCR") == "DCR":
        x = x.reshape([n, b, b, c // (b * b), h, w]).permute(0, 3, 4, 1, 5, 2)
    else:
        x = x.reshape([n, c // (b * b), b, b, h, w]).permute(0, 1, 4, 2, 5, 3)
    return x.reshape([n, c // (b * b), h * b, w * b])


@op("SpaceToDepth", any_sign=True)
def space_to_depth(call: Call, x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    b = call.attr("blocksize")
    x = x.reshape([n, c, h // b, b, w // b, b])
    order = (0, 3, 5, 1, 2, 4) if call.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return x.permute(order).reshape([n, c * b * b, h // b, w // b])


@op("ReverseSequence", any_sign=True)
def reverse_sequence(call: Call, x: Tensor, lengths: Tensor) -> Tensor:
    batch, time = call.attr("batch_axis", 1), call.attr("time_axis", 0)
    moved = x.movedim((batch, time), (0, 1))
    places = torch.arange(moved.shape[1]).unsqueeze(0)
    length = lengths.reshape(-1, 1)
    source = torch.where(places < length, length - 1 - places, places)
    index = source.reshape(list(source.shape) + [1] * (moved.ndim - 2)).expand(moved.shape)
    return torch.gather(moved, 1, index).movedim((0, 1), (batch, time))


@op("Trilu", tensors=1, any_sign=True)
def triangle(call: Call, x: Tensor) -> Tensor:
    """The diagonal may be computed by the program: it only chooses what is kept."""
    rows = torch.arange(x.shape[-2]).unsqueeze(-1)
    columns = torch.arange(x.shape[-1]).unsqueeze(0)
    distance = columns - rows
    diagonal = call.tensor(1).reshape([1, 1]) if call.has(1) else torch.zeros_like(distance)
    kept = distance >= diagonal if call.attr("upper", 1) else distance <= diagonal
    return torch.where(kept, x, torch.zeros_like(x))


@op("Einsum")
def einsum(call: Call, *inputs: Tensor) -> Tensor:
    return torch.einsum(call.attr("equation").replace(" ", ""), *inputs)
