"""Ops that IREE 3.13 does not compile for some types, or compiles wrongly, as others.

- **Truth values that are joined.** IREE stores an i1 as a byte, and forgets that `from_elements`
  takes elements of the tensor's type. So bytes are joined, and cut to single bits after that.
- **Casts of single elements to unsigned ones.** `tensor.bitcast` is no code, but that of a tensor
  of one element gets into a dispatch, where it is one of rank 0 and is not bufferized. So it is
  IREE's own op, outside of dispatches.
- **Rounding to bf16.** Where what was rounded is widened and summed, IREE's code for CPUs leaves
  the rounding out. So it is done on the bits: half of the last place is added, less one if that is
  even, and what lies behind it is cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType, bf16, f32, i1, i8, i16, i32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects.mico.types import element_type, shape_of
from fewbit.dialects.upstream.iree import TensorBitcastOp
from fewbit.dialects.upstream.tensor import BitcastOp
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.loops import apply
from fewbit.passes.linalg.building.scalars import constant


@dataclass(frozen=True)
class LegalizeForIree(ModulePass):
    """Write ops that IREE does not compile in other ops."""

    name = "legalize-for-iree"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(op, {tensor.FromElementsOp: _join, BitcastOp: _cast, arith.TruncFOp: _round})


def _join(op: tensor.FromElementsOp) -> Sequence[SSAValue] | None:
    if element_type(op.result.type) != i1:
        return None
    type = TensorType(i8, shape_of(op.result.type))
    elements = [arith.ExtUIOp(each, i8).result for each in op.elements]
    joined = tensor.FromElementsOp(*elements, result_type=type).result
    return [apply(joined, i1, lambda byte: arith.TruncIOp(byte, i1).result)]


def _cast(op: BitcastOp) -> Sequence[SSAValue] | None:
    if any(size != 1 for size in shape_of(op.dest.type)):
        return None
    return [TensorBitcastOp(op.source, op.dest.type).result]


def _round(op: arith.TruncFOp) -> Sequence[SSAValue] | None:
    if op.input.type != f32 or op.result.type != bf16:
        return None
    bits = arith.BitcastOp(op.input, i32).result
    places = constant(16, i32)
    kept = arith.ShRUIOp(bits, places).result
    is_odd = arith.AndIOp(kept, constant(1, i32)).result
    half = arith.AddiOp(is_odd, constant(0x7FFF, i32)).result
    rounded = arith.ShRUIOp(arith.AddiOp(bits, half).result, places).result
    quiet = arith.OrIOp(kept, constant(0x40, i32)).result  # cut off, NaN might become infinity
    is_nan = arith.CmpfOp(op.input, op.input, "uno").result
    chosen = arith.SelectOp(is_nan, quiet, rounded).result
    return [arith.BitcastOp(arith.TruncIOp(chosen, i16).result, bf16).result]
