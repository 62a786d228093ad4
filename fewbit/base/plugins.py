"""Classes and functions that entry points and registries name by their place, `module:name`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fewbit.errors import Error


def load_from(place: str, what: str) -> Any:
    """Import the class or function at a place, `module:name`; errors say `what` it is."""
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(module), name)
    except ImportError as e:
        raise Error(
            f"the {what} at {place} cannot be loaded: {e}",
            hint="the package that it comes from is broken; update or uninstall it",
        ) from e


def make_from(place: str, what: str, *arguments: Any) -> Any:
    """An object of the class at a place."""
    return load_from(place, what)(*arguments)
