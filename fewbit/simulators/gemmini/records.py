"""Streams as data: each command with its two operands, and the buffers that they point into.

A record is 24 bytes: the command's number, for each operand the number of its buffer (0 for none),
and the operands themselves, which hold offsets where they point into a buffer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from fewbit.simulators.gemmini.command import Command, Pointer
from fewbit.simulators.gemmini.commands import decode

_LAYOUT = struct.Struct("<3B5xQQ")
RECORD_BYTES = _LAYOUT.size


class Record(NamedTuple):
    """A command whose addresses have no place yet."""

    funct: int
    operands: tuple[int, int]
    buffers: tuple[str | None, str | None]


def record_of(command: Command) -> Record:
    pointers = command.pointers
    offsets = {pointer.buffer: 0 for pointer in pointers.values()}
    funct, rs1, rs2 = command.bind(offsets).encode()
    first, second = (pointers[n].buffer if n in pointers else None for n in (1, 2))
    return Record(funct, (rs1, rs2), (first, second))


def command_of(record: Record) -> Command:
    """Return the command with pointers in the place of offsets."""
    command = decode(record.funct, *record.operands)
    moved = {
        name: Pointer(buffer, getattr(command, name))
        for name, place in command.places().items()
        if place.kind == "dram" and (buffer := record.buffers[place.operand - 1]) is not None
    }
    return replace(command, **moved) if moved else command


def pack(stream: Iterable[Command], buffers: Sequence[str]) -> bytes:
    """Pack a stream into bytes; buffers are numbered from 1."""
    numbers: dict[str | None, int] = {None: 0} | {b: n for n, b in enumerate(buffers, 1)}
    records = map(record_of, stream)
    return b"".join(
        _LAYOUT.pack(r.funct, *(numbers[b] for b in r.buffers), *r.operands) for r in records
    )


def unpack(data: bytes, buffers: Sequence[str]) -> list[Command]:
    """Unpack a stream."""
    names = (None, *buffers)
    return [
        command_of(Record(funct, (rs1, rs2), (names[first], names[second])))
        for funct, first, second, rs1, rs2 in _LAYOUT.iter_unpack(data)
    ]
