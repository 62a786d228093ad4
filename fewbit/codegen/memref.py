"""Memrefs as functions that MLIR compiles take them: two pointers, an offset, sizes, strides."""

from __future__ import annotations

from collections.abc import Sequence

from fewbit.llvm.types import I64, PTR, Int, Type
from fewbit.llvm.values import Operand, Value

Size = int | Value
"""A number, or what only a run knows."""


def memref_types(rank: int, index: Int = I64) -> list[Type]:
    return [PTR, PTR, index, *[index] * (2 * rank)]


def descriptor(pointer: Value, sizes: Sequence[Size]) -> list[Operand]:
    """Return the arguments for an array without gaps."""
    strides: list[Size] = []
    stride: Size = 1
    for size in reversed(sizes):
        strides.insert(0, stride)
        if len(strides) < len(sizes):
            stride = multiply(stride, size)
    return [pointer, pointer, 0, *sizes, *strides]


def multiply(a: Size, b: Size) -> Size:
    if isinstance(a, Value):
        return a if b == 1 else a * b
    return a * b if isinstance(b, int) else b if a == 1 else b * a
