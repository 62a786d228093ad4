"""Running passes one after another, verified in between, with watchers that see every stage.

Dumping, diffing and timing are watchers: each is called with the input and then after every pass.
A module that fails verification is still shown to the watchers, since that is when one wants to
see it; then the error leaves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from time import perf_counter
from typing import Protocol

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fewbit.errors import Error, PassError, Place
from fewbit.files import replacing_file
from fewbit.ir.verify import verify


@dataclass(frozen=True)
class Stage:
    number: int
    name: str
    """The name of the pass, or `input`."""
    spec: str
    """The pass with its options."""
    seconds: float


class Watcher(Protocol):
    def __call__(self, stage: Stage, module: ModuleOp, /) -> None: ...


def run_passes(
    ctx: Context,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    watchers: Sequence[Watcher] = (),
    *,
    verified: bool = True,
) -> None:
    """Apply `passes` in place; an error names the pass that raised it or broke the module."""
    _finish(Stage(0, "input", "input", 0.0), module, watchers, None, verified)
    for number, each in enumerate(passes, 1):
        start = perf_counter()
        _apply(each, ctx, module)
        stage = Stage(number, each.name, str(each), perf_counter() - start)
        _finish(stage, module, watchers, each.name, verified)


def _apply(each: ModulePass, ctx: Context, module: ModuleOp) -> None:
    try:
        each.apply(ctx, module)
    except Error as e:
        raise e.at(stage=each.name) from e.__cause__
    except Exception as e:
        # A pass of xDSL or of a plug-in may raise anything; what it was working on is known.
        raise PassError(
            f"the pass failed: {type(e).__name__}: {e}",
            place=Place(stage=each.name),
            hint="--debug shows where, and --dump-ir the program before it",
        ) from e


def _finish(
    stage: Stage,
    module: ModuleOp,
    watchers: Sequence[Watcher],
    after: str | None,
    verified: bool,
) -> None:
    try:
        if verified:
            verify(module, after)
    except Error:
        # Printing an invalid module may fail too, and must not hide why it is invalid.
        with suppress(Exception):
            _show(stage, module, watchers)
        raise
    _show(stage, module, watchers)


def _show(stage: Stage, module: ModuleOp, watchers: Sequence[Watcher]) -> None:
    for watcher in watchers:
        watcher(stage, module)


class Dump:
    """One numbered file per stage: `00-input.mlir`, `01-canonicalize.mlir`, ..."""

    _HEADER = "// fewbit-opt stage: "

    def __init__(self, folder: Path, to_text: Callable[[ModuleOp], str]) -> None:
        self._folder = folder
        self._to_text = to_text

    def __call__(self, stage: Stage, module: ModuleOp) -> None:
        if stage.number == 0:
            self._clear()
        name = f"{stage.number:02}-{stage.name}.mlir"
        text = f"{self._HEADER}{stage.spec}\n{self._to_text(module)}"
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

    def __init__(self, write: Callable[[str], object], to_text: Callable[[ModuleOp], str]) -> None:
        self._write = write
        self._to_text = to_text
        self._before: tuple[str, list[str]] = ("", [])

    def __call__(self, stage: Stage, module: ModuleOp) -> None:
        name, before = self._before
        lines = self._to_text(module).splitlines()
        self._before = (stage.spec, lines)
        if stage.number == 0:
            return
        if lines == before:
            self._write(f"// {stage.spec}: no change")
        for line in unified_diff(before, lines, name, stage.spec, lineterm=""):
            self._write(line)


class Timing:
    """How long each pass took, printing and verification apart."""

    def __init__(self) -> None:
        self._stages: list[Stage] = []

    def __call__(self, stage: Stage, module: ModuleOp) -> None:
        if stage.number:
            self._stages.append(stage)

    def lines(self) -> list[str]:
        total = sum(stage.seconds for stage in self._stages)
        rows = [(stage.seconds, stage.spec) for stage in self._stages]
        return [f"{seconds:10.4f} s  {name}" for seconds, name in [*rows, (total, "total")]]
