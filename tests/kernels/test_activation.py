"""Products of floats that end in an activation: the formula of what they give without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.kernels import Conv2d, Depthwise, Isa, Matmul
from fewbit.numerics.approximations import evaluate
from fewbit.numerics.approximations.activations import ACTIVATIONS, Activation
from tests.kernels.convolution import Case, cases
from tests.kernels.machine import (
    Call,
    Floats,
    address,
    compiled,
    compiled_float_activated,
    guarded,
    on_threads,
)
from tests.kernels.test_matmul import sizes

BOUNDS = [(-np.inf, np.inf), (-0.1, 2.0)]
Run = Callable[[Call, Floats, tuple[float, float], int], None]

each_activation = pytest.mark.parametrize("activation", list(ACTIVATIONS))


def check(plain: Call, activated: Call, shape: Sequence[int], run: Run, name: Activation) -> None:
    """Both kernels, run on memory of this shape, with bounds and threads."""
    for bounds in BOUNDS:
        sums, *got = (np.full(shape, np.nan, np.float32) for _ in range(3))
        run(plain, sums, BOUNDS[0], 1)
        for threads, y in enumerate(got, 1):
            run(activated, y, bounds, threads)
            low, high = map(np.float32, bounds)
            expected = np.minimum(np.maximum(evaluate(ACTIVATIONS[name], sums), low), high)
            assert np.array_equal(y, expected, equal_nan=True)


@each_activation
@settings(max_examples=15)
@given(size=sizes(), add=st.booleans(), seed=st.integers(0, 2**32))
def test_products(
    isa: Isa, activation: Activation, size: tuple[int, int, int], add: bool, seed: int
) -> None:
    m, n, k = size
    rng = np.random.default_rng(seed)
    a = guarded(rng.standard_normal((m, k), np.float32))
    packed = guarded(Matmul(isa).pack(rng.standard_normal((n, k), np.float32)))
    bias = guarded(rng.standard_normal(n, np.float32))
    more = rng.standard_normal((m, n + 3), np.float32) if add else None

    def run(call: Call, y: Floats, bounds: tuple[float, float], threads: int) -> None:
        given = [address(a), k, address(packed), address(bias), address(more), address(y), n + 3]
        on_threads(threads, lambda t, ts: call(*given, m, n, k, *bounds, t, ts))

    activated = compiled_float_activated(isa)[Matmul(isa, activation).symbol]
    check(compiled(isa)[Matmul], activated, (m, n + 3), run, activation)


@each_activation
@pytest.mark.parametrize("kind", [Conv2d, Depthwise])
@settings(max_examples=10)
@given(case=cases(st.integers(1, 70), depthwise=True), seed=st.integers(0, 2**32))
def test_convolutions(
    isa: Isa,
    activation: Activation,
    kind: type[Conv2d] | type[Depthwise],
    case: Case,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    oc, depth = (case.oc, case.c) if kind is Conv2d else (case.c, 1)
    shape = (case.batch, *case.out, oc)
    x = guarded(rng.standard_normal((case.batch, case.h, case.w, case.c), np.float32))
    weight = rng.standard_normal((oc, depth, case.kh, case.kw), np.float32)
    packed, add = guarded(kind(isa).pack(weight)), rng.standard_normal(shape, np.float32)
    sizes = np.array(
        [case.batch, case.h, case.w, case.c, case.c, *case.out, oc, oc, case.kh, case.kw,
         *case.stride, *case.pad[:2], *case.dilation], np.int64
    )  # fmt: skip

    def run(call: Call, y: Floats, bounds: tuple[float, float], threads: int) -> None:
        given = [address(x), address(packed), None, address(add if case.add else None)]
        given += [address(y), address(sizes)]
        on_threads(threads, lambda t, ts: call(*given, *bounds, t, ts))

    activated = compiled_float_activated(isa)[kind(isa, activation).symbol]
    check(compiled(isa)[kind], activated, shape, run, activation)
