"""Layers as GPTQ and AWQ checkpoints pack them, written from the formats' descriptions.

One field at a time, in Python's integers of any length, so that it shares nothing with the reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def words(fields: Sequence[int], bits: int) -> list[int]:
    """Fields one after the other from the lowest bit, cut into 32-bit words."""
    stream = sum(int(field) << (i * bits) for i, field in enumerate(fields))
    count = len(fields) * bits // 32
    assert count * 32 == len(fields) * bits
    return [stream >> (32 * i) & 0xFFFFFFFF for i in range(count)]


def as_int32(rows: list[list[int]]) -> Array:
    return np.array(rows, np.uint32).view(np.int32)


def gptq(u: Array, z: Array, s: Array, bits: int, *, version: int = 1) -> dict[str, Array]:
    """A layer of integers [N, K], zero points and scales [N, G]; version 1 stores z - 1."""
    inputs, groups = u.shape[1], s.shape[1]
    stored = z - 1 if version == 1 else z
    return {
        "qweight": np.ascontiguousarray(as_int32([words(list(row), bits) for row in u]).T),
        "qzeros": as_int32([words(list(row), bits) for row in stored.T]),
        "scales": np.ascontiguousarray(s.T).astype(np.float16),
        "g_idx": np.repeat(np.arange(groups, dtype=np.int32), inputs // groups),
    }


def awq(u: Array, z: Array, s: Array) -> dict[str, Array]:
    """A layer in AutoAWQ's 'gemm' layout: words of eight outputs."""

    def pack_rows(rows: Array) -> Array:
        made: list[list[int]] = []
        for row in rows:
            eights = [row[i : i + 8] for i in range(0, len(row), 8)]
            made.append([words([eight[i] for i in AWQ_ORDER], 4)[0] for eight in eights])
        return as_int32(made)

    return {
        "qweight": pack_rows(u.T),
        "qzeros": pack_rows(z.T),
        "scales": np.ascontiguousarray(s.T).astype(np.float16),
    }


def random_layer(
    rng: np.random.Generator, outputs: int, inputs: int, groups: int, bits: int
) -> tuple[Array, Array, Array]:
    """Integers and zero points that count from 0, and scales that float16 holds."""
    u = rng.integers(0, 2**bits, (outputs, inputs))
    z = rng.integers(1, 2**bits, (outputs, groups))
    s = rng.uniform(0.01, 0.1, (outputs, groups)).astype(np.float16).astype(np.float32)
    return u, z, s


def values(u: Array, z: Array, s: Array) -> Array:
    size = u.shape[1] // s.shape[1]
    zeros, scales = (np.repeat(x, size, axis=1) for x in (z, s))
    return (u - zeros).astype(np.float32) * scales
