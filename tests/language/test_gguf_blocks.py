"""Blocks of GGUF files keep their integers, and stand for exactly what `gguf` dequantizes."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from numpy.typing import NDArray

from fewbit.language.gguf_blocks import TYPES, holds_integers, read_blocks
from fewbit.numerics import Quantized
from tests.language.blocks import HALVES, random_blocks

ROWS, COLUMNS = 5, 512


def read(kind: Kind, data: NDArray[np.uint8]) -> Quantized:
    assert holds_integers(int(kind), (ROWS, COLUMNS))
    return read_blocks(data, int(kind), (ROWS, COLUMNS))


@pytest.mark.parametrize("kind", HALVES, ids=lambda kind: kind.name)
def test_values_are_those_of_gguf(kind: Kind) -> None:
    for seed in range(4):
        data = random_blocks(kind, seed, ROWS, COLUMNS)
        expected = gguf.quants.dequantize(data, kind)
        np.testing.assert_array_equal(read(kind, data).dequantize(), expected)


@pytest.mark.parametrize("kind", HALVES, ids=lambda kind: kind.name)
def test_widths_and_groups(kind: Kind) -> None:
    weight = read(kind, random_blocks(kind, 0, ROWS, COLUMNS))
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
