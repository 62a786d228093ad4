"""One dispatch, compiled alone by IREE's compiler, which also says how many workgroups it has."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fewbit.errors import PassError, Place
from fewbit.toolchain.elf import sections
from fewbit.toolchain.tools import iree_tool

COUNTS = "--mlir-print-ir-after=iree-hal-translate-target-executable-variants"
"""Shows how many workgroups a configuration makes: the host computes it, and no library tells."""
LIMIT = 60
"""Seconds that one dispatch may take to compile."""

_EXPORT = re.compile(
    r"hal\.executable\.export .*?\n(?P<count>.*?)hal\.return (?P<names>[^:]*):", re.S
)
_CONSTANT = re.compile(r"(%[\w#]+) = arith\.constant (\d+) : index")


@dataclass(frozen=True)
class Binary:
    """What came out of the compiler for one configuration."""

    data: bytes
    workgroups: tuple[int, int, int]

    @property
    def instructions(self) -> bytes:
        """The code itself, without names and debugging."""
        code = [s for s in sections(self.data) if s.name == ".text"]
        return b"".join(self.data[s.offset : s.offset + s.size] for s in code)


def compile_dispatch(text: str, flags: Sequence[str], folder: Path, name: str) -> Binary:
    """Return a configured dispatch as a library."""
    data, _, workgroups = compile_executable(text, flags, folder, name)
    return Binary(data, workgroups)


def compile_executable(
    text: str, flags: Sequence[str], folder: Path, name: str
) -> tuple[bytes, str, tuple[int, int, int]]:
    """Return what IREE makes of a configured dispatch, what it printed, and how many workgroups."""
    source, library = folder / f"{name}.mlir", folder / f"{name}.so"
    source.write_text(text, encoding="utf-8")
    begun = ("--compile-mode=hal-executable", "--compile-from=executable-configurations")
    command = [
        iree_tool("iree-compile"),
        *begun,
        *flags,
        COUNTS,
        "--mlir-elide-elementsattrs-if-larger=4",
    ]
    try:
        done = subprocess.run(
            [*command, str(source), "-o", str(library)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired as e:
        raise failure(f"it takes longer than {LIMIT} s to compile") from e
    if done.returncode or not library.is_file():
        line = next((x for x in done.stderr.splitlines() if "error: " in x), "no message")
        raise failure(line.partition("error: ")[2] or line)
    return library.read_bytes(), done.stderr, _workgroups(done.stderr)


def failure(what: str) -> PassError:
    return PassError(f"IREE cannot compile this configuration: {what}", place=Place(stage="tune"))


def _workgroups(printed: str) -> tuple[int, int, int]:
    match = _EXPORT.search(printed)
    if match is None:
        raise failure("it does not say how many workgroups there are")
    constants = dict(_CONSTANT.findall(match["count"]))
    names = [name.strip() for name in match["names"].split(",")]
    if len(names) != 3 or any(name not in constants for name in names):
        raise failure("how many workgroups there are depends on a run")
    x, y, z = (int(constants[name]) for name in names)
    return x, y, z
