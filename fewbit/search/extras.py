"""Packages of the extra `search`, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fewbit.errors import MissingToolError


def import_extra(module: str, package: str) -> Any:
    """Return a module of an optional package, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingToolError(
            f"this needs {package}, which is not installed",
            hint="pip install 'fewbit[search]'; --searcher random needs nothing",
        ) from error
