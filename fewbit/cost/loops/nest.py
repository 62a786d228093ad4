"""A linalg op as loops: their sizes, what each operand reads of memory, and what the body computes.

A nest is plain numbers and knows no IR. An index of an operand is a sum of loops times constants,
which covers strides, dilations and depthwise convolutions. An operand without such indices is
taken as a whole. Elements have their true widths in bits, also where bytes hold several of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal

Kind = Literal["parallel", "reduction"]
Role = Literal["input", "output"]

MOVES = ("linalg.yield", "linalg.index", "arith.constant")
"""Ops of a body that compute nothing."""
CASTS = ("arith.ext", "arith.trunc", "arith.sitofp", "arith.uitofp", "arith.fpto", "arith.index_")


@dataclass(frozen=True)
class Loop:
    extent: int
    kind: Kind
    dynamic: bool = False
    """Whether the extent is dynamic, and this number stands for it."""


@dataclass(frozen=True)
class Index:
    """One index of an operand, as a sum of loops."""

    coefficients: tuple[int, ...]
    """By loop."""
    constant: int = 0

    @cached_property
    def loops(self) -> tuple[int, ...]:
        return tuple(i for i, c in enumerate(self.coefficients) if c)

    @property
    def single(self) -> int | None:
        """The loop that is this index, where it is one alone."""
        loops = self.loops
        return loops[0] if len(loops) == 1 and self.coefficients[loops[0]] == 1 else None

    def span(self, tile: tuple[int, ...]) -> int:
        """Return the range of values over a tile, those between the first and the last included."""
        return 1 + sum(abs(self.coefficients[i]) * (tile[i] - 1) for i in self.loops)


@dataclass(frozen=True)
class Access:
    role: Role
    element: str
    """The type of an element, such as `f32`."""
    bits: int
    """The width of an element in memory: 4 where a byte holds two."""
    shape: tuple[int, ...]
    indices: tuple[Index, ...] | None
    """By dimension; None where they are not sums of loops, and any element may be read."""

    @cached_property
    def bytes(self) -> int:
        return -(-prod(self.shape) * self.bits // 8)

    @cached_property
    def loops(self) -> frozenset[int]:
        """The loops that index it."""
        return frozenset(loop for index in self.indices or () for loop in index.loops)

    def footprint(self, tile: tuple[int, ...]) -> int:
        """Return the bytes that a tile touches."""
        if self.indices is None:
            return self.bytes
        spans = zip((index.span(tile) for index in self.indices), self.shape, strict=True)
        return -(-prod(min(span, size) for span, size in spans) * self.bits // 8)

    def stride(self, loop: int) -> int:
        """Return the stride of a loop, in elements."""
        if self.indices is None:
            return 0
        elements, row = 0, 1
        for index, size in zip(reversed(self.indices), reversed(self.shape), strict=True):
            elements += index.coefficients[loop] * row
            row *= size
        return elements


@dataclass(frozen=True)
class LoopNest:
    name: str
    """The op, `linalg.matmul`."""
    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    """Inputs, then outputs."""
    body: tuple[str, ...]
    """The names of the ops that are computed at each step."""
    multiplies: int = 0
    """Multiply-adds of an iteration."""
    layer: str | None = None

    @cached_property
    def extents(self) -> tuple[int, ...]:
        return tuple(loop.extent for loop in self.loops)

    @property
    def inputs(self) -> tuple[Access, ...]:
        return tuple(a for a in self.accesses if a.role == "input")

    @property
    def outputs(self) -> tuple[Access, ...]:
        return tuple(a for a in self.accesses if a.role == "output")

    def of_kind(self, kind: Kind) -> tuple[int, ...]:
        return tuple(i for i, loop in enumerate(self.loops) if loop.kind == kind)

    @property
    def steps(self) -> int:
        return prod(self.extents)

    @property
    def macs(self) -> int:
        return self.steps * self.multiplies

    @property
    def operations(self) -> int:
        """Arithmetic of all iterations; a multiply-add counts as two."""
        return self.steps * sum(not op.startswith((*MOVES, *CASTS)) for op in self.body)

    @cached_property
    def bytes(self) -> int:
        """What is read and written at least once."""
        return sum(access.bytes for access in self.accesses)

    @property
    def shape_class(self) -> str:
        """What people call it: convolution, matmul, pooling, elementwise, ..."""
        reductions = self.of_kind("reduction")
        windows = any(len(i.loops) > 1 for a in self.inputs for i in a.indices or ())
        if self.multiplies and reductions and len(self.inputs) >= 2:
            if not windows:
                return "contraction"
            image = next(a for a in self.inputs if any(len(i.loops) > 1 for i in a.indices or ()))
            shared = self.outputs[0].loops & image.loops
            others = [a for a in self.inputs if a is not image]
            depthwise = any(shared & a.loops for a in others)
            return "depthwise convolution" if depthwise else "convolution"
        if reductions:
            return "pooling" if windows else "reduction"
        if all(op.startswith(MOVES) for op in self.body):
            return "fill" if not any(a.shape for a in self.inputs) else "copy"
        return "elementwise"

    def without_units(self) -> tuple[LoopNest, tuple[int, ...]]:
        """Return the nest without loops of one iteration, and the loops that are left.

        IREE drops some unit loops and keeps others, so an op is known by the others alone.
        """
        left = tuple(i for i, loop in enumerate(self.loops) if loop.extent != 1)

        def cut(access: Access) -> Access:
            if access.indices is None:
                return replace(access, shape=tuple(s for s in access.shape if s != 1))
            kept = [
                (size, Index(tuple(index.coefficients[i] for i in left), index.constant))
                for size, index in zip(access.shape, access.indices, strict=True)
                if size != 1
            ]
            return replace(
                access, shape=tuple(s for s, _ in kept), indices=tuple(i for _, i in kept)
            )

        loops = tuple(replace(self.loops[i], dynamic=False) for i in left)
        return replace(self, loops=loops, accesses=tuple(map(cut, self.accesses))), left

    @property
    def signature(self) -> str:
        """The same for ops that compute the same, whatever they are called and come from."""
        nest, _ = self.without_units()
        loops = "x".join(f"{loop.extent}{loop.kind[0]}" for loop in nest.loops)
        operands = " ".join(
            f"{a.role[0]}:{a.element}{'' if str(a.bits) in a.element else f'/{a.bits}'}"
            f"[{'*' if a.indices is None else ','.join(map(_text, a.indices))}]"
            for a in nest.accesses
        )
        counts = Counter(op for op in self.body if op not in MOVES)
        body = ",".join(f"{op}*{n}" if n > 1 else op for op, n in sorted(counts.items()))
        return f"{loops} {operands} {{{body}}}"


def _text(index: Index) -> str:
    parts = [f"{c if c != 1 else ''}d{i}" for i, c in enumerate(index.coefficients) if c]
    parts += [str(index.constant)] if index.constant or not parts else []
    return "+".join(parts)
