"""A choice of tiles for a loop nest, from the outermost to those that become vectors.

Loops of one step have no tiles: schedules are for nests without them, so that one holds for an op
whichever of its unit dimensions a compiler keeps. 0 leaves a loop whole at that level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Tile = tuple[int, ...]
How = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True)
class Schedule:
    """The tile sizes of a nest, or the settings of a kernel."""

    distribution: Tile
    """What one workgroup has, of parallel loops."""
    vector: Tile
    """What is in registers: of parallel loops results, of reductions what is unrolled."""
    cache: Tile = ()
    """Tiles between the two; empty where there are none."""
    how: How = ()
    """What else is chosen, by name: on GPUs instructions, what is in shared memory, a kernel."""

    def as_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = {
            "distribution": list(self.distribution),
            "vector": list(self.vector),
        }
        plain |= {"cache": list(self.cache)} if self.cache else {}
        return plain | ({"how": dict(self.how)} if self.how else {})

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Schedule:
        levels = {name: _tile(stored[name]) for name in ("distribution", "vector")}
        how = tuple(stored.get("how", {}).items())
        return cls(**levels, cache=_tile(stored.get("cache", ())), how=how)

    def __str__(self) -> str:
        levels = [level for level in (self.distribution, self.cache, self.vector) if level]
        words = [f"{name} {value}" for name, value in self.how]
        return " / ".join(["x".join(map(str, level)) for level in levels] + words)


def _tile(stored: Any) -> Tile:
    tile = tuple(stored)
    if not all(isinstance(size, int) and size >= 0 for size in tile):
        raise ValueError(f"{stored!r} is no tile")
    return tile


def spread(tile: Sequence[int], left: Sequence[int], loops: int, unit: int) -> list[int]:
    """Return a tile for all loops of a nest, given that of the loops that are left in it."""
    sizes = [unit] * loops
    for loop, size in zip(left, tile, strict=True):
        sizes[loop] = size
    return sizes
