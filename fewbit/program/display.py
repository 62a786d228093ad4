"""How programs and artifacts are shown: in a line or two, and as a small table of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

LONGEST = 120
"""Letters of a signature in one line; a model with a cache has a hundred results."""
MOST_ROWS = 8
"""Inputs or outputs that a table has."""

_UNITS = ("B", "kB", "MB", "GB", "TB")


def size_text(nbytes: int) -> str:
    """Return `312 B`, `44.7 kB`, `1.2 GB`."""
    size, unit = float(nbytes), 0
    while size >= 999.95 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{nbytes} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def shorten_text(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def html_table(
    title: str, inputs: Iterable[str], outputs: Iterable[str], rows: Mapping[str, str]
) -> str:
    """Return a table; all that is in it is escaped, since names come from files of others."""
    cells = {"inputs": _lines(inputs), "outputs": _lines(outputs)}
    cells |= {name: escape(value) for name, value in rows.items()}
    body = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{cell}</td></tr>'
        for name, cell in cells.items()
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{body}</tbody></table>"


def _lines(tensors: Iterable[str]) -> str:
    lines = [f"<code>{escape(tensor)}</code>" for tensor in tensors]
    left_out = len(lines) - MOST_ROWS
    shown = [*lines[:MOST_ROWS], f"and {left_out} more"] if left_out > 0 else lines
    return "<br>".join(shown)
