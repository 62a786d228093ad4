"""The processors of the integer kernels' tests."""

from __future__ import annotations

from tests.kernels.integer.conftest import isa

__all__ = ["isa"]
