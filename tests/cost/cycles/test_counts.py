"""What layers execute, counted by hand."""

from __future__ import annotations

import pytest

from fewbit.cost.cycles import Conv2d, Linear, Matmul, Pool
from fewbit.cost.cycles.cache import Cache
from fewbit.cost.cycles.counts import count


def test_words_of_a_product() -> None:
    counts = count(Matmul(3, 5, 70), 8, 4, None)
    assert counts["outputs"] == 15
    assert counts["dots"] == 15 * 96 / 4
    assert counts["narrow"] == 15 * 96 / 8
    assert counts["steps"] == 15 * 3
    assert "misses" not in counts


def test_either_operand_may_be_the_wider() -> None:
    shape = Matmul(4, 6, 64)
    a, b = count(shape, 8, 2, None), count(shape, 2, 8, None)
    assert (a["dots"], a["narrow"]) == (b["dots"], b["narrow"])


def test_weights_that_do_not_fit_are_fetched_for_each_row() -> None:
    fits, exceeds = (
        count(Matmul(10, outputs, 64), 8, 8, Cache(1))["misses"] for outputs in (32, 256)
    )
    assert fits == 0
    assert exceeds >= 10 * 256 * 64 / 64


def test_a_linear_layer_quantizes_its_activations() -> None:
    counts = count(Linear(3, 5, 70), 4, 8, None)
    assert counts["elements"] == counts["elements4"] == 210


def test_a_convolution_goes_by_two_rows() -> None:
    shape = Conv2d(3, 8, image=(5, 7), kernel=(3, 3))
    counts = count(shape, 8, 8, None)
    assert counts["blocks"] == 3
    assert counts["outputs"] == 5 * 7 * 8
    assert counts["elements"] == 5 * 7 * 27
    assert counts["padding8"] == 5 * 7 * 5
    assert counts["channels"] == 27 * 5


@pytest.mark.parametrize("core", [None, Cache(1)])
def test_groups_are_convolutions_one_after_the_other(core: Cache | None) -> None:
    grouped = count(Conv2d(8, 16, (6, 6), (3, 3), groups=4), 8, 4, core)
    single = count(Conv2d(2, 4, (6, 6), (3, 3)), 8, 4, core)
    assert all(grouped[name] == 4 * single[name] for name in single if name != "calls")


def test_pooling() -> None:
    counts = count(Pool(2, (3, 3), 2, maximum=True), 8, 8, None)
    assert counts == {"calls": 1, "outputs": 18, "lines": 36, "elements": 72}
