"""IREE's programs themselves, without the Python scripts around them: half a second each time."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fewbit.errors import MissingToolError
from fewbit.toolchain.tools import tool_path


@cache
def iree_tool(name: str) -> str:
    """Return the path of `iree-compile` or `iree-opt`."""
    package = find_spec("iree.compiler")
    for folder in package.submodule_search_locations or () if package else ():
        program = Path(folder) / "_mlir_libs" / name
        if program.is_file():
            return str(program)
    found = tool_path(name)
    if found is None:
        hint = "pip install iree-base-compiler==3.13.0"
        raise MissingToolError(f"{name} is not installed", hint=hint)
    return found
