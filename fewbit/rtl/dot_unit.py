"""An integer matmul as a circuit: what must be known of it, read from a `kernel.matmul`.

A unit multiplies a row of K integers by N rows of weights, some elements (`lanes`) in each clock,
and adds up. Widths are 1 to 8 bits on either side; the circuit has exactly the bits that they need.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from fewbit.dialects.kernel import MatmulOp
from fewbit.dialects.mico.types import element_width, shape_of
from fewbit.errors import UnsupportedError

WORD = 32
"""How many bits of the wider operand are taken in a clock, by default."""


@dataclass(frozen=True)
class DotUnit:
    """A circuit for dot products of `length` elements with `rows` rows of weights."""

    x_bits: int
    w_bits: int
    length: int
    rows: int
    lanes: int

    @property
    def name(self) -> str:
        return f"dot_{self.x_bits}x{self.w_bits}"

    @property
    def steps(self) -> int:
        """How many clocks a row takes."""
        return -(-self.length // self.lanes)

    @property
    def remainder(self) -> int:
        """The lanes that the last clock uses."""
        return self.length - (self.steps - 1) * self.lanes

    @property
    def product_bits(self) -> int:
        """What the largest product needs: that of both factors at their lowest."""
        return self.x_bits + self.w_bits

    @property
    def sum_bits(self) -> int:
        """What the largest sum needs."""
        return (self.length << self.product_bits - 2).bit_length() + 1


def dot_unit(module: ModuleOp, lanes: int | None = None) -> DotUnit:
    """Return the unit for the one matmul in a module."""
    matmuls = [op for op in module.walk() if isinstance(op, MatmulOp)]
    if len(matmuls) != 1:
        raise UnsupportedError(
            f"a circuit is built from one kernel.matmul, and the program has {len(matmuls)}"
        )
    (op,) = matmuls
    x, w = element_width(op.x.type), element_width(op.weight.type)
    if x is None or w is None:
        raise UnsupportedError("a circuit multiplies few-bit integers (!mico.int<1..8>)")
    if len(op.operands) != 2 or len(op.results) != 1:
        raise UnsupportedError("a circuit gives plain sums: no scales, bias, or bounds")
    rows, length = shape_of(op.weight.type)
    if min(rows, length) < 1:
        raise UnsupportedError("a circuit needs a weight of known size")
    most = lanes or WORD // max(x.bits, w.bits)
    return DotUnit(x.bits, w.bits, length, rows, min(most, length))
