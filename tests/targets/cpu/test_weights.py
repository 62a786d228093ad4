"""The image of weights: everything aligned, nothing lost."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fewbit.targets.cpu.weights import ALIGNMENT, WeightImage

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
    file = BytesIO()
    image.write(file)
    assert file.getvalue() == data


def test_array_that_is_not_contiguous() -> None:
    image = WeightImage()
    array: np.ndarray[Any, Any] = np.arange(12, dtype=np.float32).reshape(3, 4).T
    image.add("w", array)
    assert np.frombuffer(image.tobytes()[:48], np.float32).tolist() == array.ravel().tolist()
