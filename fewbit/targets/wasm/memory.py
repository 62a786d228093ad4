"""Where everything lies in the memory of a module: known before anything is compiled.

The stack comes first, so that what overflows it is a trap and no silent error; then weights,
inputs, outputs and the arena, and behind them what the linker places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fewbit.codegen.interface import Port
from fewbit.errors import UnsupportedError

STACK_BYTES = 64 << 10
LINE = 64
MOST_BYTES = 1 << 31
"""Addresses that have no sign."""


@dataclass(frozen=True)
class MemoryMap:
    """Addresses, in bytes."""

    weights: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    arena: int
    end: int


def map_memory(
    weights: int, inputs: Sequence[Port], outputs: Sequence[Port], arena: int
) -> MemoryMap:
    """Place weights, inputs, outputs and an arena of these sizes."""
    places: list[int] = []
    at = STACK_BYTES
    sizes = [weights, *map(_port_bytes, (*inputs, *outputs)), arena]
    for size in sizes:
        places.append(at)
        at += -(-size // LINE) * LINE
    if at > MOST_BYTES:
        raise UnsupportedError(
            f"the program needs {at:,} bytes of memory, and WebAssembly has {MOST_BYTES:,}",
            hint="fewer bits make weights smaller (w4a8), and smaller inputs what lies between",
        )
    first, *ports, last = places
    return MemoryMap(first, tuple(ports[: len(inputs)]), tuple(ports[len(inputs) :]), last, at)


def _port_bytes(port: Port) -> int:
    return (port.elements or 1) * port.bytes
