"""Functions in Python files of the user's: `file.py:function`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from fewbit.errors import Place, UsageError


def load_function(text: str) -> Callable[..., Any]:
    """Return the function that a text names."""
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file '{file}'")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(
            f"the file does not load: {type(error).__name__}: {error}", place=Place(file=file)
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"there is no function '{name}' in the file", place=Place(file=file))
    return function
