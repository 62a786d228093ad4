"""Activations, element by element."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from fewbit.frontends.onnx.table import Call, op, unary

_PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Tanh": torch.tanh,
    "Softsign": lambda x: x / (1 + torch.abs(x)),
    "HardSwish": lambda x: x * torch.clamp(x / 6 + 0.5, 0, 1),
    "Mish": lambda x: x * torch.tanh(_softplus(x)),
    "Softplus": lambda x: _softplus(x),
}
unary(_PLAIN)


def _softplus(x: Tensor) -> Tensor:
    """log(exp(x) + 1), without overflow."""
    return torch.relu(x) + torch.log1p(torch.exp(-torch.abs(x)))


@op("Elu")
def elu(call: Call, x: Tensor) -> Tensor:
    return torch.where(x > 0, x, call.attr("alpha", 1.0) * (torch.exp(x) - 1))


@op("Selu")
def selu(call: Call, x: Tensor) -> Tensor:
    alpha, gamma = (
        call.attr("alpha", 1.67326319217681884765625),
        call.attr("gamma", 1.05070102214813232421875),
    )
    return gamma * torch.where(x > 0, x, alpha * (torch.exp(x) - 1))


@op("Celu")
def celu(call: Call, x: Tensor) -> Tensor:
    alpha = call.attr("alpha", 1.0)
    return torch.clamp(x, min=0) + torch.clamp(alpha * (torch.exp(x / alpha) - 1), max=0)


@op("LeakyRelu")
def leaky_relu(call: Call, x: Tensor) -> Tensor:
    return torch.where(x < 0, x * call.attr("alpha", 0.01), x)


@op("ThresholdedRelu")
def thresholded_relu(call: Call, x: Tensor) -> Tensor:
    return torch.where(x > call.attr("alpha", 1.0), x, torch.zeros_like(x))


@op("HardSigmoid")
def hard_sigmoid(call: Call, x: Tensor) -> Tensor:
    return torch.clamp(x * call.attr("alpha", 0.2) + call.attr("beta", 0.5), 0, 1)


@op("Gelu")
def gelu(call: Call, x: Tensor) -> Tensor:
    return F.gelu(x, approximate=call.attr("approximate", "none"))


@op("Swish")
def swish(call: Call, x: Tensor) -> Tensor:
    alpha = call.attr("alpha", 1.0)
    return F.silu(x) if alpha == 1 else x * torch.sigmoid(x * alpha)


@op("Shrink")
def shrink(call: Call, x: Tensor) -> Tensor:
    bias, lambd = call.attr("bias", 0.0), call.attr("lambd", 0.5)
    dtype = x.dtype
    x = x if dtype.is_floating_point else x.to(torch.float64)
    inner = torch.where(x > lambd, x - bias, torch.zeros_like(x))
    return torch.where(x < -lambd, x + bias, inner).to(dtype)


@op("PRelu", wraps=True)
def prelu(call: Call, x: Tensor, slope: Tensor) -> Tensor:
    return torch.where(x < 0, x * slope, x)


@op("Dropout", tensors=1)
def dropout(call: Call, x: Tensor) -> tuple[Tensor, Tensor]:
    if call.has(2) and call.version >= 12:
        ratio = call.numbers(1)[0] if call.has(1) else 0.5
        if call.ints(2)[0] and ratio:
            raise call.refusal("it is in training mode, and draws random numbers")
    return x, torch.ones_like(x, dtype=torch.bool)
