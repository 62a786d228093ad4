"""Where everything lies in the memory of a module: known before anything is compiled.

The stack comes first, so that what overflows it is a trap and no silent error; then weights,
inputs, outputs and the arena, and behind them what the linker places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fewbit.codegen.interface import Port

STACK_BYTES = 64 << 10
LINE = 64
PAGE = 64 << 10


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
    first, *ports, last = places
    return MemoryMap(first, tuple(ports[: len(inputs)]), tuple(ports[len(inputs) :]), last, at)


def _port_bytes(port: Port) -> int:
    return (port.elements or 1) * port.bytes
