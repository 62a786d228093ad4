"""Which kernel multiplies integers of two widths: one by popcount, or one of bytes.

Popcount wins for the smallest pairs: `Isa.bit_products` says which. It loses where sums are so
short, or words so empty, that packing the activations takes longer than is gained.
"""

from __future__ import annotations

from fewbit.kernels.bits.conv2d import BitConv2d
from fewbit.kernels.bits.matmul import BitMatmul
from fewbit.kernels.bits.planes import WORD
from fewbit.kernels.integer.conv2d import IntegerConv2d
from fewbit.kernels.integer.matmul import IntegerMatmul
from fewbit.kernels.integer.output import Output
from fewbit.toolchain.isa import Isa


def integer_matmul(
    isa: Isa, output: Output, x_bits: int, w_bits: int, k: int, *, far: bool = False
) -> IntegerMatmul | BitMatmul:
    """Return the faster kernel for rows of k numbers."""
    if _pays(isa, x_bits, w_bits, k):
        by_popcount = BitMatmul(isa, output, x_bits, w_bits)
        if by_popcount.fits(k):
            return by_popcount
    return IntegerMatmul(isa, output, w_bits, far=far)


def integer_conv2d(
    isa: Isa,
    output: Output,
    x_bits: int,
    w_bits: int,
    kernel: tuple[int, int, int],
    width: int,
    stride_h: int = 1,
    dilation_h: int = 1,
) -> IntegerConv2d | BitConv2d:
    """Return the faster kernel for filters of c, kh, kw; an unknown `width` is negative."""
    c, kh, kw = kernel
    if width > 0 and _pays(isa, x_bits, w_bits, c):
        by_popcount = BitConv2d(isa, output, x_bits, w_bits)
        if by_popcount.fits(c, kh, kw, width, stride_h, dilation_h):
            return by_popcount
    return IntegerConv2d(isa, output, w_bits)


def _pays(isa: Isa, x_bits: int, w_bits: int, depth: int) -> bool:
    products = x_bits * w_bits
    filled = -(-depth // WORD) * WORD * 3 <= depth * 4
    return products <= isa.bit_products and depth >= products * WORD and filled
