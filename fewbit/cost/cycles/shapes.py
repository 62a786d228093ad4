"""The layers whose cycles are modelled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Matmul:
    """The integer matmul alone: `rows` of activations, each with `outputs` rows of weights."""

    rows: int
    outputs: int
    inputs: int

    @property
    def macs(self) -> int:
        """Multiply-adds."""
        return self.rows * self.outputs * self.inputs


@dataclass(frozen=True)
class Linear(Matmul):
    """A linear layer of floats: activations are quantized, and the sums scaled."""


@dataclass(frozen=True)
class Conv2d:
    """A convolution of floats, by unfolding two rows of the output at a time."""

    inputs: int
    outputs: int
    image: tuple[int, int]
    """Rows and columns of the output."""
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    groups: int = 1
    batch: int = 1

    @property
    def macs(self) -> int:
        """Multiply-adds."""
        window = self.kernel[0] * self.kernel[1] * (self.inputs // self.groups)
        return self.batch * self.image[0] * self.image[1] * self.outputs * window


@dataclass(frozen=True)
class Pool:
    """Average or maximum pooling of floats; `image` is the output's."""

    channels: int
    image: tuple[int, int]
    kernel: int
    maximum: bool
    batch: int = 1


Shape = Matmul | Linear | Conv2d | Pool
