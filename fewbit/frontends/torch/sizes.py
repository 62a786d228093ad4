"""What a trace found out about dynamic sizes, as assertions of the program.

`torch.export` gives each dynamic size a symbol and a range: the one that was asked for, or what the
model needs, such as three columns to take three of. Sizes of one symbol are equal. Torch takes a
lower bound of 2 for the habit of its tracer that it is, not for a limit, and so do we.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from xdsl.dialects import arith, cf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from fewbit.frontends.torch.types import is_static

HABIT = 2


def size_assertions(exported: ExportedProgram, values: Mapping[Node, SSAValue]) -> list[Operation]:
    """Ops that check the sizes of inputs."""
    ops: list[Operation] = []
    first: dict[str, SSAValue] = {}
    limits = cast("Mapping[Any, Any]", cast(Any, exported).range_constraints)
    for node, value in values.items():
        traced = node.meta["val"]
        if not isinstance(traced, torch.Tensor):
            continue
        for axis, size in enumerate(traced.shape):
            if is_static(size):
                continue
            expr = cast(Any, size).node.expr
            dim = _dim(value, axis, ops)
            where = f"size {axis} of '{node.name}'"
            if str(expr) in first:
                _check(dim, "eq", first[str(expr)], f"{where} differs from another", ops)
                continue
            first[str(expr)] = dim
            _check_range(dim, limits.get(expr), where, ops)
    # A lone size that nothing is known of needs no code.
    return ops if any(isinstance(op, cf.AssertOp) for op in ops) else []


def _check_range(dim: SSAValue, limits: Any, where: str, ops: list[Operation]) -> None:
    if limits is None:
        return
    low, high = _integer(limits.lower), _integer(limits.upper)
    if low is not None and low > HABIT:
        _check(dim, "sge", _number(low, ops), f"{where} must be at least {low}", ops)
    if high is not None:
        _check(dim, "sle", _number(high, ops), f"{where} must be at most {high}", ops)


def _integer(bound: Any) -> int | None:
    """A bound; None where there is none."""
    number = float(bound)
    return None if math.isinf(number) or number >= 2**62 else int(number)


def _dim(value: SSAValue, axis: int, ops: list[Operation]) -> SSAValue:
    ops.append(op := tensor.DimOp(value, _number(axis, ops)))
    return op.results[0]


def _number(value: int, ops: list[Operation]) -> SSAValue:
    ops.append(op := arith.ConstantOp(IntegerAttr(value, IndexType())))
    return op.result


def _check(a: SSAValue, how: str, b: SSAValue, message: str, ops: list[Operation]) -> None:
    ops.append(compared := arith.CmpiOp(a, b, how))
    ops.append(cf.AssertOp(compared.result, message))
