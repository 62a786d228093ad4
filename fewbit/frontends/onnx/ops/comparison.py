"""Comparisons and logic."""

from __future__ import annotations

import torch
from torch import Tensor

from fewbit.frontends.onnx.kinds import BOOL, UINT64
from fewbit.frontends.onnx.ops.arithmetic import flip_sign_bit
from fewbit.frontends.onnx.table import Call, op
from fewbit.frontends.onnx.values import Known, Traced


@op("Equal", gives=BOOL, any_sign=True)
def equal(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return torch.logical_not(a ^ b) if a.dtype is torch.bool else a == b


_ORDERS = {
    "Less": torch.lt,
    "LessOrEqual": torch.le,
    "Greater": torch.gt,
    "GreaterOrEqual": torch.ge,
}


def _order(call: Call, a: Tensor, b: Tensor) -> Tensor:
    if call.kind(0) == UINT64:
        a, b = flip_sign_bit(a), flip_sign_bit(b)
    return _ORDERS[call.op](a, b)


op(*_ORDERS, gives=BOOL, any_sign=True)(_order)


@op("And", gives=BOOL)
def both(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return a & b


@op("Or", gives=BOOL)
def either(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return a | b


@op("Xor", gives=BOOL)
def one_of(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return a ^ b


@op("Not", gives=BOOL)
def negation(call: Call, a: Tensor) -> Tensor:
    return torch.logical_not(a)


@op("IsNaN", gives=BOOL)
def is_nan(call: Call, x: Tensor) -> Tensor:
    return x != x


@op("IsInf", gives=BOOL)
def is_infinite(call: Call, x: Tensor) -> Tensor:
    infinity = float("inf")
    if not call.attr("detect_negative", 1):
        return (
            x == infinity
            if call.attr("detect_positive", 1)
            else torch.zeros_like(x, dtype=torch.bool)
        )
    if not call.attr("detect_positive", 1):
        return x == -infinity
    return torch.abs(x) == infinity


@op("Where", any_sign=True)
def where(call: Call, condition: Tensor, a: Tensor, b: Tensor) -> Known | Traced:
    result = torch.where(condition, a, b)
    return call.result(result, call.kind(1))
