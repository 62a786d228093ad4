"""Random blocks of every type that a GGUF file has."""

from __future__ import annotations

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from numpy.typing import NDArray

HALVES = {
    Kind.Q4_0: [0],
    Kind.Q4_1: [0, 2],
    Kind.Q5_0: [0],
    Kind.Q5_1: [0, 2],
    Kind.Q8_0: [0],
    Kind.Q2_K: [80, 82],
    Kind.Q3_K: [108],
    Kind.Q4_K: [0, 2],
    Kind.Q5_K: [0, 2],
    Kind.Q6_K: [208],
    Kind.TQ1_0: [52],
    Kind.TQ2_0: [64],
}
"""Where in a block its f16 numbers are."""


def random_blocks(kind: Kind, seed: int, rows: int, columns: int) -> NDArray[np.uint8]:
    """Return a matrix of blocks of random bits, but for scales, which are numbers."""
    rng = np.random.default_rng(seed)
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (rows * columns // elements, size), np.uint8)
    for place in HALVES[kind]:
        scale = rng.standard_normal((len(blocks), 1)).astype("<f2")
        blocks[:, place : place + 2] = scale.view(np.uint8)
    if kind == Kind.TQ1_0:  # five digits of base 3 are no byte whatever
        digits = rng.integers(0, 3**5, (len(blocks), 52))
        blocks[:, :52] = (digits * 256 + 3**5 - 1) // 3**5
    if kind == Kind.TQ2_0:
        fields = rng.integers(0, 3, (len(blocks), 64, 4)).astype(np.uint8)
        blocks[:, :64] = (fields << np.arange(0, 8, 2, dtype=np.uint8)).sum(2, dtype=np.uint8)
    return blocks.reshape(rows, -1)
