"""What sums should become, computed by numpy, and the arguments that ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from fewbit.kernels.integer.output import (
    LARGEST,
    PLAIN,
    SCALED,
    Output,
    Plain,
    activation_of,
    plain,
)
from fewbit.kernels.largest_magnitudes import SLOT
from fewbit.kernels.steps import Steps
from fewbit.numerics.approximations import evaluate
from fewbit.numerics.approximations.activations import ACTIVATIONS
from fewbit.numerics.widths import Width
from tests.kernels.machine import address, guarded

Bytes = NDArray[np.int8]
INF = float("inf")
TYPES: dict[Plain, list[str]] = {
    "i32": ["int32"],
    "f32": ["float32"],
    "i8": ["int8"],
    "i32_i8": ["int32", "int8"],
    "steps": ["float32", "int8"],
}
UNTOUCHED = 77
STEP = 0.0173


class Outputs:
    """Where a kernel writes: one array, or two; with `steps` floats only if they are wanted."""

    def __init__(self, want: Wanted, shape: tuple[int, ...]) -> None:
        self.arrays = [np.full(shape, UNTOUCHED).astype(kind) for kind in TYPES[plain(want.output)]]
        self.floats = plain(want.output) != "steps" or want.floats
        self.largest = guarded(np.zeros(SLOT, np.int32)) if want.output == LARGEST else None
        self.most = 0.0

    def arguments(self, epilogue: Epilogue, channel: int = 0) -> list[int | None]:
        given = [address(array[..., channel:]) for array in self.arrays]
        if self.largest is not None:
            return [*given, address(self.largest)]
        if plain(epilogue.want.output) != "steps":
            return given
        return [given[0] if self.floats else None, given[1], address(epilogue.steps)]

    def check(self, expected: list[NDArray[Any]], channels: slice = slice(None)) -> None:
        for array, right in zip(self.arrays, expected, strict=True):
            if array is self.arrays[-1] or self.floats:
                assert np.array_equal(array[..., channels], right)
        if self.largest is not None:
            self.most = max(self.most, float(np.abs(expected[0]).max(initial=0)))
            assert self.largest.view(np.float32).max() == self.most

    def check_untouched(self, channels: slice) -> None:
        for array in self.arrays:
            assert (array[..., channels] == UNTOUCHED).all(), "wrote beside the channels"


@dataclass(frozen=True)
class Wanted:
    """An output, which optional arguments it has, and of what numbers it is made."""

    output: Output
    bias: bool
    add: bool
    clamped: bool
    extreme: bool
    together: int
    """Rows that have one scale."""
    floats: bool = True
    """Whether floats are stored beside their steps."""
    unsigned: bool = False
    """Whether no number is negative."""

    def integers(self, rng: np.random.Generator, shape: tuple[int, ...], bits: float = 8) -> Bytes:
        """Return what weights are multiplied with."""
        rows = self.weights(rng, shape, bits)
        return guarded(rows & 127) if self.unsigned else rows

    def weights(self, rng: np.random.Generator, shape: tuple[int, ...], bits: float) -> Bytes:
        """Draw any weights of a width, or the extremes of it, mostly the lowest; 1.58 is ternary."""
        few = bits < 2
        low, high = (-1, 1) if few else (-(2 ** (int(bits) - 1)), 2 ** (int(bits) - 1) - 1)
        some = rng.integers(low, high + 1, shape) if bits > 1 else rng.choice([low, high], shape)
        extremes = rng.choice([low, high], shape, p=[0.9, 0.1])
        return guarded((extremes if self.extreme else some).astype(np.int8))


def wanted(outputs: Sequence[Output] = PLAIN) -> st.SearchStrategy[Wanted]:
    return st.builds(
        Wanted,
        st.sampled_from(outputs),
        *[st.booleans()] * 4,
        together=st.integers(1, 60),
        floats=st.booleans(),
    )


class Epilogue:
    """Scales, bias, what is added, and bounds, for outputs [rows, n]."""

    def __init__(self, want: Wanted, rng: np.random.Generator, shape: tuple[int, ...]) -> None:
        rows, n = int(np.prod(shape[:-1])), shape[-1]
        scaled = want.output in SCALED
        self.want = want
        self.x_scale = guarded(rng.random(-(-rows // want.together), np.float32) + np.float32(0.1))
        self.w_scale = guarded((rng.standard_normal(n) * 2.0**-12).astype(np.float32))
        self.bias: NDArray[Any] | None = None
        if want.bias:
            integer = rng.integers(-(2**15), 2**15, n).astype(np.int32)
            self.bias = guarded(rng.standard_normal(n, np.float32) if scaled else integer)
        self.add = guarded(rng.standard_normal(shape, np.float32)) if want.add and scaled else None
        widest = (-INF, INF) if scaled else (-128.0, 127.0)
        self.bounds = (float(rng.choice([-7.0, 0.0])), 6.0) if want.clamped else widest
        accuracy = Steps.of(STEP, Width.of(8), *self.bounds)
        assert accuracy is not None
        self.steps = guarded(accuracy.numbers())

    def scales(self, channel: int = 0) -> list[int | None]:
        """Return the arguments x_scale, rows_per_scale, w_scale, bias, add, from a channel on."""
        return [
            address(self.x_scale),
            self.want.together,
            address(self.w_scale[channel:]),
            None if self.bias is None else address(self.bias[channel:]),
            None if self.add is None else address(self.add[..., channel:]),
        ]

    def of(self, sums: NDArray[Any], channel: int = 0) -> list[NDArray[Any]]:
        """Compute each operation on floats by numpy in float32, in the order that is promised."""
        sums = sums.astype(np.int64)
        assert np.abs(sums).max(initial=0) < 2**31
        n = sums.shape[-1]
        columns = slice(channel, channel + n)
        rows = sums.reshape(-1, n)
        if self.want.output not in SCALED:
            total = rows if self.bias is None else rows + self.bias[columns]
            total = total.astype(np.int32).reshape(sums.shape)
            scaled = total.astype(np.float32) * self.w_scale[columns]
            few = np.clip(np.rint(scaled), *self.bounds).astype(np.int8)
            return {"i32": [total], "i8": [few]}.get(self.want.output, [total, few])
        scale = np.repeat(self.x_scale, self.want.together)[: len(rows), None]
        y = rows.astype(np.int32).astype(np.float32) * scale * self.w_scale[columns]
        y = y if self.bias is None else y + self.bias[columns]
        y = y.reshape(sums.shape)
        y = y if self.add is None else y + self.add[..., columns]
        activation = activation_of(self.want.output)
        y = y if activation is None else evaluate(ACTIVATIONS[activation], y.astype(np.float32))
        low, high = (np.float32(bound) for bound in self.bounds)
        y = np.minimum(np.maximum(y, low), high)
        if plain(self.want.output) == "f32":
            return [y]
        return [y, np.clip(np.rint(y / np.float32(STEP)), -128, 127).astype(np.int8)]
