"""What the accelerator leaves to its host."""

from __future__ import annotations

import pytest

from fewbit.targets.gemmini.legal import conv_refusal, pool_refusal

NONE = ((0, 0), (0, 0))


@pytest.mark.parametrize(
    ("weight", "stride", "dilation", "padding", "groups", "reason"),
    [
        ((8, 4, 3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), 1, None),
        ((8, 4, 5, 3), (2, 2), (2, 2), ((8, 0), (4, 1)), 2, None),
        ((8, 4, 3, 3), (2, 1), (1, 1), NONE, 1, "differ by direction"),
        ((8, 1, 3, 3), (1, 1), (1, 1), NONE, 8, "depthwise"),
        ((8, 4, 1, 1), (1, 1), (1, 1), ((1, 1), (1, 1)), 1, "wider than its kernel"),
    ],
)
def test_convolutions(
    weight: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    groups: int,
    reason: str | None,
) -> None:
    found = conv_refusal(weight, stride, dilation, padding, groups)
    assert found is None if reason is None else reason in (found or "")


def test_pooling() -> None:
    assert pool_refusal((2, 2), (2, 2), NONE, 32) is None
    assert "not square" in (pool_refusal((2, 3), (1, 1), NONE, 32) or "")
    assert "more than 3" in (pool_refusal((4, 4), (1, 1), NONE, 32) or "")
    assert "padded" in (pool_refusal((2, 2), (2, 2), ((1, 1), (1, 1)), 32) or "")
    assert "too wide" in (pool_refusal((2, 2), (2, 2), NONE, 300) or "")
