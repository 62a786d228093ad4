"""Integer matmuls and convolutions.

QLinearConv and QLinearMatMul with constant weights are layers between grids. What is no layer is
computed as written: matrices in int32, convolutions in float64, which holds all sums exactly.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fewbit.frontends.onnx.kinds import INT32
from fewbit.frontends.onnx.ops.convolution import convolve
from fewbit.frontends.onnx.ops.quantization import as_float, broadcast_scale, from_float
from fewbit.frontends.onnx.table import Call, op
from fewbit.frontends.onnx.values import Known, Many, Traced, Value


def _subtract_zero_point(call: Call, index: int, zero: int, axis: int) -> Tensor:
    x = call.tensor(index).to(torch.int32)
    if not call.has(zero):
        return x
    zeros = call.tensor(zero).to(torch.int32)
    return x - (broadcast_scale(zeros, x, axis, 0) if zeros.ndim <= 1 else zeros)


@op("MatMulInteger", tensors=0, gives=INT32)
def matmul_integer(call: Call) -> Tensor:
    return torch.matmul(_subtract_zero_point(call, 0, 2, -2), _subtract_zero_point(call, 1, 3, -1))


@op("ConvInteger", tensors=0, gives=INT32)
def conv_integer(call: Call) -> Tensor:
    x, weight = _subtract_zero_point(call, 0, 2, 1), _subtract_zero_point(call, 1, 3, 0)
    result = convolve(call, x.to(torch.float64), weight.to(torch.float64), None)
    return result.to(torch.int32)


def _with_inputs(call: Call, inputs: list[Value | None]) -> Call:
    return Call(
        call.evaluator, call.node, call.scope, call.attributes, inputs, call.version, call.place,
        call.folding,
    )  # fmt: skip


@op("QLinearConv", tensors=0)
def qlinear_conv(call: Call) -> Known | Traced:
    from fewbit.frontends.onnx.layers import layer_tensors

    x, weight = as_float(call, 0, 1, 2), as_float(call, 3, 4, 5, axis=0)
    layer = _with_inputs(call, [x, weight])
    source, tensor = layer_tensors(layer, 0, 1)
    bias = None
    if call.has(8):
        scale = call.tensor(1).reshape([]) * call.tensor(4)
        bias = call.tensor(8).to(scale.dtype) * scale
    return from_float(call, convolve(call, source, tensor, bias), 6, 7)


@op("QLinearMatMul", tensors=0)
def qlinear_matmul(call: Call) -> Known | Traced:
    from fewbit.frontends.onnx.ops.matmul import matmul

    if any(call.has(i) and _rank(call, i) > 1 for i in (1, 4)):
        raise call.refusal("scales of more than one axis")
    left = as_float(call, 0, 1, 2, axis=_rank(call, 0) - 2)
    right = as_float(call, 3, 4, 5, axis=_rank(call, 3) - 1)
    result = matmul(_with_inputs(call, [left, right]))
    return from_float(call, result, 6, 7)


def _rank(call: Call, index: int) -> int:
    value = call.inputs[index]
    return 0 if value is None or isinstance(value, Many) else len(value.shape)


@op("QLinearAdd", "QLinearMul", domain="com.microsoft", tensors=0)
def qlinear_arithmetic(call: Call) -> Known | Traced:
    a, b = as_float(call, 0, 1, 2), as_float(call, 3, 4, 5)
    x, y = (call.evaluator.tensor(v, call.folding) for v in (a, b))
    return from_float(call, x + y if call.op == "QLinearAdd" else x * y, 6, 7)


@op(
    "QLinearSigmoid",
    "QLinearLeakyRelu",
    "QLinearGlobalAveragePool",
    domain="com.microsoft",
    tensors=0,
)
def qlinear_unary(call: Call) -> Known | Traced:
    x = call.evaluator.tensor(as_float(call, 0, 1, 2), call.folding)
    if call.op == "QLinearSigmoid":
        result = torch.sigmoid(x)
    elif call.op == "QLinearLeakyRelu":
        result = torch.where(x < 0, x * call.attr("alpha", 0.01), x)
    elif call.attr("channels_last", 0):
        result = torch.mean(x, list(range(1, x.ndim - 1)), keepdim=True)
    else:
        result = torch.mean(x, list(range(2, x.ndim)), keepdim=True)
    return from_float(call, result, 3, 4)


@op("QLinearConcat", domain="com.microsoft", tensors=0)
def qlinear_concat(call: Call) -> Known | Traced:
    parts = [as_float(call, i, i + 1, i + 2) for i in range(2, len(call.inputs), 3)]
    tensors = [call.evaluator.tensor(part, call.folding) for part in parts]
    return from_float(call, torch.cat(tensors, call.attr("axis")), 0, 1)


@op("QGemm", domain="com.microsoft", tensors=0)
def qgemm(call: Call) -> Known | Traced:
    from fewbit.frontends.onnx.ops.matmul import gemm

    transposed = bool(call.attr("transB", 0))
    a, b = as_float(call, 0, 1, 2), as_float(call, 3, 4, 5, axis=0 if transposed else 1)
    result = gemm(_with_inputs(call, [a, b]))
    if call.has(6):
        scale = call.tensor(1).reshape([]) * call.tensor(4)
        result = result + call.tensor(6).to(scale.dtype) * scale * call.attr("alpha", 1.0)
    if call.has(7):
        return from_float(call, result, 7, 8)
    return call.result(result, 1)


@op("MatMulIntegerToFloat", domain="com.microsoft", tensors=0)
def matmul_integer_to_float(call: Call) -> Known | Traced:
    sums = torch.matmul(_subtract_zero_point(call, 0, 4, -2), _subtract_zero_point(call, 1, 5, -1))
    return _to_float(call, sums, call.tensor(2), call.tensor(3), 6)


@op("DynamicQuantizeMatMul", domain="com.microsoft", tensors=0)
def dynamic_quantize_matmul(call: Call) -> Known | Traced:
    from fewbit.frontends.onnx.ops.quantization import dynamic_scale, quantize_tensor

    x = call.tensor(0)
    scale, zero = dynamic_scale(x)
    sums = torch.matmul(
        quantize_tensor(x, scale, zero, 2) - zero, _subtract_zero_point(call, 1, 3, -1)
    )
    return _to_float(call, sums, scale, call.tensor(2), 4)


def _to_float(call: Call, sums: Tensor, a: Tensor, b: Tensor, bias: int) -> Known | Traced:
    result = sums.to(a.dtype) * (a.reshape([]) * b)
    result = result + call.tensor(bias) if call.has(bias) else result
    return call.result(result, 1)
