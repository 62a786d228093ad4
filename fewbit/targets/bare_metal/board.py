"""Boards: how a program says what came of it, and how it ends.

| | text | end |
|---|---|---|
| `htif` | the host, by a word in memory that it watches (`tohost`) | the same |
| `vexii` | the test bench of VexiiRiscv, which prints bytes | symbols `pass` and `fail` |
| `virt` | the UART of QEMU's machine `virt` | its test device |

Every program writes to `tohost` at its end, and stays at `pass` or `fail`: both are harmless where
nobody looks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from fewbit.errors import UsageError
from fewbit.targets.options import TEXT, BootOptions, option

BASE = 0x8000_0000
PAGE = 0x1000
UartKind = Literal["putc", "16550", "sifive"]
_UART = re.compile(r"(?P<kind>putc|16550|sifive)@(?P<address>0x[0-9a-fA-F]+)")


@dataclass(frozen=True)
class Uart:
    """What prints bytes; `putc` needs no wait between them."""

    kind: UartKind
    address: int


@dataclass(frozen=True)
class Board:
    name: str
    uart: Uart | None
    """None where the host prints."""
    test_device: int | None = None
    """The address that ends QEMU's machine."""
    base: int = BASE
    """Where memory begins."""


BOARDS = {
    board.name: board
    for board in (
        Board("htif", None),
        Board("vexii", Uart("putc", 0x1000_0000)),
        Board("virt", Uart("16550", 0x1000_0000), 0x10_0000),
    )
}


@dataclass(frozen=True)
class BareMetalOptions(BootOptions):
    """The options of targets whose programs boot on a core."""

    base: str | None = option(
        TEXT,
        "Where the memory of the core begins, 0x80000000.",
        metavar="ADDRESS",
        see="[cores](cores.md#boards)",
    )
    board: str | None = option(
        TEXT,
        f"How the program prints and ends: {', '.join(BOARDS)}.",
        metavar="NAME",
        see="[cores](cores.md#boards)",
    )
    uart: str | None = option(
        TEXT,
        "A UART to print on, 16550@0x10000000; or sifive@, putc@.",
        metavar="KIND@ADDRESS",
        see="[cores](cores.md#boards)",
    )

    def board_or(self, default: str) -> Board:
        """Return the board that was asked for, or the default."""
        name = self.board or default
        if name not in BOARDS:
            raise UsageError(f"there is no board '{name}'", hint=f"boards: {', '.join(BOARDS)}")
        board = BOARDS[name]
        if self.uart is not None:
            board = replace(board, uart=_uart_of(self.uart))
        return board if self.base is None else replace(board, base=_base_of(self.base))


def _uart_of(text: str) -> Uart:
    parsed = _UART.fullmatch(text)
    if parsed is None:
        raise UsageError(
            f"'{text}' is no UART", hint="16550@0x10000000, sifive@0x10020000 or putc@0x10000000"
        )
    kind: UartKind = parsed["kind"]  # pyright: ignore[reportAssignmentType]
    return Uart(kind, int(parsed["address"], 16))


def _base_of(text: str) -> int:
    try:
        base = int(text, 0)
    except ValueError as e:
        raise UsageError(f"'{text}' is no address", hint="write 0x80000000") from e
    if base % PAGE or not 0 < base < 1 << 32:
        raise UsageError(
            f"memory cannot begin at {text}", hint=f"a multiple of {PAGE:#x}, below {1 << 32:#x}"
        )
    return base
