# pyright: basic
"""Resizing with antialiasing, smaller and larger."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.frontends.torch.agreement import assert_agrees


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align", [False, True])
def test_agrees_with_pytorch(mode: str, align: bool) -> None:
    def resize(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        named = {"mode": mode, "antialias": True, "align_corners": align}
        return F.interpolate(x, (5, 17), **named), F.interpolate(x, scale_factor=0.4, **named)

    assert_agrees(resize, torch.randn(1, 3, 12, 11))
