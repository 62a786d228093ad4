"""The first convolution of a network, whose image has few channels, as one with many.

Tensor cores take 16 bytes of channels at a time, and an image of three has 6. Here a kernel turns
the image to channels-last, as something has to anyway, and puts the columns under a filter, and the
rows that a step of it passes, side by side as channels. What remains is a convolution of one
column, stride 1 and no padding: for 7x7 filters in steps of 2, one of 4x1 with 42 channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.convolution import Convolution, element
from fewbit.kernels.cuda.family import ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Buffer, Launch, Plan, Pointer

FEW = 4
"""Channels that are few."""
_THREADS = 256
_MOST_SHARED = 48 * 1024


@dataclass(frozen=True)
class Unfold:
    """The image of a convolution, channels first and f32, spread for one of a single column."""

    of: Convolution

    @property
    def taps(self) -> int:
        """Rows of the filter that remain."""
        return ceil_div(self.of.kh, self.of.stride[0])

    @property
    def rows(self) -> int:
        return self.of.out_height + self.taps - 1

    @property
    def inner(self) -> int:
        """Channels that have values: rows that a step passes, columns of the filter, channels."""
        return self.of.stride[0] * self.of.kw * self.of.channels

    @property
    def channels(self) -> int:
        """In pieces of 16 bytes, the last filled up with zeros."""
        piece = 16 // self.of.unit
        return ceil_div(self.inner, piece) * piece

    @property
    def convolution(self) -> Convolution:
        """What is left to compute."""
        return replace(
            self.of,
            height=self.rows,
            width=self.of.out_width,
            channels=self.channels,
            kh=self.taps,
            kw=1,
            stride=(1, 1),
            padding=(0, 0),
        )

    def filters(self, weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return O x kh x kw x C as O x taps x 1 x channels, zeros where a filter has nothing."""
        outputs, kh, kw, channels = weight.shape
        whole = np.zeros((outputs, self.taps * self.of.stride[0], kw, channels), weight.dtype)
        whole[:, :kh] = weight
        spread = np.zeros((outputs, self.taps, 1, self.channels), weight.dtype)
        spread[..., : self.inner] = whole.reshape(outputs, self.taps, 1, -1)
        return spread

    def buffers(self) -> dict[str, Buffer]:
        p = self.of
        spread = (p.batch, self.rows, p.out_width, self.channels)
        return {
            "x": Buffer("f32", (p.batch, p.channels, p.height, p.width)),
            "y": Buffer("f32" if p.dtype == "tf32" else p.dtype, spread, "out"),
        }

    def __str__(self) -> str:
        return f"{self.of}->{self.channels}"


def refuse(problem: Convolution) -> str | None:
    if problem.channels > FEW:
        return f"it has more than {FEW} channels"
    if problem.groups != 1 or problem.dilation != (1, 1):
        return "it has groups or a dilation"
    if problem.dtype == "i8":
        return "its elements are no floats"
    line = (problem.out_width - 1) * problem.stride[1] + problem.kw
    if problem.stride[0] * line * problem.channels * problem.unit > _MOST_SHARED:
        return "its rows are too long for shared memory"
    return None


def unfold_source(problem: Unfold) -> str:
    p = problem.of
    return source(
        "prelude.cu",
        "unfold.cu",
        **element(p.dtype),
        CHANNELS=p.channels,
        HEIGHT=p.height,
        WIDTH=p.width,
        KW=p.kw,
        STRIDE_H=p.stride[0],
        STRIDE_W=p.stride[1],
        PAD_H=p.padding[0],
        PAD_W=p.padding[1],
        ROWS=problem.rows,
        COLUMNS=p.out_width,
        SPREAD=problem.channels,
        THREADS=_THREADS,
    )


def unfold_plan(problem: Unfold, arch: Arch) -> Plan:
    image = compile_source(unfold_source(problem), arch).image
    grid = (problem.of.batch * problem.rows, 1, 1)
    launch = Launch(0, "unfold", grid, _THREADS, (Pointer("x"), Pointer("y")))
    return Plan("unfold", arch.code, problem.buffers(), (launch,), (image,))
