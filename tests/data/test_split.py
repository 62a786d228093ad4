"""Choosing happens inside the training part."""

from __future__ import annotations

import numpy as np
import pytest

from fewbit.data import Split
from fewbit.errors import UsageError


def number_rows() -> Split:
    train, test = np.arange(10), np.arange(100, 104)
    return Split(train.astype(np.float32), train, test.astype(np.float32), test)


def test_hold_out_takes_from_the_training_part() -> None:
    held = number_rows().hold_out(3)
    assert held.train_y.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert held.test_y.tolist() == [7, 8, 9]
    assert held.train_x.tolist() == held.train_y.tolist()
    assert held.test_x.tolist() == held.test_y.tolist()


@pytest.mark.parametrize("count", [0, -1, 10, 11])
def test_hold_out_leaves_something_on_both_sides(count: int) -> None:
    with pytest.raises(UsageError, match="cannot be held out"):
        number_rows().hold_out(count)
