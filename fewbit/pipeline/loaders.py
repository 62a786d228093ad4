"""Passes by the words of their names: `outline-loops` is `OutlineLoops` in `outline_loops.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


def loaders(room: str, names: Sequence[str]) -> dict[str, Callable[[], Any]]:
    """Return functions that import the passes of a package, by their names."""
    return {name: _loader(room, name) for name in names}


def _loader(room: str, name: str) -> Callable[[], Any]:
    kind = "".join(word.capitalize() for word in name.split("-"))
    return lambda: getattr(import_module(f"{room}.{name.replace('-', '_')}"), kind)
