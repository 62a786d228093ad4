"""Packages of the extra `search`, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fewbit.errors import MissingToolError

OTHERWISE = {"search": "; --searcher random needs nothing"}
"""What to do where a package cannot be had."""


def import_extra(module: str, package: str, extra: str = "search") -> Any:
    """Return a module of an optional package, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingToolError(
            f"this needs {package}, which is not installed",
            hint=f"pip install 'fewbit[{extra}]'{OTHERWISE.get(extra, '')}",
        ) from error
