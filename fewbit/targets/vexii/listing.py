"""What is in a program: its functions, and their instructions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from fewbit.errors import UsageError
from fewbit.program.artifact import Folder
from fewbit.riscv import elf
from fewbit.riscv.encoding import disassemble_all
from fewbit.targets.vexii.simulate import PROGRAM


@dataclass(frozen=True)
class Listed:
    """A function of a program."""

    name: str
    address: int
    words: list[int]


def functions_of(folder: Folder) -> list[Listed]:
    """Return all functions of an artifact's program, by address."""
    program = elf.read(folder.file(PROGRAM).read_bytes())
    return sorted(_functions(program), key=lambda each: each.address)


def _functions(program: elf.Executable) -> Iterator[Listed]:
    for segment in program.segments:
        if not segment.executable:
            continue
        for name, symbol in program.symbols.items():
            start = symbol.address - segment.address
            data = segment.data[start : start + symbol.size]
            if symbol.function and start >= 0 and data:
                words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]
                yield Listed(name, symbol.address, words)


def disassembly(folder: Folder, pattern: str) -> str:
    """Return the instructions of functions whose names fit a pattern, `dot_*`."""
    listing = instructions(folder, pattern)
    return "\n\n".join(f"{name}:\n" + "\n".join(lines) for name, lines in listing.items())


def instructions(folder: Folder, pattern: str) -> dict[str, list[str]]:
    """Return lines of assembly, by function."""
    xlen = int(folder.manifest.options["xlen"])
    every = functions_of(folder)
    functions = [each for each in every if fnmatchcase(each.name, pattern)]
    if not functions:
        raise UsageError(
            f"the program has no function '{pattern}'",
            hint=f"it has {', '.join(each.name for each in every[:8])}, ...",
        )
    return {
        each.name: disassemble_all(each.words, xlen, each.address).splitlines()
        for each in functions
    }
