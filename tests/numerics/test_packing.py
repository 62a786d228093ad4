"""Packing against an oracle of Python's big integers; its speed and its memory."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import ShapeError, WidthError
from fewbit.numerics import WIDTHS, Width, pack, packing, row_bytes, unpack

widths = st.sampled_from(WIDTHS)


def values_of(width: Width, shape: tuple[int, ...], seed: int = 0) -> npt.NDArray[np.int8]:
    values = np.random.default_rng(seed).integers(width.qmin, width.qmax + 1, shape, np.int8)
    if width.is_binary:
        values[values == 0] = 1
    return values


def packed_row(row: list[int], width: Width, align: int = 1) -> bytes:
    """The definition: fields of b bits, first value lowest, one bit being 1 for -1."""
    fields = [int(v < 0) if width.is_binary else v % (1 << width.bits) for v in row]
    fields += [0] * (-len(row) % align)
    number = sum(field << (i * width.bits) for i, field in enumerate(fields))
    return number.to_bytes((len(fields) * width.bits + 7) // 8, "little")


@settings(deadline=None)
@given(widths, st.data())
def test_packs_as_defined_and_unpacks_to_the_same(width: Width, data: st.DataObject):
    shape = data.draw(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 70)))
    allowed = [v for v in range(width.qmin, width.qmax + 1) if v or not width.is_binary]
    count = int(np.prod(shape))
    drawn = data.draw(st.lists(st.sampled_from(allowed), min_size=count, max_size=count))
    values = np.array(drawn, np.int8).reshape(shape)
    packed = pack(values, width)
    assert packed.dtype == np.uint8
    assert packed.shape == (*shape[:2], row_bytes(shape[2], width))
    rows = values.reshape(-1, shape[2]).tolist()
    assert packed.tobytes() == b"".join(packed_row(row, width) for row in rows)
    unpacked = unpack(packed, width, shape[2])
    assert unpacked.dtype == np.int8
    assert np.array_equal(unpacked, values)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize("k", [1, 7, 8, 9, 25, 31, 53, 61, 255, 256])
def test_every_width_and_awkward_k(width: Width, k: int):
    values = values_of(width, (3, k))
    packed = pack(values, width)
    expected = b"".join(packed_row(row, width) for row in values.tolist())
    assert packed.tobytes() == expected
    assert np.array_equal(unpack(packed, width, k), values)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize("k", [40, 50, 64, 131, 200])
def test_blocks_join_without_a_seam(width: Width, k: int, monkeypatch: pytest.MonkeyPatch):
    values = values_of(width, (9, k))
    expected = b"".join(packed_row(row, width) for row in values.tolist())
    monkeypatch.setattr(packing, "_BLOCK", 64)
    packed = pack(values, width)
    assert packed.tobytes() == expected
    assert np.array_equal(unpack(packed, width, k), values)


@pytest.mark.parametrize("width", [1, 1.58, 2, 4, 8])
@pytest.mark.parametrize("k", [1, 25, 32, 33, 61])
def test_aligned_layout_pads_elements_with_zero_fields(width: float, k: int):
    w = Width.of(width)
    values = values_of(w, (5, k))
    packed = pack(values, w, align=32)
    assert packed.shape == (5, row_bytes(k, w, align=32)) == (5, (k + 31) // 32 * 32 * w.bits // 8)
    assert packed.tobytes() == b"".join(packed_row(row, w, 32) for row in values.tolist())
    assert np.array_equal(unpack(packed, w, k, align=32), values)


def test_known_bytes():
    assert pack([1, -1, -1, 1], 1).tolist() == [0b0110]
    assert pack([-1] * 9, 1).tolist() == [0xFF, 0x01]
    assert pack([0, 1, -1, 0], "ternary").tolist() == [0b00_11_01_00]
    assert pack([-2, 1, -1, 0], 2).tolist() == [0b00_11_01_10]
    assert pack([1, -2, 3], 4).tolist() == [0xE1, 0x03]
    assert pack([-128, 127], 8).tolist() == [0x80, 0x7F]
    assert pack([-1, 0, 1], 3).tolist() == [0b01_000_111, 0]
    assert pack([1], 4, align=32).tolist() == [1, *[0] * 15]


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_padding_bits_are_zero_and_ignored(width: Width):
    k = 25
    packed = pack(np.full((2, k), -1), width)
    used = k * width.bits
    padding = packed.shape[1] * 8 - used
    assert all(int.from_bytes(row.tobytes(), "little") >> used == 0 for row in packed)
    dirty = packed.copy()
    dirty[:, -1] |= np.uint8((0xFF << (8 - padding)) & 0xFF)
    assert np.array_equal(unpack(dirty, width, k), np.full((2, k), -1))


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_layout_and_integer_type_of_the_input_do_not_matter(width: Width):
    values = values_of(width, (17, 24))
    reference = pack(values, width)
    assert np.array_equal(pack(np.asfortranarray(values), width), reference)
    assert np.array_equal(pack(values.astype(np.int64), width), reference)
    assert np.array_equal(pack(np.repeat(values, 2, axis=1)[:, ::2], width), reference)
    assert np.array_equal(unpack(np.asfortranarray(reference), width, 24), values)


@given(widths, st.sampled_from([-1, 1]), st.integers(0, 1000))
def test_values_outside_the_width_are_refused(width: Width, side: int, beyond: int):
    edge = width.qmin if side < 0 else width.qmax
    values = np.ones(40, np.int32)
    values[23] = edge + side * (beyond + 1)
    with pytest.raises(WidthError, match=f"does not fit {width} bits") as caught:
        pack(values, width)
    assert caught.value.hint is not None
    assert str(width.qmax) in caught.value.hint


def test_zero_has_no_place_in_one_bit():
    with pytest.raises(WidthError, match="does not fit 1 bits"):
        pack([1, 0, -1], 1)


def test_floats_are_refused():
    with pytest.raises(WidthError, match="must hold integers"):
        pack([0.0, 1.0], 4)


def test_a_field_that_is_no_ternary_value_is_refused():
    with pytest.raises(WidthError, match="ternary"):
        unpack(pack([1, -2, 0], 2), "ternary", 3)


@pytest.mark.parametrize("size", [0, 9, 11, 16])
def test_wrong_packed_length_is_refused(size: int):
    with pytest.raises(ShapeError, match=f"{size} bytes, but 25 values of 3 bits take 10"):
        unpack(np.zeros((2, size), np.uint8), 3, 25)


def test_shapes_that_cannot_be_packed():
    with pytest.raises(ShapeError):
        pack(np.zeros((3, 0), np.int8), 4)
    with pytest.raises(ShapeError, match="scalar"):
        pack(np.int8(3), 4)
    with pytest.raises(ShapeError):
        unpack(np.zeros(4, np.uint8), 4, 0)
    with pytest.raises(ShapeError):
        row_bytes(8, 4, align=0)
    with pytest.raises(ShapeError, match="uint8"):
        unpack(np.zeros(4, np.float32), 4, 8)
    with pytest.raises(WidthError):
        pack([1], 9)


def test_no_rows_is_not_an_error():
    assert pack(np.zeros((0, 8), np.int8), 3).shape == (0, 3)
    assert unpack(np.zeros((0, 3), np.uint8), 3, 8).shape == (0, 8)
    assert unpack(np.zeros((0, 4), np.uint8), 3, 9).shape == (0, 9)


def seconds_to_pack_and_unpack(width: Width, count: int) -> tuple[float, float]:
    values = values_of(width, (count // 1000, 1000))
    start = time.perf_counter()
    packed = pack(values, width)
    middle = time.perf_counter()
    unpacked = unpack(packed, width, 1000)
    end = time.perf_counter()
    assert np.array_equal(unpacked, values)
    return middle - start, end - middle


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_ten_million_values_pack_quickly(width: Width):
    assert max(seconds_to_pack_and_unpack(width, 10_000_000)) < 0.4


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_a_hundred_million_values_pack_within_two_seconds(width: Width):
    assert max(seconds_to_pack_and_unpack(width, 100_000_000)) < 2


@pytest.mark.parametrize("k", [1000, 1001])
def test_memory_stays_near_the_result(k: int):
    values = values_of(Width.of(3), (10_000, k))
    tracemalloc.start()
    packed = pack(values, 3)
    pack_peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    unpacked = unpack(packed, 3, k)
    unpack_peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    spare = 4 << 20
    assert pack_peak < packed.nbytes + spare
    assert unpack_peak < packed.nbytes + unpacked.nbytes + spare
