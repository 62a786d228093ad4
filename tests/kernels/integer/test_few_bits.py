"""Products with scales for groups have the bits that numpy gives, group after group."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fewbit.kernels import IntegerMatmul, Isa
from tests.kernels.integer.epilogue import UNTOUCHED, Epilogue, Outputs, Wanted
from tests.kernels.machine import address, compiled_groups, guarded, on_threads


def check(
    isa: Isa, m: int, n: int, groups: int, each: int, bits: int, want: Wanted, seed: int
) -> None:
    """Rows of x and y are one number further apart than they must be."""
    rng, k = np.random.default_rng(seed), groups * each
    x, weight = want.integers(rng, (m, k + 1)), want.weights(rng, (n, k), bits)
    epilogue = Epilogue(want, rng, (m, n + 1))
    scale = (rng.standard_normal((n, groups)) * 2.0**-12).astype(np.float32)
    expected = expect(x[:, :k], weight, scale, epilogue)
    kernel = IntegerMatmul(isa, "f32", bits, grouped=True)
    packed, w_scale = guarded(kernel.pack(weight, groups)), guarded(kernel.pack_scale(scale))
    x_scale, together, _, bias, add = epilogue.scales()
    for threads in (1, 2, 3):
        (y,) = Outputs(want, (m, n + 1)).arrays
        given = [address(x), k + 1, address(packed), x_scale, together, address(w_scale), bias, add,
                 address(y), n + 1, m, n, k, groups, *epilogue.bounds]  # fmt: skip
        on_threads(threads, lambda t, ts, given=given: compiled_groups(isa)[bits](*given, t, ts))
        assert y[:, :n].tobytes() == expected.tobytes()
        assert (y[:, n:] == UNTOUCHED).all(), "wrote beside the matrix"


def expect(x: np.ndarray, weight: np.ndarray, scale: np.ndarray, epilogue: Epilogue) -> np.ndarray:
    (m, k), (n, groups) = x.shape, scale.shape
    rows = np.repeat(epilogue.x_scale, epilogue.want.together)[:m, None]
    y = np.zeros((m, n), np.float32)
    for g in range(groups):
        part = slice(g * (k // groups), (g + 1) * (k // groups))
        sums = x[:, part].astype(np.int64) @ weight[:, part].T.astype(np.int64)
        y = y + sums.astype(np.int32).astype(np.float32) * rows * scale[:, g]
    y = y if epilogue.bias is None else y + epilogue.bias[:n]
    y = y if epilogue.add is None else y + epilogue.add[:, :n]
    low, high = (np.float32(bound) for bound in epilogue.bounds)
    return np.minimum(np.maximum(y, low), high)


@pytest.mark.on_few
@settings(max_examples=60)
@given(
    m=st.one_of(st.integers(1, 3), st.integers(4, 30), st.integers(90, 130)),
    n=st.integers(1, 140),
    groups=st.integers(1, 9),
    each=st.one_of(st.integers(4, 70), st.sampled_from([32, 64, 128, 600])),
    bits=st.integers(1, 8),
    flags=st.tuples(*[st.booleans()] * 4),
    together=st.integers(1, 60),
    seed=st.integers(0, 2**32),
)
@example(1, 70, 33, 128, 4, (True, True, False, True), 1, 0)
@example(100, 70, 60, 5, 3, (True, True, False, False), 1, 0)
@example(3, 70, 5000 // 8, 8, 1, (False, False, False, False), 1, 0)
@example(7, 70, 2, 2100, 4, (False, True, True, False), 1, 0)
@example(7, 70, 2, 2100, 8, (False, True, True, False), 1, 0)
def test_groups(
    isa: Isa,
    m: int,
    n: int,
    groups: int,
    each: int,
    bits: int,
    flags: tuple[bool, bool, bool, bool],
    together: int,
    seed: int,
) -> None:
    check(isa, m, n, groups, each, bits, Wanted("f32", *flags, together), seed)
