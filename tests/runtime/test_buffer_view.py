from __future__ import annotations

import numpy as np
import pytest

from fewbit.errors import UsageError
from fewbit.program.artifact import Tensor
from fewbit.runtime.buffer_view import (
    format_buffer_view,
    format_result,
    is_buffer_view,
    parse_buffer_view,
    parse_scalar,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4xi32=0,1,-2,0x10", np.array([0, 1, -2, 16], np.int32)),
        ("2x2xf32=[1 2][3 4.5]", np.array([[1, 2], [3, 4.5]], np.float32)),
        ("2x3xf64=7", np.full((2, 3), 7.0)),
        ("3xi8", np.zeros(3, np.int8)),
        ("f32=1e-3", np.array(1e-3, np.float32)),
        ("2xi1=1,0", np.array([True, False])),
    ],
)
def test_arrays_are_read(
    text: str, expected: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
) -> None:
    found = parse_buffer_view(text)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_bf16_is_read() -> None:
    assert str(parse_buffer_view("2xbf16=1.5").dtype) == "bfloat16"


@pytest.mark.parametrize("text", ["4xf32=1,2", "2xi8=300", "2xi32=1.5", "2xq7=1", "2xf32=a"])
def test_what_is_no_array(text: str) -> None:
    with pytest.raises(UsageError):
        parse_buffer_view(text)


def test_files_are_no_arrays() -> None:
    assert not is_buffer_view("x.npy")
    assert not is_buffer_view("some/file")
    assert is_buffer_view("10xf32=1")


def test_scalars() -> None:
    port = Tensor(name="n", shape=(), element="i32", scalar=True)
    assert parse_scalar("5", port) == parse_scalar("i32=5", port) == 5
    assert format_result(1, port, np.array(7, np.int32)) == "result[1]: i32=7"


@pytest.mark.parametrize(
    ("array", "element", "text"),
    [
        (
            np.array([1, 1e-5, 1234567.5, np.inf], np.float32),
            "f32",
            "4xf32=1 1E-05 1.23457E+06 INF",
        ),
        (np.arange(8, dtype=np.int8).reshape(2, 2, 2), "i8", "2x2x2xi8=[[0 1][2 3]][[4 5][6 7]]"),
        (np.array(2.5), "f64", "f64=2.5"),
        (np.zeros((0, 2), np.float32), "f32", "0x2xf32="),
    ],
)
def test_arrays_are_written(
    array: np.ndarray[tuple[int, ...], np.dtype[np.generic]], element: str, text: str
) -> None:
    assert format_buffer_view(array, element) == text


def test_long_arrays_end_in_dots() -> None:
    assert format_buffer_view(np.zeros(2000, np.int32), "i32").endswith(" 0...")
