"""The LeNet text is complete and reproducible."""

from __future__ import annotations

from fewbit.models import lenet_text


def test_data_is_filled_in() -> None:
    assert "..." not in lenet_text()


def test_seed_decides_the_weights() -> None:
    assert lenet_text(1) == lenet_text(1)
    assert lenet_text(1) != lenet_text(2)
