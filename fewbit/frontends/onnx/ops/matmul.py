"""Matmul and Gemm; with a constant operand they are layers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from fewbit.frontends.onnx.layers import layer_tensors
from fewbit.frontends.onnx.table import Call, op
from fewbit.frontends.onnx.values import Known, outside_trace

BIASED = "MatMulBias"
"""Our own name for a MatMul with an Add behind it; see `fuse_bias`."""


def _is_layer(call: Call) -> bool:
    weight = call.inputs[1]
    if call.folding or not isinstance(weight, Known) or weight.tensor.ndim != 2:
        return False
    return weight.tensor.dtype in (torch.float32, torch.float16, torch.bfloat16)


@op("MatMul", tensors=0, wraps=True)
def matmul(call: Call) -> Tensor:
    if not _is_layer(call):
        return multiply(call.tensor(0), call.tensor(1))
    x, weight = layer_tensors(call, 0, 1, lambda w: w.T)
    return F.linear(x, weight)


def multiply(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype in (torch.int8, torch.int16):
        return torch.matmul(a.to(torch.int32), b.to(torch.int32)).to(a.dtype)
    return torch.matmul(a, b)


@op(BIASED, domain="fewbit", tensors=0)
def matmul_bias(call: Call) -> Tensor:
    bias = call.inputs[2]
    if not _is_layer(call) or not isinstance(bias, Known):
        return multiply(call.tensor(0), call.tensor(1)) + call.tensor(2)
    features = call.shape(1)[1]
    if bias.tensor.ndim != 1 or bias.tensor.shape[0] != features:
        x, weight = layer_tensors(call, 0, 1, lambda w: w.T)
        return F.linear(x, weight) + call.tensor(2)
    x, weight = layer_tensors(call, 0, 1, lambda w: w.T)
    return F.linear(x, weight, call.tensor(2))


@op("Gemm", tensors=0, wraps=True)
def gemm(call: Call) -> Tensor:
    alpha, beta = call.attr("alpha", 1.0), call.attr("beta", 1.0)
    if _is_layer(call):
        return _gemm_layer(call, alpha, beta)
    a, b = call.tensor(0), call.tensor(1)
    a = a.T if call.attr("transA", 0) else a
    b = b.T if call.attr("transB", 0) else b
    result = _scale(multiply(a, b), alpha)
    return result + _scale(call.tensor(2), beta) if call.has(2) and beta else result


def _gemm_layer(call: Call, alpha: float, beta: float) -> Tensor:
    transposed = bool(call.attr("transB", 0))
    x, weight = layer_tensors(call, 0, 1, lambda w: w if transposed else w.T)
    x = x.T if call.attr("transA", 0) else x
    bias = call.known(2)
    features = int(weight.shape[0])
    if alpha == 1 and beta and bias is not None and _is_row(bias, features):
        return F.linear(x, weight, _bias(call, bias, beta, features))
    result = _scale(F.linear(x, weight), alpha)
    return result + _scale(call.tensor(2), beta) if call.has(2) and beta else result


def _is_row(bias: Tensor, features: int) -> bool:
    return bias.numel() == 1 or (bias.numel() == features and bias.shape[-1] == features)


def _bias(call: Call, bias: Tensor, beta: float, features: int) -> Tensor:
    if beta == 1 and bias.ndim == 1 and bias.numel() == features:
        return call.tensor(2)
    with outside_trace():
        spread = (bias.reshape([-1]) * beta).expand(features).contiguous()
    return call.constant(spread, "bias")


def _scale(x: Tensor, factor: float) -> Tensor:
    if factor == 1:
        return x
    return x * factor if x.dtype.is_floating_point else x * int(factor)


@op("Det")
def determinant(call: Call, x: Tensor) -> Tensor:
    """Eliminate, with the largest pivot of each column."""
    if x.dim() == 2:
        # A single pivot is a scalar, of which torch-mlir's gather makes no valid op.
        return determinant(call, x.unsqueeze(0)).squeeze(0)
    size = int(x.shape[-1])
    sign = torch.ones_like(x[..., 0, 0])
    result = torch.ones_like(sign)
    rows = torch.arange(size)
    for k in range(size):
        column = torch.where(rows >= k, torch.abs(x[..., :, k]), torch.full_like(x[..., :, k], -1))
        pivot = torch.argmax(column, -1, keepdim=True)
        order = torch.where(
            rows == k, pivot, torch.where(rows == pivot, k, rows.expand((*pivot.shape[:-1], size)))
        )
        sign = torch.where(pivot.squeeze(-1) == k, sign, -sign)
        x = torch.gather(x, -2, order.unsqueeze(-1).expand(x.shape))
        head = x[..., k : k + 1, k : k + 1]
        result = result * head[..., 0, 0]
        safe = torch.where(head == 0, torch.ones_like(head), head)
        factor = torch.where(
            (rows > k).unsqueeze(-1), x[..., :, k : k + 1] / safe, torch.zeros_like(x[..., :, :1])
        )
        x = x - factor * x[..., k : k + 1, :]
    return result * sign
