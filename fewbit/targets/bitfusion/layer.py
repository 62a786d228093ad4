"""A layer as the cost model takes it, and rows of published tables as layers."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class Layer:
    """A convolution; a matmul is one of 1 x 1. `inputs` and `outputs` are channels."""

    batch: int
    inputs: int
    outputs: int
    act_bits: int
    weight_bits: int
    image: tuple[int, int] = (1, 1)
    """Rows and columns of the output."""
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    groups: int = 1
    im2col: bool = False
    """Whether the host unfolds windows, so that kernel positions and channels are one dimension.

    The authors unfold the first layer of a network only; MiCo, by a mistake, every convolution.
    """

    @property
    def macs(self) -> int:
        """MACs of the whole layer."""
        window = prod(self.kernel) * (self.inputs // self.groups)
        return self.batch * prod(self.image) * self.outputs * window


def matmul(n: int, m: int, k: int, act_bits: int, weight_bits: int) -> Layer:
    """Read a row of MiCo's matmul tables: column M has input channels, and K output channels."""
    return Layer(n, m, k, act_bits, weight_bits)


def conv2d(
    shape: tuple[int, int, int, int], kernel: int, stride: int, act_bits: int, weight_bits: int
) -> Layer:
    """Read a row of MiCo's convolution tables: H, W, C, K, im2col, no padding, batches of 16."""
    height, _, inputs, outputs = shape
    size = (height - kernel) // stride + 1
    return Layer(
        16,
        inputs,
        outputs,
        act_bits,
        weight_bits,
        image=(size, size),
        kernel=(kernel, kernel),
        stride=(stride, stride),
        im2col=True,
    )
