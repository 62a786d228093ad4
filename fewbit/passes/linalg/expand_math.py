"""Functions of the math dialect as arithmetic, which LLVM turns into vector code.

A call of the math library is one number at a time, and needs that library. The formulas of
`numerics/approximations` have no branches and no tables, so that a loop over them is vectorized.
Here they run on values of the program instead of numpy arrays: each operation emits an op.

Scalars of f32 are replaced; f16 and bf16 are computed in f32. f64 is left to the math library, and
so is what processors have instructions for (ceil, floor, round, sqrt, …). Nor has every machine a
library that rounds f64 to bf16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    ModuleOp,
    f32,
    f64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects.upstream.formulas import FORMULAS, Formula, product_formula
from fewbit.numerics.approximations import Number, powers
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import Lowering, lower_ops
from fewbit.passes.linalg.building.formulas import Emitted


@dataclass(frozen=True)
class ExpandMath(ModulePass):
    """Turn exp, log, tanh, sin and their like into arithmetic."""

    name = "expand-math"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        table: dict[type[Operation], Lowering] = {
            kind: _by(formula) for kind, formula in FORMULAS.items()
        }
        others = {math.PowFOp: _powf, math.FPowIOp: _fpowi, arith.TruncFOp: _truncate}
        lower_ops(op, {**table, **others})


def _truncate(op: Operation) -> Sequence[SSAValue] | None:
    """From f64 to bf16 by way of f32, as PyTorch converts; LLVM would call a library."""
    if op.operands[0].type != f64 or not isinstance(op.results[0].type, BFloat16Type):
        return None
    return [s.to_float(s.to_float(op.operands[0], f32), op.results[0].type)]


def _by(formula: Formula) -> Lowering:
    def lower(op: Operation) -> Sequence[SSAValue] | None:
        return _in_f32(op.results[0].type, formula, op.operands)

    return lower


def _in_f32(
    type: Attribute, formula: Formula, floats: Sequence[SSAValue]
) -> Sequence[SSAValue] | None:
    if not isinstance(type, Float32Type | Float16Type | BFloat16Type):
        return None
    result = formula(*(Emitted(s.to_float(value, f32)) for value in floats))
    return [s.to_float(cast(Emitted, result).value, type)]


def _powf(op: math.PowFOp) -> Sequence[SSAValue] | None:
    products = product_formula(op)
    if products is None:
        return _in_f32(op.result.type, powers.powf, op.operands)
    return _in_f32(op.result.type, products, [op.lhs])


def _fpowi(op: math.FPowIOp) -> Sequence[SSAValue] | None:
    def power(x: Number) -> Number:
        # Integers of up to 53 bits are exact in f64.
        return powers.power(x, Emitted(s.to_float(op.rhs, f64)))

    return _in_f32(op.result.type, product_formula(op) or power, [op.lhs])
