"""Memory as a plan knows it: a place in one of the program's buffers, with sizes and strides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

BYTES = {
    "f64": 8, "f32": 4, "f16": 2, "bf16": 2,
    "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "index": 8,
}  # fmt: skip
"""The size of an element, by its type as MLIR writes it."""

Shift = Any
"""Elements by which a view lies further on, where only a run knows: values of the program."""


@dataclass(frozen=True)
class Memory:
    """A view of a buffer; sizes and strides are in elements."""

    buffer: str
    element: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    byte: int = 0
    """Where it begins."""
    shifts: tuple[tuple[Shift, int], ...] = ()
    """Values and what each is multiplied by; their sum is how much further on it begins."""
    owner: int = 0
    """The number of the allocation in the arena that it is in."""

    @property
    def count(self) -> int:
        return prod(self.sizes)

    @property
    def is_dense(self) -> bool:
        """Whether its elements are neighbours, in their order."""
        expected = row_major(self.sizes)
        pairs = zip(self.sizes, self.strides, expected, strict=True)
        return all(size == 1 or stride == dense for size, stride, dense in pairs)

    @property
    def reach(self) -> int:
        """Elements from the first to the last, both counted."""
        return 1 + sum((n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True))

    @property
    def span(self) -> tuple[str, int, int]:
        """The buffer, and the bytes of it that may be touched."""
        if self.shifts:
            return self.buffer, 0, 1 << 62
        return self.buffer, self.byte, self.byte + self.reach * BYTES[self.element]

    def meets(self, other: Memory) -> bool:
        (a, a0, a1), (b, b0, b1) = self.span, other.span
        return a == b and a0 < b1 and b0 < a1

    def at(self, offset: int) -> Memory:
        """Return the view further on by so many elements."""
        return replace(self, byte=self.byte + offset * BYTES[self.element])


def row_major(sizes: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = list[int](), 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def dense(buffer: str, element: str, sizes: tuple[int, ...], byte: int = 0) -> Memory:
    return Memory(buffer, element, sizes, row_major(sizes), byte)


def collapse(memory: Memory, groups: list[list[int]]) -> Memory:
    """Join neighbouring dimensions."""
    sizes, strides = list[int](), list[int]()
    for group in groups:
        kept = [axis for axis in group if memory.sizes[axis] != 1] or group[-1:]
        sizes.append(prod(memory.sizes[axis] for axis in group))
        strides.append(memory.strides[kept[-1]])
    return replace(memory, sizes=tuple(sizes), strides=tuple(strides))


def expand(memory: Memory, groups: list[list[int]], sizes: tuple[int, ...]) -> Memory:
    """Split dimensions into those of `sizes`."""
    strides = [0] * len(sizes)
    for group, step in zip(groups, memory.strides, strict=True):
        for axis in reversed(group):
            strides[axis] = step
            step *= sizes[axis]
    return replace(memory, sizes=sizes, strides=tuple(strides))
