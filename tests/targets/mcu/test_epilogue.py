from __future__ import annotations

import numpy as np

from fewbit.numerics.requantize import fixed_point
from fewbit.targets.mcu.kernels.epilogue import common_shift, integer_bounds, missing_bits


def test_channels_share_a_shift_where_it_is_exact() -> None:
    fixed = fixed_point(np.array([0.003, 0.0011, 0.0049], np.float32))
    multiplier, shift, common = common_shift(fixed.multiplier, fixed.shift)
    assert common is not None
    assert (shift == common).all()
    assert np.array_equal(
        multiplier / 2.0**common, fixed.multiplier / 2.0 ** fixed.shift.astype(np.float64)
    )


def test_channels_keep_their_shifts_where_bits_would_be_lost() -> None:
    fixed = fixed_point(np.array([0.3, 3e-6], np.float32))
    multiplier, shift, common = common_shift(fixed.multiplier, fixed.shift)
    assert common is None
    assert np.array_equal(multiplier, fixed.multiplier)
    assert np.array_equal(shift, fixed.shift)


def test_large_factors_raise_accumulators() -> None:
    assert missing_bits(np.array([34, 60])) == 0
    assert missing_bits(np.array([31, 60])) == 3


def test_bounds_in_steps() -> None:
    assert integer_bounds((0.0, None), 0.1, -128, 127) == (0, 127)
    assert integer_bounds((0.0, 6.0), 0.5, -128, 127) == (0, 12)
    assert integer_bounds((None, None), 0.5, -2, 1) == (-2, 1)
    assert integer_bounds((-100.0, 6.0), 0.5, -8, 7) == (-8, 7)
