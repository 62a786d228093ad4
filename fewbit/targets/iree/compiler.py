"""A call of iree-compile: in a process of its own, which a crash ends and nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.base.progress import say
from fewbit.errors import Error, MissingToolError, PassError
from fewbit.targets.iree.diagnostics import error_of, read_messages
from fewbit.targets.iree.source import Source
from fewbit.toolchain.iree_devices import DATA_TILING, ONE_REDUCTION
from fewbit.toolchain.tools import tool_path

PHASES = ("flow", "stream", "hal", "vm")
"""Those of IREE's phases that one can stop at and go on from."""
LOCATIONS = ("--mlir-print-debuginfo", "--mlir-print-local-scope")
QUIET = ("while creating CPU target",)
"""Warnings that are not passed on: a generic processor is what a triple asks for."""


@dataclass(frozen=True)
class IreeOutput:
    """What one run of iree-compile gave."""

    data: bytes
    """A module, or the text after the phase at which IREE was stopped."""
    phases: Mapping[str, str] = field(default_factory=dict[str, str])
    """The text after each phase, with locations; none where it was stopped."""


def iree_compile(
    path: Path,
    flags: Sequence[str],
    *,
    source: Source | None = None,
    compile_to: str | None = None,
    compile_from: str | None = None,
    within: Path | None = None,
) -> IreeOutput:
    """Compile a file by IREE: to a module, or to the text after a phase.

    Paths among the flags are relative to the folder `within`, if it is given: IREE writes some of
    them into machine code, which must not depend on where a temporary folder is.
    """
    with TemporaryDirectory(prefix="fewbit-iree-") as folder:
        result, phases = Path(folder) / "made", Path(folder) / "phases"
        command = [_tool("iree-compile"), *flags, str(path), "-o", str(result)]
        command += [f"--iree-hal-executable-object-search-path={path.parent}"]
        command += [f"--compile-to={compile_to}"] if compile_to else []
        command += [f"--compile-from={compile_from}"] if compile_from else []
        if not compile_to:
            command += [f"--dump-compilation-phases-to={phases}", *LOCATIONS]
        _run_in_some_way(command, source, within)
        return IreeOutput(result.read_bytes(), _texts(phases))


def _run_in_some_way(command: Sequence[str], source: Source | None, within: Path | None) -> None:
    """Run with all that makes programs fast, and without some of it where that fails.

    The first error is the one to show.
    """
    try:
        run(command, source, within)
    except PassError as error:
        for left_out, plain in _plainer_ways(command):
            with suppress(Error):
                run(plain, source, within)
                say(f"compiled without {left_out}, with which IREE fails: {error.what}")
                return
        raise


def _plainer_ways(command: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield what is left out, and the command without it."""
    rows = [word for word in command if word not in DATA_TILING]
    if len(rows) < len(command):
        yield "data tiling", rows
    yield "chains of reductions in one dispatch", [*command, ONE_REDUCTION]


def compile_text(
    source: Source,
    flags: Sequence[str],
    name: str,
    compile_to: str | None = None,
    within: Path | None = None,
) -> IreeOutput:
    """Return the same of a program's text; modules are called by its name."""
    with TemporaryDirectory(prefix="fewbit-iree-") as folder:
        path = Path(folder) / f"{name}.mlir"
        path.write_text(source.text, encoding="utf-8")
        for file, data in source.files.items():
            (path.parent / file).write_bytes(data)
        return iree_compile(path, flags, source=source, compile_to=compile_to, within=within)


def _texts(folder: Path) -> dict[str, str]:
    """Return what IREE wrote after its phases, each into `NAME.NUMBER.PHASE.mlir`."""
    files = {file.stem.rpartition(".")[2]: file for file in folder.glob("*.mlir")}
    return {phase: files[phase].read_text() for phase in PHASES if phase in files}


def run(command: Sequence[str], source: Source | None = None, within: Path | None = None) -> str:
    """Return its standard output; raise what it prints as an error, whatever its status."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=within)
    error = error_of(done.returncode, done.stderr, source)
    if error is not None:
        raise error
    for message in read_messages(done.stderr):
        if not any(words in message.what for words in QUIET):
            say(f"iree-compile: {message.what}")
    return done.stdout


def _tool(name: str) -> str:
    path = tool_path(name)
    if path is None:
        raise MissingToolError(
            f"{name} is not installed", hint="pip install iree-base-compiler==3.13.0"
        )
    return path
