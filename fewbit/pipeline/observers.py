"""Who is told of every pass: dumps to files, diffs, and times."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import Any

from fewbit.base.files import replacing_file
from fewbit.pipeline.driver import Step


class Dump:
    """One numbered file per pass: `00-input.mlir`, `01-canonicalize.mlir`, ..."""

    _HEADER = "// fewbit-opt stage: "

    def __init__(self, folder: Path, to_text: Callable[[Any], str]) -> None:
        self._folder = folder
        self._to_text = to_text

    def __call__(self, step: Step, module: Any) -> None:
        if step.number == 0:
            self._clear()
        words = re.sub(r"[^\w-]+", "-", step.name).strip("-")
        name = f"{step.number:02}-{words}.mlir"
        text = f"{self._HEADER}{step.spec}\n{self._to_text(module)}"
        with replacing_file(self._folder / name) as file:
            file.write(text.encode())

    def _clear(self) -> None:
        """Remove what an earlier, longer run left: it would read as part of this one."""
        for path in self._folder.glob("*.mlir"):
            if re.fullmatch(r"\d{2,}-[\w-]+\.mlir", path.name) and self._is_ours(path):
                path.unlink()

    def _is_ours(self, path: Path) -> bool:
        with path.open("rb") as file:
            return file.read(len(self._HEADER)) == self._HEADER.encode()


class Diff:
    """A unified diff of the text before and after each pass."""

    def __init__(self, write: Callable[[str], object], to_text: Callable[[Any], str]) -> None:
        self._write = write
        self._to_text = to_text
        self._before: tuple[str, list[str]] = ("", [])

    def __call__(self, step: Step, module: Any) -> None:
        name, before = self._before
        lines = self._to_text(module).splitlines()
        self._before = (step.spec, lines)
        if step.number == 0:
            return
        if lines == before:
            self._write(f"// {step.spec}: no change")
        for line in unified_diff(before, lines, name, step.spec, lineterm=""):
            self._write(line)


class Timing:
    """How long each pass took, printing and verification apart."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def __call__(self, step: Step, module: Any) -> None:
        if step.number:
            self._steps.append(step)

    def lines(self) -> list[str]:
        total = sum(step.seconds for step in self._steps)
        rows = [(step.seconds, _describe(step)) for step in self._steps]
        return [f"{seconds:10.4f} s  {name}" for seconds, name in [*rows, (total, "total")]]


def _describe(step: Step) -> str:
    return f"{step.stage}: {step.spec}" if step.stage else step.spec
