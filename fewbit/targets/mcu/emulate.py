"""Running an artifact in QEMU: a program around its library, with the inputs inside.

What QEMU counts are instructions: it has no model of a core's pipeline or memory.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fewbit.codegen.boot.embedded import Embedded
from fewbit.errors import Error, MissingToolError, UsageError
from fewbit.program.artifact import Folder
from fewbit.runtime.native import check_inputs, dtype_of
from fewbit.targets.mcu.board import Board, board_of
from fewbit.targets.mcu.core import Core, core_of
from fewbit.targets.mcu.library import link_program
from fewbit.toolchain.archive import Member

Array = np.ndarray[Any, Any]
TIME_LIMIT_SECONDS = 600
PACKAGES = {"qemu-system-arm": "qemu-system-arm", "qemu-system-riscv32": "qemu-system-misc"}
"""Debian's packages, by the programs in them."""


@dataclass(frozen=True)
class Run:
    """What a program printed."""

    instructions: int
    stack: int
    words: Array
    """All outputs, one after another, each in whole words."""
    agreeing: tuple[int, int] | None
    """How many elements are what was expected, of how many."""


def find_emulator(board: Board) -> str:
    """Return the path of QEMU for a board."""
    found = shutil.which(board.emulator)
    if found is None:
        raise MissingToolError(
            f"{board.emulator} is not installed, which runs programs for microcontrollers here",
            hint=f"apt-get install {PACKAGES[board.emulator]}; the library itself needs nothing",
        )
    return found


def execute(board: Board, program: Path) -> Run:
    """Start a program on a board, and read what it prints."""
    command = [
        find_emulator(board), *board.arguments, "-nographic", "-monitor", "none",
        "-icount", "shift=0", "-kernel", str(program),
    ]  # fmt: skip
    if board.emulator == "qemu-system-arm":
        command += ["-serial", "none"]
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=TIME_LIMIT_SECONDS
        )
    except subprocess.TimeoutExpired as e:
        raise Error(f"{board.emulator} did not end in {TIME_LIMIT_SECONDS} s") from e
    printed = (done.stdout + done.stderr).decode(errors="replace")
    return read_run(printed)


def read_run(printed: str) -> Run:
    """Return what the text of a run says."""
    lines = printed.split()
    fields = {
        name: lines.index(name) for name in ("instructions", "stack", "outputs") if name in lines
    }
    if len(fields) < 3:
        raise Error(
            f"the program did not come to its end: {printed.strip()[:200] or 'it said nothing'}"
        )
    agreeing = None
    end = len(lines)
    if "agreeing" in lines:
        end = lines.index("agreeing")
        agreeing = int(lines[end + 1]), int(lines[end + 3])
    words = [int(word, 16) for word in lines[fields["outputs"] + 1 : end]]
    return Run(
        int(lines[fields["instructions"] + 1]),
        int(lines[fields["stack"] + 1]),
        np.array(words, np.uint32),
        agreeing,
    )


class Emulated:
    """An artifact in QEMU, called like a function."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.core: Core = core_of(folder.manifest.target)
        self.board = board_of(self.core)
        self.last: Run | None = None

    def __call__(self, *arrays: Any) -> tuple[Array, ...]:
        manifest = self.folder.manifest
        inputs = check_inputs(arrays, manifest.inputs)
        find_emulator(self.board)
        outputs = [
            (int(np.prod([s or 1 for s in t.shape], dtype=int)), dtype_of(t).itemsize)
            for t in manifest.outputs
        ]
        embedded = Embedded(inputs, outputs, manifest.arena_bytes or 0)
        members = self._members()
        program = link_program(self.core, self.board, members, f"{manifest.name}_run", embedded)
        with TemporaryDirectory(prefix="fewbit-mcu-") as folder:
            path = Path(folder, "program.elf")
            path.write_bytes(program)
            self.last = execute(self.board, path)
        return self._outputs(self.last.words)

    def stats(self) -> str:
        """Return what the last call took, for people to read."""
        plain = self.plain_stats()
        return "\n".join(f"{name:20} {value:>12,}" for name, value in plain.items())

    def plain_stats(self) -> dict[str, Any]:
        if self.last is None:
            raise UsageError("nothing was run yet, so nothing was counted")
        options = self.folder.manifest.options
        return {
            "instructions": self.last.instructions,
            "flash_bytes": int(options["flash"]),
            "ram_bytes": int(options["ram"]),
            "stack_bytes": int(options["stack"]),
            "stack_used": self.last.stack,
        }

    def _members(self) -> Sequence[Member]:
        from fewbit.toolchain.archive import read_archive

        name = f"lib{self.folder.manifest.name}.a"
        return read_archive(self.folder.file(name).read_bytes())

    def _outputs(self, words: Array) -> tuple[Array, ...]:
        found: list[Array] = []
        place = 0
        for tensor in self.folder.manifest.outputs:
            shape, dtype = [size or 1 for size in tensor.shape], dtype_of(tensor)
            count = int(np.prod(shape, dtype=int))
            length = -(-count * dtype.itemsize // 4)
            raw = words[place : place + length].view(np.uint8)[: count * dtype.itemsize]
            found.append(raw.view(dtype).reshape(shape).copy())
            place += length
        return tuple(found)
