"""Products against float64, on every processor that this machine can execute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import UnsupportedError
from fewbit.kernels import Isa, Matmul, PackB
from fewbit.kernels.pack import packed_size
from fewbit.kernels.stored import Stored, takes_stored
from tests.kernels.machine import (
    Floats,
    address,
    compiled,
    compiled_stored,
    guarded,
    on_threads,
)

INF = float("inf")
Forms = dict[Stored, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]


def matmul(
    isa: Isa,
    a: Floats,
    b: Floats,
    bias: Floats | None = None,
    add: Floats | None = None,
    bounds: tuple[float, float] = (-INF, INF),
    threads: int = 1,
    into: Floats | None = None,
) -> Floats:
    """Return the kernel's c; rows of a and c are one float further apart than they must be."""
    (m, k), n = a.shape, b.shape[1]
    padded = np.full((m, k + 1), np.nan, np.float32)
    padded[:, :k] = a
    padded = guarded(padded)
    packed = guarded(Matmul(isa).pack(b.T))
    bias = None if bias is None else guarded(bias)
    c = np.full((m, n + 1), np.nan, np.float32) if into is None else into
    wide = None
    if add is not None:
        wide = c if into is not None else np.full((m, n + 1), np.nan, np.float32)
        wide[:, :n] = add

    def call(thread: int, threads: int) -> None:
        compiled(isa)[Matmul](
            address(padded), k + 1, address(packed), address(bias), address(wide),
            address(c), n + 1, m, n, k, *bounds, thread, threads,
        )  # fmt: skip

    on_threads(threads, call)
    assert np.isnan(c[:, n]).all(), "wrote beside the matrix"
    return c[:, :n].copy()


def close(
    got: Floats, a: Floats, b: Floats, *added: Floats | None, bounds: tuple[float, float]
) -> None:
    """Each of k + 2 roundings is off by at most 2^-24 of what is summed, in absolute values."""
    terms = [t.astype(np.float64) for t in added if t is not None]
    expected = a.astype(np.float64) @ b.astype(np.float64) + sum(terms)
    size = np.abs(a).astype(np.float64) @ np.abs(b) + sum(np.abs(t) for t in terms)
    error = np.abs(got - np.clip(expected, *bounds))
    assert (error <= (2 * a.shape[1] + 4) * 2.0**-24 * size + 1e-30).all()


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int, int]:
    few = st.integers(1, 40)
    return (
        draw(st.one_of(few, st.integers(90, 200))),
        draw(st.one_of(few, st.integers(60, 140))),
        draw(st.one_of(st.integers(0, 20), st.integers(250, 1100))),
    )


@settings(max_examples=60)
@given(
    size=sizes(),
    seed=st.integers(0, 2**32),
    has_bias=st.booleans(),
    has_add=st.booleans(),
    clamped=st.booleans(),
    threads=st.integers(2, 4),
)
def test_is_the_product(
    isa: Isa,
    size: tuple[int, int, int],
    seed: int,
    has_bias: bool,
    has_add: bool,
    clamped: bool,
    threads: int,
) -> None:
    m, n, k = size
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(s, np.float32) for s in ((m, k), (k, n)))
    bias = rng.standard_normal(n, np.float32) if has_bias else None
    add = rng.standard_normal((m, n), np.float32) if has_add else None
    bounds = (0.0, 3.0) if clamped else (-INF, INF)
    got = matmul(isa, a, b, bias, add, bounds)
    close(got, a, b, bias, add, bounds=bounds)
    again = matmul(isa, a, b, bias, add, bounds, threads)
    assert got.tobytes() == again.tobytes()


def test_adds_in_place(isa: Isa) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((50, 700), np.float32), rng.standard_normal((700, 70), np.float32)
    add = rng.standard_normal((50, 70), np.float32)
    c = np.full((50, 71), np.nan, np.float32)
    got = matmul(isa, a, b, add=add, into=c)
    assert got.tobytes() == matmul(isa, a, b, add=add).tobytes()


def test_what_is_not_a_number_stays_so(isa: Isa) -> None:
    a, b = np.full((3, 5), np.nan, np.float32), np.ones((5, 4), np.float32)
    assert np.isnan(matmul(isa, a, b, bounds=(0, 6))).all()


@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
@settings(max_examples=40)
@given(k=st.integers(1, 90), n=st.integers(1, 90), gap=st.integers(0, 2), threads=st.integers(1, 4))
def test_packs_as_at_compile_time(
    isa: Isa, transposed: bool, k: int, n: int, gap: int, threads: int
) -> None:
    shape = (n, k + gap) if transposed else (k, n + gap)
    stored = np.random.default_rng(k * n).standard_normal(shape, np.float32)
    b = stored[:, :k].T if transposed else stored[:, :n]
    packed = np.full(packed_size(k, n, isa), np.nan, np.float32)
    strides = [s // 4 for s in b.strides]
    on_threads(
        threads,
        lambda t, ts: compiled(isa)[PackB](address(b), *strides, address(packed), k, n, t, ts),
    )
    assert np.array_equal(packed, Matmul(isa).pack(b.T))


def stored_forms(generator: np.random.Generator, shape: tuple[int, int]) -> Forms:
    """Return matrices of floats, and as they are stored: in panels already."""
    halves = generator.standard_normal(shape).astype(np.float16)
    low, high = (generator.integers(-8, 8, shape) for _ in range(2))
    both = ((low & 15) | (high << 4)).astype(np.int8)
    whole = generator.integers(-128, 128, shape).astype(np.int8)
    return {"f16": (halves, halves), "i8": (whole, whole), "low": (low, both), "high": (high, both)}


@pytest.mark.parametrize("stored", ["f16", "i8", "low", "high"])
@settings(max_examples=12)
@given(size=sizes(), seed=st.integers(0, 2**32), threads=st.integers(1, 3))
def test_a_narrow_matrix_is_widened(
    isa: Isa, stored: Stored, size: tuple[int, int, int], seed: int, threads: int
) -> None:
    """The bits are those of the same numbers in float."""
    if not takes_stored(isa, stored):
        return
    rng, (m, n, k) = np.random.default_rng(seed), size
    a = rng.standard_normal((m, k)).astype(np.float32)
    numbers, kept = stored_forms(rng, (k, n))[stored]
    packed = guarded(Matmul(isa).pack(kept.T.astype(np.float32)).astype(kept.dtype))
    given, c = guarded(a), np.full((m, n + 1), np.nan, np.float32)
    call = compiled_stored(isa, stored)

    def part(thread: int, threads: int) -> None:
        call(
            address(given), k, address(packed), 0, 0, address(c), n + 1, m, n, k, -INF, INF,
            thread, threads,
        )  # fmt: skip

    on_threads(threads, part)
    assert np.isnan(c[:, n]).all(), "wrote beside the matrix"
    np.testing.assert_array_equal(c[:, :n], matmul(isa, a, numbers.astype(np.float32)))


def test_processors_without_f16_take_no_halves() -> None:
    with pytest.raises(UnsupportedError, match="no matrix of f16"):
        Matmul(Isa.of("x86-64-v2"), stored="f16")
