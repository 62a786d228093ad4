# pyright: basic
"""Functions of PyTorch that random modules consist of: of elements, of two tensors, of places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fewbit.base.typed_torch import from_numpy

Function = Callable[..., Any]


def whole(x: Tensor) -> Tensor:
    """Return whole numbers: floats that are none, or too large, have no defined ones."""
    return x.nan_to_num(0, 9, -9).clamp(-99, 99).long() if x.is_floating_point() else x.long()


UNARY: tuple[Function, ...] = (
    torch.relu, torch.sigmoid, torch.tanh, torch.exp, torch.abs, torch.neg, torch.sin, torch.cos,
    torch.erf, torch.floor, torch.round, torch.sign, torch.square, torch.atan, F.gelu, F.silu,
    F.softplus, F.hardswish, F.elu, F.leaky_relu, F.mish, F.relu6, F.logsigmoid, torch.expm1,
    lambda x: torch.sqrt(x.abs() + 0.5), lambda x: torch.log1p(x.abs()),
    lambda x: torch.rsqrt(x.abs() + 0.5), lambda x: torch.clamp(x, -0.7, 0.9),
    lambda x: torch.where(x > 0.1, x, -x), lambda x: x.masked_fill(x > 0, 0.5),
    lambda x: torch.remainder(x, 0.75), lambda x: torch.fmod(x, 0.75), lambda x: x.pow(3),
    lambda x: (x > 0).float(), lambda x: torch.nan_to_num(x), lambda x: x.to(torch.float16).float(),
    torch.ceil, torch.trunc, torch.frac, torch.sinh, torch.asinh, torch.isnan, torch.logical_not,
    F.softsign, F.hardsigmoid, F.hardtanh, F.selu, F.celu, F.tanhshrink, torch.exp2,
    lambda x: F.gelu(x, approximate="tanh"), lambda x: F.threshold(x, 0.1, 0.2),
    lambda x: F.hardshrink(x), lambda x: F.softshrink(x), lambda x: torch.log(x),
    lambda x: torch.sqrt(x), lambda x: torch.reciprocal(x), lambda x: x > 0.3, lambda x: x <= 0,
    lambda x: x != 1, lambda x: x.bool(), lambda x: x.float(), lambda x: ~x, lambda x: x & 1,
    lambda x: x // 2, lambda x: x % 3, lambda x: x << 1, lambda x: whole(x).to(torch.int32),
    lambda x: x.double().sin().float(), lambda x: x.bfloat16().float(), lambda x: 2 - x,
    lambda x: 1 / (x.abs() + 1), lambda x: 2**x, lambda x: torch.zeros_like(x) + x,
    lambda x: torch.full_like(x, 2) * x, lambda x: x.new_ones(x.shape) - x, lambda x: torch.sinc(x),
    lambda x: F.glu(x), lambda x: torch.special.erfinv(x.tanh() / 2), lambda x: torch.sgn(x),
)  # fmt: skip
BINARY: tuple[Function, ...] = (
    torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, lambda x, y: x / (y.abs() + 0.5),
    lambda x, y: torch.lerp(x, y, 0.25), lambda x, y: torch.cat([x, y], -1),
    lambda x, y: torch.stack([x, y], 0), lambda x, y: torch.addcmul(x, x, y, value=0.5),
    lambda x, y: torch.atan2(x, y.abs() + 0.5), lambda x, y: torch.matmul(x, y.transpose(-1, -2)),
    lambda x, y: torch.einsum("...i,...i->...", x, y), lambda x, y: torch.hypot(x, y),
    lambda x, y: x + y.mean(0, keepdim=True), lambda x, y: x * y.amax(-1, keepdim=True),
    lambda x, y: x - y.flatten()[0], lambda x, y: torch.outer(x.flatten(), y.flatten()),
    lambda x, y: torch.where(y > 0, x, y), lambda x, y: torch.where(y, x, 0.5),
    lambda x, y: torch.cat([x, y], 0), lambda x, y: torch.bmm(x, y.transpose(1, 2)),
    lambda x, y: x == y, lambda x, y: x < y, lambda x, y: torch.logical_and(x, y),
    lambda x, y: x | y, lambda x, y: torch.logical_xor(x, y), lambda x, y: torch.cdist(x, y),
    lambda x, y: torch.tensordot(x, y, dims=1), lambda x, y: x.masked_fill(y > 0.5, -1),
    lambda x, y: x.index_select(0, whole(y).flatten() % x.shape[0]), lambda x, y: x[whole(y) % x.shape[0]],
    lambda x, y: F.one_hot(whole(y) % 4, 4) + x.sum(), lambda x, y: F.cosine_similarity(x, y, dim=-1),
    lambda x, y: torch.gather(x, -1, whole(y) % x.shape[-1]), lambda x, y: torch.copysign(x, y),
    lambda x, y: F.scaled_dot_product_attention(x, y, y, is_causal=True),
    lambda x, y: F.scaled_dot_product_attention(x, x, x, attn_mask=y @ y.transpose(-1, -2)),
    lambda x, y: torch.baddbmm(x, x, y), lambda x, y: torch.dot(x.flatten(), y.flatten()),
    lambda x, y: x.scatter_add(0, whole(y) % x.shape[0], x), lambda x, y: torch.xlogy(x, y.abs()),
    lambda x, y: torch.heaviside(x, y), lambda x, y: torch.floor_divide(x, y.abs() + 1),
)  # fmt: skip


def movements(rng: np.random.Generator, x: Tensor) -> list[Function]:
    """Return functions that move or reduce elements along a dimension."""
    dim, other = (int(rng.integers(max(x.dim(), 1))) for _ in range(2))
    size = x.shape[dim] if x.dim() else 1
    first, count = int(rng.integers(size)), int(rng.integers(1, size + 1))
    pads = [int(n) for n in rng.integers(0, 2, 2)]
    many = (
        [int(n) - x.dim() for n in rng.permutation(x.dim())[: int(rng.integers(1, x.dim() + 1))]]
        if x.dim()
        else []
    )
    order: list[int] = rng.permutation(x.dim()).tolist()
    keep = bool(rng.integers(2))
    return [
        lambda v: v.sum(dim), lambda v: v.mean(dim, keepdim=True), lambda v: v.amax(dim),
        lambda v: v.var(dim, unbiased=False), lambda v: v.prod(dim), lambda v: v.logsumexp(dim),
        lambda v: torch.softmax(v, dim), lambda v: torch.log_softmax(v, dim),
        lambda v: torch.cumsum(v, dim), lambda v: torch.flip(v, [dim]), lambda v: v.norm(dim=dim),
        lambda v: torch.roll(v, 1, dim), lambda v: v.transpose(dim, other).contiguous(),
        lambda v: v.unsqueeze(dim), lambda v: v.squeeze(dim), lambda v: v.flatten(dim),
        lambda v: v.narrow(dim, first, size - first), lambda v: v[..., ::2],
        lambda v: F.pad(v, pads), lambda v: F.pad(v, pads, mode="reflect"),
        lambda v: v.repeat_interleave(2, dim), lambda v: torch.tril(v), lambda v: torch.diff(v, dim=dim),
        lambda v: v.unfold(dim, min(2, size), 1), lambda v: v.expand(2, *v.shape).clone(),
        lambda v: F.normalize(v, dim=dim), lambda v: v.chunk(2, dim)[-1],
        lambda v: F.interpolate(v, scale_factor=2), lambda v: F.adaptive_avg_pool2d(v, 3),
        lambda v: F.scaled_dot_product_attention(v, v, v),
        lambda v: v.sum(many, keepdim=keep), lambda v: v.mean(many, keepdim=keep),
        lambda v: v.amin(many, keepdim=keep), lambda v: v.std(many, keepdim=keep),
        lambda v: v.logsumexp(many), lambda v: v.norm(p=1, dim=many), lambda v: v.sum(),
        lambda v: v.any(dim), lambda v: v.all(dim, keepdim=True), lambda v: v.max(dim)[1],
        lambda v: v.permute(order), lambda v: v.permute(order).reshape(-1, size),
        lambda v: v.reshape(*v.shape[:dim], -1), lambda v: v.unflatten(dim, (-1, 2)),
        lambda v: v.cumprod(dim), lambda v: v.cummax(dim)[0], lambda v: v.logcumsumexp(dim),
        lambda v: v.triu(1), lambda v: v.diagonal(0, -2, -1), lambda v: torch.diag_embed(v),
        lambda v: v.rot90(1, (-2, -1)), lambda v: v.movedim(dim, other), lambda v: v.split(count, dim)[0],
        lambda v: torch.stack(v.unbind(dim), -1), lambda v: v.roll((1, 2), (dim, other)),
        lambda v: v.repeat(2, *[1] * (v.dim() - 1)), lambda v: v.tile(2), lambda v: v.swapaxes(0, -1),
        lambda v: F.pad(v, (1, 2), mode="replicate"), lambda v: F.pad(v, (1, 1), mode="circular"),
        lambda v: F.pad(v, (1, -1, 0, 2), value=2), lambda v: v.aminmax(dim=dim)[1],
        lambda v: F.interpolate(v, scale_factor=1.5, mode="bilinear"),
        lambda v: F.interpolate(v, size=(5, 3), mode="bicubic", align_corners=True),
        lambda v: F.interpolate(v, size=3, mode="linear"), lambda v: F.interpolate(v, size=(3, 5), mode="area"),
        lambda v: F.unfold(v, (2, 2), padding=1), lambda v: F.pixel_unshuffle(v, 2),
        lambda v: F.layer_norm(v, v.shape[dim:]), lambda v: torch.fft.rfft(v).abs(), lambda v: v.trace(),
        lambda v: torch.std_mean(v, dim)[1], lambda v: torch.count_nonzero(v, dim), lambda v: v.mT.contiguous(),
        lambda v: v @ v.mT, lambda v: v.softmax(-1) @ v.mT, lambda v: v.broadcast_to(3, *v.shape),
    ]  # fmt: skip


def selections(rng: np.random.Generator, x: Tensor) -> list[Function]:
    """Return functions that select elements, sort them, or write some of them."""
    dim = int(rng.integers(max(x.dim(), 1)))
    size = x.shape[dim] if x.dim() else 1
    first, count = int(rng.integers(size)), int(rng.integers(1, size + 1))
    indices = from_numpy(rng.integers(0, size, 3))
    places = from_numpy(np.asarray(rng.integers(0, size, tuple(x.shape))))
    table = from_numpy(rng.standard_normal((8, 3)).astype(np.float32))
    grid = from_numpy(
        rng.uniform(-1.2, 1.2, (x.shape[0] if x.dim() else 1, 3, 2, 2)).astype(np.float32)
    )
    edges = torch.tensor([-1.0, 0.0, 0.5, 2.0])
    return [
        lambda v: v.topk(count, dim)[0], lambda v: v.sort(dim)[0], lambda v: v.argsort(dim, stable=True).float(),
        lambda v: v.index_select(dim, indices), lambda v: v.argmax(dim).float(),
        lambda v: v.topk(count, dim, largest=False)[0],
        lambda v: v.sort(dim=dim, descending=True, stable=True)[1],
        lambda v: v.argmin(dim, keepdim=True), lambda v: v.gather(dim, places),
        lambda v: v.scatter_add(dim, places, v), lambda v: v.scatter_reduce(dim, places, v, "amax"),
        lambda v: v.index_add(dim, indices, v.index_select(dim, indices)),
        lambda v: v.index_fill(dim, indices, 0.25), lambda v: v.take_along_dim(places, dim),
        lambda v: v.select(dim, first), lambda v: v[..., indices % v.shape[-1]], lambda v: v[None, ..., -1],
        lambda v: v.median(dim)[0], lambda v: v.kthvalue(count, dim)[0],
        lambda v: torch.bucketize(v, edges), lambda v: torch.searchsorted(edges, v),
        lambda v: F.embedding(whole(v) % 8, table), lambda v: F.one_hot(whole(v) % 4, 4),
        lambda v: F.grid_sample(v, grid, align_corners=False), lambda v: v.masked_fill(v == v.amax(), 0),
        lambda v: _write(v, 0), lambda v: _write(v, -1), lambda v: v[v > 0.2].sum(),
        lambda v: v.nonzero().sum(0), lambda v: torch.where(v > 0, v, v.mean()),
        lambda v: v.select_scatter(v.select(dim, 0) * 2, dim, first), lambda v: v.max(),
        lambda v: v.slice_scatter(v.narrow(dim, 0, 1), dim, first, first + 1), lambda v: v.argmax(),
        lambda v: F.max_pool2d(v, 2, return_indices=True)[1], lambda v: torch.quantile(v, 0.3, dim),
    ]  # fmt: skip


def _write(v: Tensor, place: int) -> Tensor:
    """Return a copy of which one slice was written in place."""
    copy = v.clone()
    copy[..., place] = 2
    copy[place] += 1
    return copy
