"""Whole steps are those of a division, to the bit: at ties, beside them, and far beyond the bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fewbit.kernels import Isa
from fewbit.kernels.steps import Steps
from fewbit.numerics import Width
from tests.kernels.machine import address, compiled_max_pool, guarded

WIDTHS = ["1.58", "2", "3", "4", "5", "6", "7", "8"]
FLOATS = st.floats(width=32, allow_nan=False)


def divide(x: NDArray[np.float32], step: float, width: Width) -> NDArray[np.int8]:
    with np.errstate(over="ignore"):
        whole = np.rint(x / np.float32(step))
    return np.clip(whole, width.qmin, width.qmax).astype(np.int8)


def near_ties(step: float, width: Width) -> NDArray[np.float32]:
    """Return what is half-way between integers, the floats beside it, and numbers out of bounds."""
    ties = (np.arange(width.qmin - 2, width.qmax + 3) + 0.5).astype(np.float32) * np.float32(step)
    beside = np.concatenate([ties, np.nextafter(ties, -np.inf), np.nextafter(ties, np.inf)])
    far = np.array([0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38, np.inf, -np.inf], np.float32)
    return np.concatenate([beside, far]).astype(np.float32)


def round_by_kernel(isa: Isa, x: NDArray[np.float32], steps: Steps) -> NDArray[np.int8]:
    """Round by max pooling with windows of one pixel, which does nothing else."""
    x, q = guarded(x), np.zeros(x.shape, np.int8)
    sizes = np.array([1, 1, 1, x.size, x.size, 1, 1, x.size, x.size, *[1] * 4, 0, 0, 1, 1])
    numbers = guarded(steps.numbers())
    compiled_max_pool(isa)["steps"](
        address(x), None, address(q), address(numbers), address(sizes.astype(np.int64)), 0, 1
    )
    return q


@settings(max_examples=150)
@given(
    step=st.floats(2.0**-100, 2.0**100, width=32),
    width=st.sampled_from(WIDTHS),
    more=st.lists(FLOATS, max_size=30),
)
@example(step=1.0, width="8", more=[])
@example(step=0.1, width="8", more=[0.05, 0.15, 12.75])
def test_steps_are_quotients(isa: Isa, step: float, width: str, more: list[float]) -> None:
    kind = Width.of(width)
    steps = Steps.of(step, kind)
    assert steps is not None
    x = np.concatenate([near_ties(step, kind), np.array(more, np.float32)])
    np.testing.assert_array_equal(round_by_kernel(isa, x, steps), divide(x, step, kind))


@given(step=st.floats(2.0**-20, 2.0**20, width=32), ends=st.tuples(FLOATS, FLOATS))
def test_bounds_are_taken_together(isa: Isa, step: float, ends: tuple[float, float]) -> None:
    low, high = sorted(ends)
    steps = Steps.of(step, Width.of(8), low, high)
    assert steps is not None
    x = near_ties(step, Width.of(8))
    bounded = np.minimum(np.maximum(x, np.float32(low)), np.float32(high))
    np.testing.assert_array_equal(
        round_by_kernel(isa, x, steps), divide(bounded, step, Width.of(8))
    )


@pytest.mark.parametrize("step", [1e-45, 2.0**-127, 3e38])
def test_steps_that_only_a_division_counts(step: float) -> None:
    assert Steps.of(step, Width.of(8)) is None


def test_one_bit_is_a_sign() -> None:
    assert Steps.of(0.1, Width.of(1)) is None
