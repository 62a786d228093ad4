"""Ops of ONNX Runtime's own domain: packed weights, and fused forms of common ops."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from fewbit.base.typed_torch import from_numpy
from fewbit.frontends.onnx.kinds import UINT8
from fewbit.frontends.onnx.layers import Integers, layer_tensors
from fewbit.frontends.onnx.table import Call, op
from fewbit.frontends.onnx.values import Known, outside_trace

ORT = "com.microsoft"


@op("MatMulNBits", domain=ORT, tensors=0)
def matmul_n_bits(call: Call) -> Tensor:
    """A layer whose weight [N, K] has groups of `block_size` inputs."""
    if call.has(4):
        raise call.refusal("its inputs are in another order (g_idx)")
    packed, scales = call.known(1), call.known(2)
    if packed is None or scales is None:
        raise call.needs(1, 2)
    with outside_trace():
        weight = _unpack(call, packed, scales)
    inputs = [call.inputs[0], weight]
    layer = Call(
        call.evaluator, call.node, call.scope, call.attributes, inputs, call.version, call.place,
        call.folding,
    )  # fmt: skip
    x, tensor = layer_tensors(layer, 0, 1)
    return F.linear(x, tensor, call.optional(5))


def _unpack(call: Call, packed: Tensor, scales: Tensor) -> Known:
    rows, columns = call.attr("N"), call.attr("K")
    bits, block = call.attr("bits", 4), call.attr("block_size")
    if bits not in (2, 4, 8):
        raise call.refusal(f"weights of {bits} bits")
    groups = -(-columns // block)
    values = _fields(packed, bits).reshape(rows, groups * block)[:, :columns]
    scale = scales.reshape(rows, groups)
    zeros = _zero_points(call, bits, rows, groups)
    spread = zeros.repeat_interleave(block, 1)[:, :columns]
    weight = (values - spread) * scale.float().repeat_interleave(block, 1)[:, :columns]
    whole = not columns % block and not zeros.dtype.is_floating_point
    integers = Integers(values, scale.float(), zeros, bits, True) if whole else None
    value = call.inputs[1]
    name = "" if value is None else value.name
    for suffix in ("_Q4", "_DQ_Q4", "_quantized", ".MatMulNBits.qweight", ".qweight", "_Q8"):
        name = name.removesuffix(suffix)
    return Known(weight.to(scales.dtype), call.kind(0), name, integers=integers)


def _zero_points(call: Call, bits: int, rows: int, groups: int) -> Tensor:
    given = call.known(3) if call.has(3) else None
    if given is None:
        if call.has(3):
            raise call.needs(3)
        return torch.full((rows, groups), 2 ** (bits - 1), dtype=torch.int32)
    if call.kind(3) != UINT8:
        return given.reshape(rows, groups).float()
    return _fields(given.reshape(rows, -1), bits)[:, :groups]


def _fields(packed: Tensor, bits: int) -> Tensor:
    """Fields of bytes, least significant first, along the last axis."""
    array = packed.numpy().astype(np.uint8)
    if bits == 8:
        return from_numpy(array.astype(np.int32))
    fields = [(array >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    flat = np.stack(fields, -1).reshape(*array.shape[:-1], -1)
    return from_numpy(flat.astype(np.int32))


@op("Gelu", domain=ORT)
def gelu(call: Call, x: Tensor) -> Tensor:
    return F.gelu(x)


@op("FastGelu", domain=ORT)
def fast_gelu(call: Call, x: Tensor, bias: Tensor | None = None) -> Tensor:
    return F.gelu(x if bias is None else x + bias, approximate="tanh")


@op("BiasGelu", domain=ORT)
def bias_gelu(call: Call, x: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(x + bias)


@op("QuickGelu", domain=ORT)
def quick_gelu(call: Call, x: Tensor) -> Tensor:
    return x * torch.sigmoid(x * call.attr("alpha", 1.702))


@op("FusedMatMul", domain=ORT)
def fused_matmul(call: Call, a: Tensor, b: Tensor) -> Tensor:
    if call.attr("transBatchA", 0) or call.attr("transBatchB", 0):
        raise call.refusal("batches are transposed")
    a = a.transpose(-1, -2) if call.attr("transA", 0) else a
    b = b.transpose(-1, -2) if call.attr("transB", 0) else b
    return torch.matmul(a, b) * call.attr("alpha", 1.0)


@op("SkipLayerNormalization", domain=ORT)
def skip_layer_norm(
    call: Call, x: Tensor, skip: Tensor, scale: Tensor, beta: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    total = x + skip if bias is None else x + skip + bias
    result = F.layer_norm(total, list(scale.shape), scale, beta, call.attr("epsilon", 1e-12))
    return result, None, None, total


@op("SkipSimplifiedLayerNormalization", domain=ORT)
def skip_rms_norm(
    call: Call, x: Tensor, skip: Tensor, scale: Tensor, bias: Tensor | None = None
) -> tuple[Tensor | None, ...]:
    total = x + skip if bias is None else x + skip + bias
    result = F.rms_norm(total, list(scale.shape), scale, call.attr("epsilon", 1e-12))
    return result, None, None, total
