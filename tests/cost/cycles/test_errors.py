"""Errors by size and width."""

from __future__ import annotations

import numpy as np
import pytest

from fewbit.cost.cycles import CACHES, Conv2d, Linear, Matmul, Pool, cycles
from fewbit.cost.cycles.errors import LIMITS, SIZES, Errors, combine, errors_by_size, size_of


def test_sizes_are_by_macs() -> None:
    assert [size_of(Matmul(1, 1, macs)) for macs in (1, *LIMITS)] == [0, 0, 1, 2]
    assert [size_of(Matmul(1, 1, macs + 1)) for macs in LIMITS] == [1, 2, 3]
    assert size_of(Conv2d(64, 64, (14, 14), (3, 3))) == 3
    assert size_of(Pool(1, (2, 2), 2, maximum=True)) == len(SIZES) - 1


def test_means_are_by_size_and_width() -> None:
    sizes = [1] * 16 + [2] * 9
    bits = [8] * 8 + [4] * 8 + [8] * 8 + [1]
    errors = np.array([0.1] * 8 + [0.2] * 8 + [0.3] * 8 + [0.9])
    found = errors_by_size(sizes, bits, errors)
    assert found.measured == (False, True, True, False)
    assert found.cells[1][:2] == pytest.approx((0.1, 0.2))
    assert found.at(2, 8) == pytest.approx(0.3)
    of_size = (8 * 0.3 + 0.9) / 9
    assert found.at(2, 1) == pytest.approx(of_size), "one row is too few for an error of its own"


def test_sizes_that_were_not_measured_are_worse_than_all_that_were() -> None:
    given = Errors(((0.0, 0.0), (0.3, 0.1), (0.2, 0.4), (0.0, 0.0)), (False, True, True, False))
    found = given.fill(0.4)
    assert found.cells[1:3] == given.cells[1:3]
    assert found.cells[0] == found.cells[3] == pytest.approx((0.5, 0.4 * 2**0.5))


def test_errors_of_rules_add_as_squares() -> None:
    first = Errors(((0.3,), (0.0,)), (True, False))
    other = Errors(((0.4,), (0.1,)), (True, True))
    found = combine([first, other])
    assert found.cells[0] == pytest.approx((0.5,))
    assert found.measured == (True, False)


@pytest.mark.parametrize("core", CACHES)
def test_an_estimate_has_the_error_of_its_size_and_width(core: str) -> None:
    tiny, larger = Linear(1, 10, 84), Linear(32, 32, 128)
    assert cycles(core, tiny, 2, 2).error >= cycles(core, larger, 2, 2).error
    assert "no layers of this size" in cycles(core, tiny, 2, 2).source
    if core == "cacheless":
        return
    assert "no layers of this size" not in cycles(core, larger, 2, 2).source
    assert cycles(core, larger, 2, 8).error == cycles(core, larger, 8, 1).error
    assert cycles(core, larger, 2, 8).error != cycles(core, larger, 2, 2).error
