"""Classes that entry points and registries name by their place, `package.module:Class`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fewbit.errors import Error


def make_from(place: str, what: str) -> Any:
    """Instantiate the class at a place, `package.module:Class`; errors say `what` it is."""
    module, _, kind = place.partition(":")
    try:
        return getattr(import_module(module), kind)()
    except ImportError as e:
        raise Error(
            f"the {what} at {place} cannot be loaded: {e}",
            hint="the package that it comes from is broken; update or uninstall it",
        ) from e
