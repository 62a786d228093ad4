# pyright: basic
"""What the target cannot lower is named, with its place."""

from __future__ import annotations

import pytest
import torch

import fewbit
from fewbit.errors import UnsupportedError


def test_ops_without_code_are_named() -> None:
    with pytest.raises(UnsupportedError, match=r"tm_tensor\.\w+ \("):
        fewbit.jit(lambda x: x.topk(2))(torch.randn(3, 6))
