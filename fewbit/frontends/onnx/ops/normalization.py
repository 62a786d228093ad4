"""Normalizations and softmax."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from fewbit.decompositions.wide_reductions import widen_to_f32
from fewbit.frontends.onnx.kinds import HELD
from fewbit.frontends.onnx.table import Call, op


def over_axis(call: Call, x: Tensor, run: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Along one axis; before version 13, over all from it on."""
    if call.version >= 13:
        return run(x, call.axis(x.ndim, -1)) if x.ndim else run(x.reshape(1), 0).reshape([])
    axis = call.axis(x.ndim, 1)
    if axis == x.ndim - 1:
        return run(x, axis)
    flat = x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:]))
    return run(flat, 1).reshape(x.shape)


@op("Softmax")
def softmax(call: Call, x: Tensor) -> Tensor:
    return over_axis(call, x, lambda y, axis: torch.softmax(y, axis))


@op("LogSoftmax")
def log_softmax(call: Call, x: Tensor) -> Tensor:
    return over_axis(call, x, lambda y, axis: torch.log_softmax(y, axis))


def _per_channel(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape([-1] + [1] * (x.ndim - 2))


@op("BatchNormalization")
def batch_norm(
    call: Call, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor
) -> Tensor | tuple[Tensor, ...]:
    eps = call.attr("epsilon", 1e-5)
    if call.attr("training_mode", 0):
        return _training_batch_norm(call, x, scale, bias, mean, var)
    if call.outputs() > 1:
        raise call.refusal("it is in training mode")
    parameters = [p.to(x.dtype) for p in (mean, var, scale, bias)]
    if call.attr("spatial", 1) == 0:
        mean, var, scale, bias = parameters
        return (x - mean) / torch.sqrt(var + eps) * scale + bias
    return F.batch_norm(x, *parameters, training=False, eps=eps)


def _training_batch_norm(
    call: Call, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor
) -> tuple[Tensor, ...]:
    axes = [i for i in range(x.ndim) if i != 1]
    eps, momentum = call.attr("epsilon", 1e-5), call.attr("momentum", 0.9)
    own_mean = torch.mean(x, axes)
    centered = x - _per_channel(own_mean, x)
    own_var = torch.mean(centered * centered, axes)
    y = centered / torch.sqrt(_per_channel(own_var, x) + eps)
    y = y * _per_channel(scale, x) + _per_channel(bias, x)
    running = [
        old * momentum + own * (1 - momentum) for old, own in ((mean, own_mean), (var, own_var))
    ]
    return y, *running


@op("InstanceNormalization")
def instance_norm(call: Call, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    axes = list(range(2, x.ndim))
    y = _standardize(widen_to_f32(x), axes, call.attr("epsilon", 1e-5))[0].to(x.dtype)
    return y * _per_channel(scale, x) + _per_channel(bias, x)


def _standardize(x: Tensor, axes: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    mean = torch.mean(x, axes, keepdim=True)
    centered = x - mean
    inverse = 1 / torch.sqrt(torch.mean(centered * centered, axes, keepdim=True) + eps)
    return centered * inverse, mean, inverse


@op("LayerNormalization")
def layer_norm(
    call: Call, x: Tensor, scale: Tensor, bias: Tensor | None = None
) -> Tensor | tuple[Tensor, ...]:
    axis, eps = call.axis(x.ndim, -1), call.attr("epsilon", 1e-5)
    shape = list(x.shape[axis:])
    whole = list(scale.shape) == shape and (bias is None or list(bias.shape) == shape)
    if call.outputs() == 1 and whole and x.dtype is torch.float32:
        return F.layer_norm(x, shape, scale, bias, eps)
    wide = x.to(HELD[call.attr("stash_type", 1)])
    y, mean, inverse = _standardize(wide, list(range(axis, x.ndim)), eps)
    y = y.to(x.dtype) * scale
    return (y if bias is None else y + bias), mean, inverse


@op("RMSNormalization")
def rms_norm(call: Call, x: Tensor, scale: Tensor) -> Tensor:
    axis, eps = call.axis(x.ndim, -1), call.attr("epsilon", 1e-5)
    shape = list(x.shape[axis:])
    if list(scale.shape) == shape and x.dtype is torch.float32:
        return F.rms_norm(x, shape, scale, eps)
    wide = x.to(HELD[call.attr("stash_type", 1)])
    mean = torch.mean(wide * wide, list(range(axis, x.ndim)), keepdim=True)
    return (wide / torch.sqrt(mean + eps)).to(x.dtype) * scale


@op("SimplifiedLayerNormalization")
def simplified_layer_norm(call: Call, x: Tensor, scale: Tensor) -> Tensor:
    return rms_norm(call, x, scale)


@op("GroupNormalization")
def group_norm(call: Call, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    groups, eps = call.attr("num_groups"), call.attr("epsilon", 1e-5)
    if list(scale.shape) == [x.shape[1]] and x.dtype is torch.float32:
        return F.group_norm(x, groups, scale, bias, eps)
    wide = x.to(HELD[call.attr("stash_type", 1)])
    parts = wide.reshape(x.shape[0], groups, -1)
    y = _standardize(parts, [2], eps)[0].reshape(x.shape).to(x.dtype)
    if scale.shape[0] != x.shape[1]:
        scale, bias = (p.repeat_interleave(x.shape[1] // groups) for p in (scale, bias))
    return y * _per_channel(scale, x) + _per_channel(bias, x)


@op("LpNormalization")
def lp_norm(call: Call, x: Tensor) -> Tensor:
    axis, p = call.attr("axis", -1), call.attr("p", 2)
    wide = widen_to_f32(x)
    size = torch.abs(wide) if p == 1 else wide * wide
    total = torch.sum(size, axis, keepdim=True)
    norm = total if p == 1 else torch.sqrt(total)
    return torch.where(norm == 0, torch.zeros_like(wide), wide / norm).to(x.dtype)


@op("LRN")
def local_response(call: Call, x: Tensor) -> Tensor:
    size, alpha = call.attr("size"), call.attr("alpha", 1e-4)
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    square = F.pad(x * x, [0, 0] * (x.ndim - 2) + [before, after])
    near = square.narrow(1, 0, x.shape[1])
    for i in range(1, size):
        near = near + square.narrow(1, i, x.shape[1])
    base = near * (alpha / size) + call.attr("bias", 1.0)
    return x / torch.pow(base, call.attr("beta", 0.75))


@op("MeanVarianceNormalization")
def mean_variance(call: Call, x: Tensor) -> Tensor:
    axes = call.attr("axes", [0, 2, 3])
    wide = widen_to_f32(x)
    mean = torch.mean(wide, axes, keepdim=True)
    square = torch.mean(wide * wide, axes, keepdim=True)
    return ((wide - mean) / (torch.sqrt(square - mean * mean) + 1e-9)).to(x.dtype)
