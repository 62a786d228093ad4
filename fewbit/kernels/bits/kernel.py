"""What the kernels that count bits share: two widths, and an output of the byte kernels."""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.kernels.bits.planes import Pair
from fewbit.kernels.integer.output import Output
from fewbit.kernels.kernel import Kernel

ROOM = 65536
"""Bytes on the stack for records."""


@dataclass(frozen=True)
class BitKernel(Kernel):
    """Multiplies numbers of `x_bits`, in bytes, with weights of `w_bits` in panels of bits."""

    output: Output = "f32"
    x_bits: int = 1
    w_bits: int = 1

    @property
    def pair(self) -> Pair:
        return Pair(self.isa, self.x_bits, self.w_bits)
