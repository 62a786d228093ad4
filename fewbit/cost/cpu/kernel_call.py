"""A call of a kernel: which kernel, on which sizes. All that its cost depends on.

The kernel says what is multiplied, how wide weights are and what becomes of sums. The footprint is
how much memory is touched from one such call to the next: it decides which cache the weights come
from. A kernel that is called again and again touches only its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fewbit.kernels import image
from fewbit.kernels.cuts import Number
from fewbit.kernels.kernel import Kernel


@dataclass(frozen=True)
class MatrixSizes:
    """m rows of k numbers by n columns; `groups` of k have scales of their own."""

    m: int
    n: int
    k: int
    groups: int = 1

    @property
    def macs(self) -> int:
        return self.m * self.n * self.k

    def __str__(self) -> str:
        groups = f" in {self.groups} groups" if self.groups > 1 else ""
        return f"{self.m} x {self.n} x {self.k}{groups}"


@dataclass(frozen=True)
class ImageSizes:
    """A convolution of one group of channels; `x_stride` is how far apart its pixels are."""

    batch: int
    h: int
    w: int
    c: int
    oc: int
    kh: int
    kw: int
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    """At the top and left; the other sides follow from the output."""
    dilation: tuple[int, int] = (1, 1)
    out: tuple[int, int] = (1, 1)
    depthwise: bool = False
    x_stride: int = 0
    y_stride: int = 0

    @staticmethod
    def square(
        size: int, c: int, oc: int, kernel: int, stride: int = 1, *, depthwise: bool = False
    ) -> ImageSizes:
        """Return a square image, padded so that a stride of 1 keeps its size."""
        pad = (kernel - 1) // 2
        out = (size + 2 * pad - kernel) // stride + 1
        return ImageSizes(
            *(1, size, size, c, oc, kernel, kernel),
            stride=(stride, stride),
            padding=(pad, pad),
            out=(out, out),
            depthwise=depthwise,
        )

    @property
    def rows(self) -> int:
        """Output pixels: rows of the matmul that a convolution is."""
        return self.batch * self.out[0] * self.out[1]

    @property
    def pixels(self) -> int:
        return self.batch * self.h * self.w

    @property
    def x_step(self) -> int:
        return self.x_stride or self.c

    def given(self) -> image.Sizes[Number]:
        """Return the numbers that a kernel is given."""
        numbers = (
            *(self.batch, self.h, self.w, self.c, self.x_step),
            *(*self.out, self.oc, self.y_stride or self.oc),
            *(self.kh, self.kw, *self.stride, *self.padding, *self.dilation),
        )
        return image.Sizes(*map(Number, numbers))

    @property
    def y_step(self) -> int:
        return self.y_stride or self.oc

    @property
    def depth(self) -> int:
        """Multiply-adds of one output element."""
        return (1 if self.depthwise else self.c) * self.kh * self.kw

    @property
    def macs(self) -> int:
        return self.rows * self.oc * self.depth

    def __str__(self) -> str:
        image = "x".join(map(str, (self.batch, self.h, self.w, self.c)))
        return f"{image} by {self.kh}x{self.kw}/{self.stride[0]} to {self.oc}"


Sizes = MatrixSizes | ImageSizes


@dataclass(frozen=True)
class KernelCall:
    """One call, or `calls` of them on different data: a convolution has one for each group."""

    kernel: Kernel
    sizes: Sizes
    threads: int = 1
    calls: int = 1
    footprint: int = 0
    """Bytes touched between two such calls; 0: only its own."""

    @property
    def macs(self) -> int:
        return self.calls * self.sizes.macs

    def on(self, threads: int) -> KernelCall:
        return replace(self, threads=threads)

    def __str__(self) -> str:
        return f"{self.kernel.symbol.removeprefix('fewbit_')} {self.sizes}"
