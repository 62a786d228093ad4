"""Bounds of this machine, and of a call."""

from __future__ import annotations

import pytest

from fewbit.bench.roofline import FOOTPRINTS, Roofline, measure_roofline
from fewbit.runtime.profile import CallProfile
from fewbit.toolchain.isa import Isa

ROOFLINE = Roofline(float_macs=10.0, byte_macs=40.0, bytes_read={100: 8.0, 1000: 2.0})


def call(kernel: str, macs: int = 0, flowing: int = 0, weights: int = 0) -> CallProfile:
    return CallProfile("layer", kernel, 1, 1, 1.0, 1.0, macs, flowing + weights, weights)


@pytest.mark.parametrize(
    ("kernel", "seconds"),
    [("fewbit_conv2d_f32", 40.0), ("fewbit_conv2d_i8_f32", 10.0), ("fewbit_matmul_i2_f32", 10.0)],
)
def test_products_are_bound_by_their_kind_of_numbers(kernel: str, seconds: float) -> None:
    assert ROOFLINE.seconds(call(kernel, macs=400), 50) == seconds


def test_weights_come_from_where_the_program_fits() -> None:
    given = call("loop", flowing=80, weights=20)
    assert ROOFLINE.seconds(given, 90) == 100 / 8
    assert ROOFLINE.seconds(given, 900) == 80 / 8 + 20 / 2


def test_the_slower_of_products_and_bytes_is_the_bound() -> None:
    assert ROOFLINE.seconds(call("fewbit_matmul_f32", macs=10, flowing=80), 80) == 10.0
    assert ROOFLINE.seconds(call("fewbit_matmul_f32", macs=1000, flowing=80), 80) == 100.0


def test_threads_share_the_work() -> None:
    assert ROOFLINE.seconds(call("loop", flowing=80), 80, threads=2) == 5.0


def test_more_than_was_measured_is_as_slow_as_the_most() -> None:
    assert ROOFLINE.rate(10**9) == 2.0


def test_this_machine() -> None:
    found = measure_roofline(Isa.of("host"))
    assert found.float_macs > 1e8
    assert found.byte_macs > 1e8
    assert tuple(found.bytes_read) == FOOTPRINTS
    rates = list(found.bytes_read.values())
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] > 1e8
