"""Random calls to calibrate on, and others to test on: the layers that networks have.

Sizes are spread evenly over their logarithms, with remainders of all kinds, and such as networks
like among them. A seed gives the same calls on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log

import numpy as np

from fewbit.cost.cpu.kernel_call import ImageSizes, KernelCall, MatrixSizes
from fewbit.kernels import (
    Conv2d,
    Depthwise,
    IntegerConv2d,
    IntegerDepthwise,
    IntegerMatmul,
    Isa,
    Matmul,
    QuantizeRows,
)
from fewbit.kernels.integer.output import Output

MOST_MACS = 60_000_000
MOST_BYTES = 24 << 20
CALIBRATED_WIDTHS = (8, 8, 4, 3, 2, 1)
"""Widths of weights; others are composed of the same bit planes."""


class Samples:
    """A generator of random calls."""

    def __init__(self, isa: Isa, seed: int = 0) -> None:
        self.isa = isa
        self.rng = np.random.default_rng(seed)

    def draw(self, count: int) -> list[KernelCall]:
        """Draw calls, families taking turns, so that any number of them is a fair sample."""
        turns: list[Callable[[], KernelCall]] = [
            self.integer_matmul,
            self.integer_conv2d,
            self.float_matmul,
            self.integer_matmul,
            self.integer_conv2d,
            self.integer_depthwise,
            self.integer_matmul,
            self.float_conv2d,
            self.integer_vector,
            self.integer_depthwise,
            self.integer_conv2d,
            self.quantize_rows,
            self.float_depthwise,
            self.integer_vector,
            self.grouped,
        ]
        return [turns[i % len(turns)]() for i in range(count)]

    def integer_matmul(self) -> KernelCall:
        bits = int(self.rng.choice(CALIBRATED_WIDTHS))
        kernel = IntegerMatmul(self.isa, self._output(bits), bits)
        return KernelCall(kernel, self._matrix(1))

    def integer_vector(self) -> KernelCall:
        kernel = IntegerMatmul(self.isa, "f32", int(self.rng.choice(CALIBRATED_WIDTHS)))
        n, k = self._size(64, 4096), self._size(64, 4096)
        return KernelCall(kernel, MatrixSizes(int(self.rng.integers(1, 5)), n, k))

    def grouped(self) -> KernelCall:
        kernel = IntegerMatmul(self.isa, "f32", 4, grouped=True)
        group = int(self.rng.choice([32, 64, 128]))
        groups, n = self._size(1, 32), self._size(16, 2048)
        k = group * groups
        most = max(1, min(256, MOST_MACS // (n * k)))
        return KernelCall(kernel, MatrixSizes(self._size(1, most), n, k, groups))

    def float_matmul(self) -> KernelCall:
        return KernelCall(Matmul(self.isa), self._matrix(4))

    def quantize_rows(self) -> KernelCall:
        return KernelCall(
            QuantizeRows(self.isa), MatrixSizes(self._size(1, 256), 0, self._size(16, 4096))
        )

    def integer_conv2d(self) -> KernelCall:
        bits = int(self.rng.choice((8, 8, 4)))
        return KernelCall(IntegerConv2d(self.isa, self._output(bits), bits), self._image())

    def float_conv2d(self) -> KernelCall:
        return KernelCall(Conv2d(self.isa), self._image())

    def integer_depthwise(self) -> KernelCall:
        return KernelCall(IntegerDepthwise(self.isa, self._output(8)), self._depthwise())

    def float_depthwise(self) -> KernelCall:
        return KernelCall(Depthwise(self.isa), self._depthwise())

    def _output(self, bits: int) -> Output:
        return "i8" if bits == 8 and self.rng.random() < 0.4 else "f32"

    def _size(self, least: int, most: int) -> int:
        """Draw a size, log-uniformly; half are multiples of 8, as networks have them."""
        size = round(exp(self.rng.uniform(log(least), log(most))))
        return max(8, size // 8 * 8) if size > 16 and self.rng.random() < 0.5 else max(size, least)

    def _matrix(self, size: int) -> MatrixSizes:
        n, k = self._size(8, 3072), self._size(8, 3072)
        if n * k * size > MOST_BYTES:
            n = MOST_BYTES // (k * size)
        most = max(1, min(1024, MOST_MACS // (n * k)))
        return MatrixSizes(self._size(1, most), n, k)

    def _image(self) -> ImageSizes:
        while True:
            kernel = int(self.rng.choice([1, 1, 3, 3, 3, 5, 7]))
            stride = int(self.rng.choice([1, 1, 2]))
            c = 3 if self.rng.random() < 0.15 else self._size(1, 512)
            sizes = ImageSizes.square(self._size(4, 112), c, self._size(8, 512), kernel, stride)
            numbers = sizes.pixels * c + sizes.rows * sizes.oc
            if 20_000 < sizes.macs < MOST_MACS and numbers < MOST_BYTES // 8:
                return sizes

    def _depthwise(self) -> ImageSizes:
        while True:
            kernel = int(self.rng.choice([3, 3, 3, 5]))
            stride = int(self.rng.choice([1, 1, 2]))
            c = self._size(8, 1024)
            sizes = ImageSizes.square(self._size(4, 112), c, c, kernel, stride, depthwise=True)
            if sizes.macs < MOST_MACS // 4:
                return sizes
