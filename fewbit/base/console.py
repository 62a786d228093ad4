"""How results are printed: tables on a page that is wide enough, counts in few letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 150
"""Columns of a table where there is no terminal to ask."""


def wide_console() -> Console:
    """The terminal, or a page wide enough for tables where there is none."""
    from rich.console import Console

    return Console(width=None if Console().is_terminal else WIDTH)


def short(count: int) -> str:
    """A count with three digits and a unit, `11.7 M`."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return str(count)
