"""Boards: where flash and memory are, and which machine of QEMU has a core of the kind.

QEMU counts instructions, not cycles. Its boards for Cortex-M are Arm's development boards; for
Armv6-M it has one with 16 KB of memory, so such code runs on a Cortex-M3, which executes all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.errors import UsageError
from fewbit.targets.mcu.core import Core


@dataclass(frozen=True)
class Memory:
    start: int
    bytes: int


@dataclass(frozen=True)
class Board:
    """A machine that a program can start on."""

    name: str
    flash: Memory
    ram: Memory
    emulator: str
    """The program of QEMU's that has the machine."""
    arguments: tuple[str, ...]
    megahertz: int = 0
    """The frequency of the timer that counts; 0 where instructions are counted."""


MEGABYTE = 1 << 20


def _mps(name: str, flash: int, ram: int, megahertz: int, ram_bytes: int = 4 * MEGABYTE) -> Board:
    size = MEGABYTE // 2 if name == "mps3-an547" else 4 * MEGABYTE
    return Board(
        name,
        Memory(flash, size),
        Memory(ram, ram_bytes),
        "qemu-system-arm",
        ("-M", name, "-semihosting-config", "enable=on,target=native"),
        megahertz,
    )


_RISCV = Board(
    "virt",
    Memory(0x8000_0000, 8 * MEGABYTE),
    Memory(0x8080_0000, 8 * MEGABYTE),
    "qemu-system-riscv32",
    ("-M", "virt", "-bios", "none"),
)
_BOARDS = {
    "cortex-m0plus": _mps("mps2-an385", 0, 0x2000_0000, 25),
    "cortex-m3": _mps("mps2-an385", 0, 0x2000_0000, 25),
    "cortex-m4": _mps("mps2-an386", 0, 0x2000_0000, 25),
    "cortex-m7": _mps("mps2-an500", 0, 0x2000_0000, 25),
    "cortex-m33": _mps("mps2-an505", 0x1000_0000, 0x3800_0000, 20),
    "cortex-m55": _mps("mps3-an547", 0, 0x0100_0000, 32, 2 * MEGABYTE),
}


def board_of(core: Core) -> Board:
    """Return the board of QEMU's that a core's programs start on."""
    return _BOARDS.get(core.name, _RISCV)


def memory_of(text: str) -> int:
    """Return bytes as people write them: 65536, 64k, 1M."""
    units = {"k": 1 << 10, "m": 1 << 20}
    unit = units.get(text[-1:].lower(), 1)
    digits = text[:-1] if unit > 1 else text
    if not digits.isdigit():
        raise UsageError(f"'{text}' is no size of memory", hint="write bytes, or 64k, or 1M")
    return int(digits) * unit
