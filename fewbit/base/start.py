"""Starts a module of this package as a program: `python -P start.py MODULE ARGUMENT ...`.

`python -m` would look into the current folder first, for every module that is imported, and run
what lies there. With `-P` it does not, but then it may not find this package either: it is taken
from where this file is. A process that has to be started otherwise is given `SAFE`.
"""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

SAFE = {"PYTHONSAFEPATH": "1"}
"""The environment variable that is as good as `-P`."""


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that starts a module in a process of its own."""
    return [sys.executable, "-P", str(Path(__file__).resolve()), module, *arguments]


def _start(module: str) -> None:
    folder = Path(__file__).resolve().parents[1]
    spec = importlib.util.spec_from_file_location(
        folder.name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = sys.modules[folder.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _start(sys.argv.pop(1))
