"""Max pooling of floats and bytes, on every processor that this machine can execute."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from fewbit.kernels import Isa
from fewbit.kernels.max_pool import Pooled
from fewbit.kernels.steps import Steps
from fewbit.numerics import Width
from tests.kernels.machine import address, compiled_max_pool, guarded, on_threads

STEP = 0.02


@dataclass(frozen=True)
class Case:
    shape: tuple[int, int, int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    beyond: int
    """Pixels of padding at the bottom and on the right, beside those at the top and left."""

    @property
    def padding(self) -> tuple[int, int]:
        return self.kernel[0] // 2, self.kernel[1] // 2


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    shape = (
        draw(st.integers(1, 2)),
        draw(st.integers(kernel[0], 12)),
        draw(st.integers(kernel[1], 12)),
        draw(st.integers(1, 150)),
    )
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    return Case(shape, kernel, stride, draw(st.integers(0, 1)))


@settings(max_examples=60)
@given(
    case=cases(),
    output=st.sampled_from(["f32", "i8", "steps"]),
    floats=st.booleans(),
    seed=st.integers(0, 2**32),
)
@example(Case((1, 9, 9, 64), (3, 3), (2, 2), 0), "i8", True, 0)
def test_is_the_largest(isa: Isa, case: Case, output: Pooled, floats: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch, h, w, c = case.shape
    (kh, kw), (top, left) = case.kernel, case.padding
    if output == "i8":
        x = guarded(rng.integers(-128, 128, case.shape).astype(np.int8))
    else:
        x = guarded(rng.standard_normal(case.shape).astype(np.float32))
    around = [(0, 0), (top, top + case.beyond), (left, left + case.beyond), (0, 0)]
    padded = np.pad(x, around, constant_values=-128 if output == "i8" else -np.inf)
    views = sliding_window_view(padded, case.kernel, (1, 2))[
        :, :: case.stride[0], :: case.stride[1]
    ]
    expected = views.max((4, 5))
    _, oh, ow, _ = expected.shape
    sizes = np.array(
        [batch, h, w, c, c, oh, ow, c, c, kh, kw, *case.stride, top, left, 1, 1], np.int64
    )
    steps = Steps.of(STEP, Width.of(8))
    assert steps is not None
    numbers, call = guarded(steps.numbers()), compiled_max_pool(isa)[output]
    for threads in (1, 3):
        y, q = np.zeros_like(expected), np.zeros(expected.shape, np.int8)
        given = [address(y)]
        if output == "steps":
            given = [address(y) if floats else None, address(q), address(numbers)]
        on_threads(threads, lambda t, ts, g=given: call(address(x), *g, address(sizes), t, ts))
        if output != "steps" or floats:
            np.testing.assert_array_equal(y, expected)
        if output == "steps":
            whole = np.rint(expected / np.float32(STEP))
            np.testing.assert_array_equal(q, np.clip(whole, -128, 127).astype(np.int8))
