"""Blocks of GGUF files keep their integers, and stand for exactly what `gguf` dequantizes."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from numpy.typing import NDArray

from fewbit.language.gguf_blocks import TYPES, holds_integers, read_blocks
from fewbit.numerics import Quantized

ROWS, COLUMNS = 5, 512
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


def random_blocks(kind: Kind, seed: int) -> NDArray[np.uint8]:
    """Return a matrix of blocks of random bits, but for scales, which are numbers."""
    rng = np.random.default_rng(seed)
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (ROWS * COLUMNS // elements, size), np.uint8)
    for place in HALVES[kind]:
        scale = rng.standard_normal((len(blocks), 1)).astype("<f2")
        blocks[:, place : place + 2] = scale.view(np.uint8)
    if kind == Kind.TQ1_0:  # five digits of base 3 are no byte whatever
        digits = rng.integers(0, 3**5, (len(blocks), 52))
        blocks[:, :52] = (digits * 256 + 3**5 - 1) // 3**5
    if kind == Kind.TQ2_0:
        fields = rng.integers(0, 3, (len(blocks), 64, 4)).astype(np.uint8)
        blocks[:, :64] = (fields << np.arange(0, 8, 2, dtype=np.uint8)).sum(2, dtype=np.uint8)
    return blocks.reshape(ROWS, -1)


def read(kind: Kind, data: NDArray[np.uint8]) -> Quantized:
    assert holds_integers(int(kind), (ROWS, COLUMNS))
    return read_blocks(data, int(kind), (ROWS, COLUMNS))


@pytest.mark.parametrize("kind", HALVES, ids=lambda kind: kind.name)
def test_values_are_those_of_gguf(kind: Kind) -> None:
    for seed in range(4):
        data = random_blocks(kind, seed)
        expected = gguf.quants.dequantize(data, kind)
        np.testing.assert_array_equal(read(kind, data).dequantize(), expected)


@pytest.mark.parametrize("kind", HALVES, ids=lambda kind: kind.name)
def test_widths_and_groups(kind: Kind) -> None:
    weight = read(kind, random_blocks(kind, 0))
    name = kind.name
    width = "1.58" if name.startswith("TQ") else name[1]
    assert str(weight.width) == width
    assert weight.scale.shape[0] == ROWS
    group = COLUMNS // weight.scale.shape[1]
    assert group == {"2_K": 16, "3_K": 16, "6_K": 16, "Q1_0": 256, "Q2_0": 256}.get(name[1:], 32)
    assert (weight.offset is not None) == (name in ("Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K"))


def test_every_type_is_tested() -> None:
    assert {int(kind) for kind in HALVES} == set(TYPES)
    for kind in HALVES:
        assert gguf.GGML_QUANT_SIZES[kind] == (TYPES[kind].elements, TYPES[kind].size)


@pytest.mark.parametrize("kind", [Kind.F32, Kind.F16, Kind.BF16, Kind.IQ4_NL])
def test_other_types_have_no_integers(kind: Kind) -> None:
    assert not holds_integers(int(kind), (1, 256))


def test_rows_that_end_within_a_block_are_left_to_floats() -> None:
    assert not holds_integers(int(Kind.Q4_K), (1, 200))
    assert not holds_integers(int(Kind.Q8_0), (32,))
