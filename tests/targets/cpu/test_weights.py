"""The image of weights: everything aligned, nothing lost."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fewbit.program.weight_image import ALIGNMENT, SharedWeights, VariantWeights, WeightImage

ARRAYS = st.lists(
    st.tuples(st.lists(st.integers(0, 9), max_size=3), st.sampled_from(["f4", "i1", "f8", "?"])),
    max_size=6,
)


@given(ARRAYS)
def test_constants_are_found_at_their_offsets(shapes: list[tuple[list[int], str]]) -> None:
    random = np.random.default_rng(0)
    arrays = [(random.normal(size=shape) * 9).astype(kind) for shape, kind in shapes]
    image = WeightImage()
    offsets = [image.add(f"w{i}", array) for i, array in enumerate(arrays)]
    data = image.tobytes()
    assert len(data) == image.nbytes
    for offset, array in zip(offsets, arrays, strict=True):
        assert offset % ALIGNMENT == 0
        assert data[offset : offset + array.nbytes] == array.tobytes()
    assert b"".join(image.pieces()) == data


def test_array_that_is_not_contiguous() -> None:
    image = WeightImage()
    array: np.ndarray[Any, Any] = np.arange(12, dtype=np.float32).reshape(3, 4).T
    image.add("w", array)
    assert np.frombuffer(image.tobytes()[:48], np.float32).tolist() == array.ravel().tolist()


def test_variants_share_what_is_equal() -> None:
    shared = SharedWeights()
    first, second = VariantWeights(shared=shared), VariantWeights(shared=shared)
    bias, packed = np.arange(20, dtype=np.float32), np.arange(40, dtype=np.int8)
    places = [first.add("bias", bias), first.add("packed", packed)]
    others = [second.add("packed", packed[::-1]), second.add("bias", bias), second.add("b", bias)]
    assert others[1] == others[2] == places[0]
    assert len({*places, *others}) == 3
    assert shared.nbytes == 128 + 64 + 64
    assert first.nbytes == first.bytes_read == 128 + 64
    assert (second.nbytes, second.bytes_read) == (shared.nbytes, 128 + 64)
    data = shared.tobytes()
    for image in (first, second):
        for entry in image.entries:
            assert data[entry.offset :][: entry.array.nbytes] == entry.array.tobytes()


def test_elements_that_numpy_does_not_know_are_shared_too() -> None:
    shared = SharedWeights()
    scalar: np.ndarray[Any, Any] = np.array(3, ml_dtypes.bfloat16)
    places = [VariantWeights(shared=shared).add("scale", scalar) for _ in range(2)]
    assert places == [0, 0]
    assert shared.tobytes()[:2] == scalar.tobytes()
