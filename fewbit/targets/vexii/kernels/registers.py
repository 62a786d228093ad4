"""The registers that code in assembly may use: all but zero, sp and gp."""

from __future__ import annotations

TEMPORARY = (*(f"t{i}" for i in range(7)), *(f"a{i}" for i in reversed(range(8))))
"""A function may change these; arguments are in a0 to a7."""
SAVED = (*(f"s{i}" for i in range(12)), "ra", "tp")
"""These it must give back as they were."""
