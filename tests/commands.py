"""Commands and programs of pages and examples, run in the process of the tests.

A process of its own begins with seconds of imports, so this is how every run of the tests tries
them. The slow tests have them run by a shell, as users do.
"""

from __future__ import annotations

import runpy
import shlex
import sys
from itertools import groupby
from pathlib import Path

import pytest

from fewbit.cli import main, opt
from fewbit.cli.guard import guarded

PROGRAMS = {"fewbit": main.run, "fewbit-opt": opt.run}


def run_command(line: str) -> None:
    """Run commands that `&&` may join, and fail where one of them does."""
    words = shlex.split(line, comments=True)
    for together, command in groupby(words, lambda word: word != "&&"):
        if together:
            program, *arguments = command
            assert guarded(PROGRAMS[program], arguments) == 0, line


def run_script(path: Path, *arguments: object) -> None:
    """Run a program in Python with arguments, as `python path arguments` does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(path), *map(str, arguments)])
        patch.setattr(sys, "path", [str(path.parent), *sys.path])
        known = set(sys.modules)
        runpy.run_path(str(path), run_name="__main__")
        for name in set(sys.modules) - known:
            if str(path.parent) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def run_python(code: str) -> None:
    """Run the text of a program, as `python -c code` does."""
    exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
