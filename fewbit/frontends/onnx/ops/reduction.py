"""Reductions, running sums, and the largest elements."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import guard_or_false

from fewbit.decompositions.wide_reductions import widen_to_f32
from fewbit.frontends.onnx.kinds import INT64
from fewbit.frontends.onnx.table import Call, op


def _axes(call: Call, x: Tensor) -> list[int] | None:
    """The axes that are reduced; None where nothing is."""
    given: list[int] | None = call.attr("axes")
    if call.has(1):
        given = call.whole(1)
    if not given:
        return None if call.attr("noop_with_empty_axes", 0) else list(range(x.ndim))
    return sorted({axis % x.ndim for axis in given})


def _reduction(name: str, wraps: bool = False) -> Callable[..., Callable[..., Tensor]]:
    """Reductions of no elements are given by what the decorator's users return for them."""

    def add(run: Callable[[Tensor, list[int], bool], Tensor]) -> Callable[..., Tensor]:
        def reduce(call: Call, x: Tensor) -> Tensor:
            axes = _axes(call, x)
            if axes is None:
                return _noop(name, x)
            # Squares and exponentials of 16-bit floats overflow where their means do not.
            wide = widen_to_f32(x)
            if x.ndim == 0:
                return run(wide.reshape(1), [0], False).to(x.dtype)
            return run(wide, axes, bool(call.attr("keepdims", 1))).to(x.dtype)

        return op(name, tensors=1, wraps=wraps)(reduce)

    return add


def _noop(name: str, x: Tensor) -> Tensor:
    """Each element is reduced alone."""
    if name in ("ReduceL1", "ReduceL2"):
        return torch.abs(x)
    if name == "ReduceSumSquare":
        return x * x
    if name == "ReduceLogSum":
        return torch.log(x)
    return x


def _sum(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if _has_none(x, axes):
        return _empty(x, axes, keep, 0)
    return torch.sum(x, dim=axes, keepdim=keep, dtype=x.dtype)


def _has_none(x: Tensor, axes: list[int]) -> bool:
    """Tell whether nothing is reduced; of sizes that data decides on, it is not asked."""
    return guard_or_false(prod(x.shape[a] for a in axes) == 0)


def _empty(x: Tensor, axes: list[int], keep: bool, value: float) -> Tensor:
    shape = [1 if i in axes else s for i, s in enumerate(x.shape) if keep or i not in axes]
    return torch.full(shape, value, dtype=x.dtype)


@_reduction("ReduceSum", wraps=True)
def reduce_sum(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return _sum(x, axes, keep)


@_reduction("ReduceMean")
def reduce_mean(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if x.dtype.is_floating_point:
        return torch.mean(x, dim=axes, keepdim=keep)
    count = prod(x.shape[a] for a in axes)
    total = torch.sum(x, dim=axes, keepdim=keep, dtype=torch.int64)
    return torch.trunc(total.to(torch.float64) / count).to(x.dtype)


def _extreme(x: Tensor, axes: list[int], keep: bool, largest: bool) -> Tensor:
    if _has_none(x, axes):
        if x.dtype is torch.bool:
            return _empty(x, axes, keep, not largest)
        if x.dtype.is_floating_point:
            return _empty(x, axes, keep, float("-inf" if largest else "inf"))
        info = torch.iinfo(x.dtype)
        return _empty(x, axes, keep, info.min if largest else info.max)
    dtype = x.dtype
    x = x.to(torch.int32) if dtype in (torch.bool, torch.int8, torch.int16) else x
    extreme = (torch.amax if largest else torch.amin)(x, dim=axes, keepdim=keep)
    return extreme != 0 if dtype is torch.bool else extreme.to(dtype)


@_reduction("ReduceMax")
def reduce_max(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return _extreme(x, axes, keep, True)


@_reduction("ReduceMin")
def reduce_min(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return _extreme(x, axes, keep, False)


@_reduction("ReduceProd", wraps=True)
def reduce_prod(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if _has_none(x, axes):
        return _empty(x, axes, keep, 1)
    for axis in axes:
        x = torch.prod(x, dim=axis, keepdim=True, dtype=x.dtype)
    return x if keep else x.squeeze(axes)


@_reduction("ReduceL1")
def reduce_l1(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return _sum(torch.abs(x), axes, keep)


@_reduction("ReduceL2")
def reduce_l2(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if x.dtype.is_floating_point:
        return torch.sqrt(_sum(x * x, axes, keep))
    wide = x.to(torch.float64)
    return torch.sqrt(_sum(wide * wide, axes, keep)).to(x.dtype)


@_reduction("ReduceSumSquare", wraps=True)
def reduce_sum_square(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return _sum(x * x, axes, keep)


@_reduction("ReduceLogSum")
def reduce_log_sum(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    return torch.log(_sum(x, axes, keep))


@_reduction("ReduceLogSumExp")
def reduce_log_sum_exp(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if _has_none(x, axes):
        return _empty(x, axes, keep, float("-inf"))
    most = torch.amax(x, dim=axes, keepdim=True)
    most = torch.where(torch.abs(most) == float("inf"), torch.zeros_like(most), most)
    total = torch.log(_sum(torch.exp(x - most), axes, True)) + most
    return total if keep else total.squeeze(axes)


def _arg(call: Call, x: Tensor, largest: bool) -> Tensor:
    axis, keep = call.axis(x.ndim, 0), bool(call.attr("keepdims", 1))
    if x.dtype in (torch.int8, torch.int16):
        x = x.to(torch.int32)
    find = torch.argmax if largest else torch.argmin
    if not call.attr("select_last_index", 0):
        return find(x, dim=axis, keepdim=keep)
    return x.shape[axis] - 1 - find(torch.flip(x, [axis]), dim=axis, keepdim=keep)


@op("ArgMax", gives=INT64)
def arg_max(call: Call, x: Tensor) -> Tensor:
    return _arg(call, x, True)


@op("ArgMin", gives=INT64)
def arg_min(call: Call, x: Tensor) -> Tensor:
    return _arg(call, x, False)


@op("CumSum", tensors=1, wraps=True)
def cumulative_sum(call: Call, x: Tensor) -> Tensor:
    axis = call.whole(1)[0] % x.ndim
    return _cumulative(call, x, axis, lambda y: torch.cumsum(y, axis, dtype=y.dtype), 0)


@op("CumProd", tensors=1, wraps=True)
def cumulative_product(call: Call, x: Tensor) -> Tensor:
    axis = call.whole(1)[0] % x.ndim
    return _cumulative(call, x, axis, lambda y: _products(y, axis), 1)


def _products(x: Tensor, axis: int) -> Tensor:
    parts = list(torch.unbind(x, axis))
    for i in range(1, len(parts)):
        parts[i] = parts[i - 1] * parts[i]
    return torch.stack(parts, axis)


def _cumulative(
    call: Call, x: Tensor, axis: int, run: Callable[[Tensor], Tensor], start: int
) -> Tensor:
    if call.attr("reverse", 0):
        x = torch.flip(x, [axis])
    if call.attr("exclusive", 0):
        first = torch.full_like(x.narrow(axis, 0, 1), start)
        x = torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    result = run(x)
    return torch.flip(result, [axis]) if call.attr("reverse", 0) else result


@op("TopK", tensors=1)
def top_k(call: Call, x: Tensor) -> tuple[Tensor, object]:
    from fewbit.frontends.onnx.values import Known, Traced

    k = call.whole(1)[0] if call.version >= 10 else call.attr("k")
    axis = call.axis(x.ndim, -1)
    largest = bool(call.attr("largest", 1))
    # Programs sort without changing the order of equal elements, as ONNX wants.
    indices = torch.sort(x, dim=axis, descending=largest)[1].narrow(axis, 0, k)
    kind = Known if call.folding else Traced
    return torch.gather(x, axis, indices), kind(indices, INT64)


@op("Hardmax")
def hardmax(call: Call, x: Tensor) -> Tensor:
    from fewbit.frontends.onnx.ops.normalization import over_axis

    def one(y: Tensor, axis: int) -> Tensor:
        places = torch.arange(y.shape[axis]).reshape([-1] + [1] * (y.ndim - 1 - axis))
        return (places == torch.argmax(y, dim=axis, keepdim=True)).to(y.dtype)

    return over_axis(call, x, one)
