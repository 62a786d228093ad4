from __future__ import annotations

import pytest

from fewbit.reduce import Failure


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("'x' has the shape 2x3", "'t17' has the shape 1x3x4", True),
        ("NonZero cannot be imported", "Unique cannot be imported", False),
        ("op %12 fails\nin many lines", "op %7 fails\nin other lines", True),
    ],
)
def test_names_and_numbers_may_differ(one: str, other: str, alike: bool) -> None:
    assert Failure("refused", one).is_like(Failure("refused", other)) is alike


def test_kinds_may_not() -> None:
    assert not Failure("refused", "x").is_like(Failure("wrong", "x"))
    assert not Failure("refused", "x").is_like(None)
