"""Blocks of floats, rotated by an orthonormal Hadamard matrix.

    void fewbit_rotate_blocks_*(ptr x, ptr y, i64 blocks, i64 thread, i64 threads)

The operations are those of `numerics/hadamard.py`, to the bit. A block is held in vectors: within
each, elements are added to and subtracted from those that a shuffle brings beside them, and then
vectors to and from each other. Threads share the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.kernel import Kernel
from fewbit.numerics.hadamard import check_size, factor
from fewbit.toolchain.isa import Isa

LARGEST = 256
"""Longer blocks would not stay in registers."""
SIGN = -0x80000000


@dataclass(frozen=True)
class RotateBlocks(Kernel):
    """Floats times a block Hadamard matrix."""

    block: int = 64

    def __post_init__(self) -> None:
        check_size(self.block)

    @staticmethod
    def takes(isa: Isa, block: int) -> bool:
        """Return whether a block is whole vectors, and not too many."""
        return isa.lanes <= block <= LARGEST

    @property
    def symbol(self) -> str:
        return f"fewbit_rotate_blocks_{self.block}"

    def function(self) -> Function:
        parameters = "ptr x, ptr y, i64 blocks, i64 thread, i64 threads"
        f = Function(self.isa, self.symbol, parameters, public=True)
        x, y, blocks, thread, threads = f.parameters
        lanes, size = self.isa.lanes, self.block
        by = f.broadcast(f.number(factor(size)))
        with f.loop(blocks * thread // threads, blocks * (thread + 1) // threads) as loop:
            start = loop.index * size
            here, to = f.at(x, start), f.at(y, start)
            vectors = [f.load(f.vector, here, i) for i in range(size // lanes)]
            for bit in range(lanes.bit_length() - 1):
                vectors = [_within(f, vector, 1 << bit) for vector in vectors]
            for bit in range((size // lanes).bit_length() - 1):
                vectors = _between(vectors, 1 << bit)
            for i, vector in enumerate(vectors):
                f.store(vector * by, to, i)
        return f


def _within(f: Function, vector: Value, distance: int) -> Value:
    """Return sums and differences of elements that are so far apart."""
    lanes = range(f.isa.lanes)
    others = f.shuffle(vector, [lane ^ distance for lane in lanes])
    signs = f.constants("i32", [SIGN if lane & distance else 0 for lane in lanes])
    return others + f.bits(f.bits(vector, signs.type) ^ signs, vector.type)


def _between(vectors: list[Value], distance: int) -> list[Value]:
    """Return sums and differences of vectors that are so far apart."""
    return [
        vectors[i ^ distance] - vector if i & distance else vector + vectors[i ^ distance]
        for i, vector in enumerate(vectors)
    ]
