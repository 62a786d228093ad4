"""The quantized tensor: what it accepts and what it stands for."""

from __future__ import annotations

import numpy as np
import pytest

from fewbit.errors import ShapeError, WidthError
from fewbit.numerics import Quantized, Width


def tensor(
    shape: tuple[int, ...],
    scale: tuple[int, ...],
    zero_point: tuple[int, ...] | None = None,
) -> Quantized:
    values = (np.arange(np.prod(shape)) % 8 - 4).astype(np.int8).reshape(shape)
    scales = np.arange(1, np.prod(scale) + 1, dtype=np.float32).reshape(scale)
    zeros = None if zero_point is None else np.full(zero_point, 2, np.int32)
    return Quantized(values, scales, zeros, Width.of(4))


def test_each_run_has_its_own_scale():
    group = tensor((2, 3, 2), (2, 2))
    expected = group.values.reshape(4, 3) * np.array([[1], [2], [3], [4]])
    assert np.array_equal(group.dequantize(), expected.reshape(2, 3, 2))
    row = tensor((2, 3, 2), (2, 3))
    assert np.array_equal(row.dequantize(), row.values * row.scale[:, :, None])
    whole = tensor((2, 3, 2), ())
    assert np.array_equal(whole.dequantize(), whole.values)


def test_zero_points_are_subtracted_without_overflow():
    values = np.array([[-128, 127]], np.int8)
    q = Quantized(values, np.ones(1, np.float32), np.array([127], np.int32), Width.of(8))
    assert q.centered().tolist() == [[-255, 0]]
    assert q.dequantize().tolist() == [[-255.0, 0.0]]


def test_empty_batch():
    assert tensor((0, 8), (0,), (0,)).dequantize().shape == (0, 8)


@pytest.mark.parametrize("scale", [(6,), (3,), (4, 4), (1, 6), (4, 0), (4, 6, 1)])
def test_scales_that_do_not_fit_are_refused(scale: tuple[int, ...]):
    with pytest.raises(ShapeError, match="do not fit values of shape"):
        tensor((4, 6), scale)


def test_zero_points_have_the_shape_of_the_scales():
    with pytest.raises(ShapeError, match="zero points of shape"):
        tensor((4, 6), (4,), ())


def test_values_outside_the_width_are_refused():
    with pytest.raises(WidthError, match="do not fit 2 bits"):
        Quantized(np.array([2], np.int8), np.ones((), np.float32), None, Width.of(2))
    with pytest.raises(WidthError, match="do not fit 1 bits"):
        Quantized(np.array([0], np.int8), np.ones((), np.float32), None, Width.of(1))


@pytest.mark.parametrize(("width", "zero"), [(4, 1000), (4, 8), (4, -9), (2, 2), (8, -129)])
def test_zero_points_outside_the_width_are_refused(width: int, zero: int):
    with pytest.raises(WidthError, match=f"zero points must fit {width} bits"):
        Quantized(
            np.ones(2, np.int8), np.ones((), np.float32), np.array(zero, np.int32), Width.of(width)
        )


@pytest.mark.parametrize("width", [1, 1.58])
def test_the_narrowest_widths_have_no_zero_point(width: float):
    with pytest.raises(WidthError, match="have no zero point"):
        Quantized(
            np.ones(2, np.int8), np.ones((), np.float32), np.array(1, np.int32), Width.of(width)
        )


def test_types_are_fixed():
    one = np.ones((), np.float32)
    with pytest.raises(WidthError, match="values are int8, not int32"):
        Quantized(np.ones(2, np.int32), one, None, Width.of(4))  # pyright: ignore[reportArgumentType]
    with pytest.raises(WidthError, match="scales are float32, not float64"):
        Quantized(np.ones(2, np.int8), np.ones(()), None, Width.of(4))  # pyright: ignore[reportArgumentType]
    with pytest.raises(WidthError, match="zero points are int32, not int64"):
        Quantized(np.ones(2, np.int8), one, np.ones((), np.int64), Width.of(4))  # pyright: ignore[reportArgumentType]
