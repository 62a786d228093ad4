"""What a matrix of floats was widened from: f16, bytes, or halves of bytes.

A matmul that widens in registers reads two to eight times less. Only loops that widen element by
element are seen as such, in the forms that importers and `fewbit.language` write.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, f16, f32, i8
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap

from fewbit.kernels.stored import Stored, takes_stored
from fewbit.passes.kernel.call_site import tensor_of
from fewbit.toolchain.isa import Isa

HALF = 4
"""Bits of half a byte."""


def find_stored(value: SSAValue, isa: Isa) -> tuple[SSAValue, Stored]:
    """Return the tensor that a matrix is read from, and how; itself if it was not widened."""
    op = value.owner
    if not isinstance(op, linalg.GenericOp) or len(op.inputs) != 1 or len(op.outputs) != 1:
        return value, "f32"
    is_whole = all(m.data == AffineMap.identity(m.data.num_dims) for m in op.indexing_maps)
    stored = _widening(op) if is_whole else None
    if stored is None or not takes_stored(isa, stored):
        return value, "f32"
    return op.inputs[0], stored


def _widening(op: linalg.GenericOp) -> Stored | None:
    """Return what the body of a loop widens its input from."""
    end = op.body.block.last_op
    assert end is not None
    (result,), given = end.operands, op.body.block.args[0]
    element: Attribute = tensor_of(op.inputs[0]).element_type
    last = result.owner
    if result.type != f32 or not isinstance(last, arith.ExtFOp | arith.SIToFPOp):
        return None
    if isinstance(last, arith.ExtFOp):
        return "f16" if element == f16 and last.input is given else None
    if element != i8:
        return None
    return _part_of_byte(last.input, given)


def _part_of_byte(value: SSAValue, byte: SSAValue) -> Stored | None:
    """Return which part of a byte an integer is, with its sign."""
    if value is byte:
        return "i8"
    down = value.owner
    if not isinstance(down, arith.ShRSIOp) or not _is_half(down.rhs):
        return None
    if down.lhs is byte:
        return "high"
    up = down.lhs.owner
    is_low = isinstance(up, arith.ShLIOp) and up.lhs is byte and _is_half(up.rhs)
    return "low" if is_low else None


def _is_half(places: SSAValue) -> bool:
    constant = places.owner
    if not isinstance(constant, arith.ConstantOp) or not isinstance(constant.value, IntegerAttr):
        return False
    return constant.value.value.data == HALF
