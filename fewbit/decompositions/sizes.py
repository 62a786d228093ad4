"""Sizes of traced tensors."""

from __future__ import annotations

from typing import Any


def is_static(size: Any) -> bool:
    """Return whether a size is a number, or a symbol that the trace found to be one."""
    return isinstance(size, int) or bool(size.node.expr.is_Integer)
