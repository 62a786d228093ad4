"""Fields of bytes hold what was put into them, and nothing that does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.errors import WidthError
from fewbit.kernels import Isa
from fewbit.kernels.integer.fields import Fields

VNNI = Isa.of("x86-64-v4-vnni")


@pytest.mark.parametrize(
    ("bits", "run", "stored"),
    [(1, 8, 1), (2, 4, 1), (3, 8, 3), (4, 2, 1), (5, 8, 5), (6, 4, 3), (7, 8, 7), (8, 1, 1)],
)
def test_runs_fill_their_bytes(bits: int, run: int, stored: int) -> None:
    fields = Fields(VNNI, bits)
    assert (fields.run, fields.run_vectors) == (run, stored)


@given(bits=st.integers(1, 8), count=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_parts_what_is_joined(bits: int, count: int, seed: int) -> None:
    fields = Fields(VNNI, bits)
    steps = np.random.default_rng(seed).integers(0, 1 << bits, (count, fields.run, 12), np.uint8)
    joined = fields.join(steps)
    assert joined.shape == (count, fields.run_vectors, 12)
    assert np.array_equal(fields.part(joined), steps)


@pytest.mark.parametrize("bits", range(1, 9))
def test_numbers_are_unsigned_and_of_the_width(bits: int) -> None:
    fields = Fields(VNNI, bits)
    most = 1 << bits >> 1
    weight = np.array([-1, 1], np.int8) if bits == 1 else np.arange(-most, most, dtype=np.int8)
    assert fields.number(weight).tolist() == list(range(1 << bits))
    assert np.array_equal(fields.weight(fields.number(weight)), weight)


@pytest.mark.parametrize(("bits", "weight"), [(1, 0), (1, 2), (2, 2), (2, -3), (4, 8), (7, -65)])
def test_what_does_not_fit_is_refused(bits: int, weight: int) -> None:
    with pytest.raises(WidthError):
        Fields(VNNI, bits).number(np.array([weight], np.int8))


@pytest.mark.parametrize("bits", [0, 9])
def test_no_such_width(bits: int) -> None:
    with pytest.raises(WidthError):
        Fields(VNNI, bits)
