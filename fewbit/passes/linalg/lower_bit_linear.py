"""`mico.bitlinear` as a matmul, then its scales and bias.

Integers are summed in i32. With one scale a channel or fewer, the sum is scaled once; with a scale
for each group, the sum of each group is a tensor of its own, and a second loop adds them in order.
A layer that still quantizes its input is first split in two, as `lower-activation-quant` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.layers import (
    Factors,
    contract,
    factors_of,
    finish,
    group_sum,
)
from fewbit.passes.linalg.building.loops import generic, loops, read
from fewbit.passes.linalg.building.tensors import as_type, expand_axis, size_of, sizes_of
from fewbit.passes.quant.lower_activation_quant import integer_layer


@dataclass(frozen=True)
class LowerBitLinear(ModulePass):
    """Turn linear layers into loops."""

    name = "lower-bit-linear"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(op, {mico.BitLinearOp: _bit_linear})


def _bit_linear(op: mico.BitLinearOp) -> Sequence[SSAValue]:
    decomposed = integer_layer(op)
    if decomposed is not None:
        return decomposed
    factors = factors_of(op)
    total = _plain_sum(factors) if factors.groups is None else sum_of_groups(factors)
    channels = len(mico.shape_of(op.result.type)) - 1
    return [as_type(finish(op, total, factors, channels), op.result.type)]


def _plain_sum(factors: Factors) -> SSAValue:
    *rows, _ = sizes_of(factors.x)
    *outer, n, k = loops(len(rows) + 2)
    sizes = [*rows, size_of(factors.w, 0)]
    lhs, rhs = read(factors.x, *outer, k), read(factors.w, n, k)
    return contract(lhs, rhs, [*outer, n], sizes, factors.element)


def sum_of_groups(factors: Factors) -> SSAValue:
    """Return the sum of each group, scaled, and added in their order."""
    groups = factors.groups
    assert groups is not None
    *rows, _ = sizes_of(factors.x)
    *outer, n, g, k = loops(len(rows) + 3)
    size = mico.shape_of(factors.w.type)[1] // groups
    x = expand_axis(factors.x, len(rows), [groups, size])
    w = expand_axis(factors.w, 1, [groups, size])
    sizes = [*rows, size_of(factors.w, 0), groups]
    partial = contract(
        read(x, *outer, g, k), read(w, n, g, k), [*outer, n, g], sizes, factors.element
    )
    return group_sum(partial, factors, [*outer, n], g, n, _row_sums(factors, x))


def _row_sums(factors: Factors, x: SSAValue) -> SSAValue | None:
    """Return the sums of a row's groups, if weights have offsets; x is ... x groups x size."""
    if factors.w_offset is None:
        return None
    sizes = sizes_of(x)
    index = loops(len(sizes))

    def add(value: SSAValue, total: SSAValue) -> SSAValue:
        return s.add(total, s.to_integer(value, i32))

    return generic([read(x, *index)], index[:-1], sizes[:-1], i32, add, start=0)
