"""What MiCo's ten dot products compute, on integers.

`dotAxB` takes elements of A bits from rs1 and of B bits from rs2, lowest first, signed; one bit
means +1 if clear and -1 if set. Where B < A, rs2 has more elements than rs1: a hidden offset says
which of them, and goes on with every such instruction, around the word.
"""

from __future__ import annotations


def step(a: int, b: int, xlen: int) -> int:
    """Return how many bits of rs2 an instruction takes; the offset advances by so many."""
    return xlen * b // a


def elements(word: int, width: int, count: int) -> list[int]:
    """Return the lowest elements of a word."""
    mask, half = (1 << width) - 1, 1 << width - 1
    fields = [word >> width * i & mask for i in range(count)]
    if width == 1:
        return [1 - 2 * bit for bit in fields]
    return [(value ^ half) - half for value in fields]


def dot(a: int, b: int, first: int, second: int, offset: int, xlen: int) -> tuple[int, int]:
    """Return the dot product, and the offset behind it."""
    count = xlen // a
    taken = second >> offset if a != b else second
    products = zip(elements(first, a, count), elements(taken, b, count), strict=True)
    return sum(x * y for x, y in products), (offset + step(a, b, xlen)) % xlen
