"""Constants of every element type survive the way through text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fewbit.errors import ParseError
from fewbit.frontends.stablehlo.dense import dense_array, dense_text, is_splat, splat_of
from fewbit.frontends.stablehlo.ops import DTYPES, TensorType


@given(st.data(), st.sampled_from(sorted(DTYPES)))
def test_arrays_as_text_and_back(data: st.DataObject, element: str) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=4))
    type = TensorType(shape, element)
    raw = data.draw(
        st.binary(
            min_size=type.size * type.dtype.itemsize, max_size=type.size * type.dtype.itemsize
        )
    )
    array = np.frombuffer(raw, type.dtype).reshape(shape)
    if element == "i1":
        array = np.frombuffer(raw, np.uint8).reshape(shape) > 127
    again = dense_array(dense_text(array, type))
    assert again.dtype == type.dtype
    assert again.shape == shape
    assert again.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dense<0xFF800000> : tensor<2xf32>", [-np.inf, -np.inf]),
        ("dense<[1.5, -2.0]> : tensor<2xf32>", [1.5, -2.0]),
        ("dense<[[1], [2]]> : tensor<2x1xi64>", [[1], [2]]),
        ("dense<true> : tensor<2xi1>", [True, True]),
        ("dense<> : tensor<0xi64>", []),
    ],
)
def test_what_tools_print(text: str, expected: list[float]) -> None:
    assert dense_array(text).tolist() == expected


def test_resources() -> None:
    data = np.arange(3, dtype=np.float32)
    text = "dense_resource<w> : tensor<3xf32>"
    assert (dense_array(text, {"w": data.tobytes()}) == data).all()
    with pytest.raises(ParseError, match="'w' is missing"):
        dense_array(text, {})


def test_splats_take_no_memory() -> None:
    array = dense_array("dense<1.0> : tensor<100000x100000xf32>")
    assert is_splat(array)
    assert splat_of(array) == 1


def test_signs_of_zeros_are_no_splat() -> None:
    assert splat_of(np.array([0.0, -0.0], np.float32)) is None
    assert splat_of(np.array([2.0, 2.0], np.float32)) == 2
