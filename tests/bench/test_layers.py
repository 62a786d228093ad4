"""Calls of a profile, gathered into layers."""

from __future__ import annotations

import pytest

from fewbit.bench.layers import times_of_layers
from fewbit.bench.roofline import Roofline
from fewbit.runtime.profile import CallProfile

ROOFLINE = Roofline(float_macs=100.0, byte_macs=100.0, bytes_read={1000: 1000.0})
RUNS = 10
CALLS = [
    CallProfile("conv", "loop", RUNS, 1, 9.0, 0.5, 0, 10, 0),
    CallProfile("conv", "fewbit_conv2d_i8_f32", RUNS, 1, 9.0, 2.5, 100, 50, 20),
    CallProfile("pool", "loop", 2 * RUNS, 1, 9.0, 0.5, 0, 100, 0),
]


def test_calls_of_a_layer_are_one_row() -> None:
    conv, pool = times_of_layers(CALLS, RUNS, ROOFLINE, 500, threads=1)
    assert (conv.name, conv.kernels) == ("conv", ("conv2d_i8_f32", "loop"))
    assert (conv.macs, conv.bytes) == (100, 60)
    assert conv.seconds == pytest.approx(3.0)
    assert conv.bound == pytest.approx(1.0 + 0.01)
    assert conv.achieved == pytest.approx(1.01 / 3)
    assert (pool.name, pool.kernels) == ("pool", ("loop",))


def test_what_runs_twice_counts_twice() -> None:
    pool = times_of_layers(CALLS, RUNS, ROOFLINE, 500, threads=1)[1]
    assert (pool.seconds, pool.bytes) == (pytest.approx(1.0), 200)


def test_shares_add_up() -> None:
    layers = times_of_layers(CALLS, RUNS, ROOFLINE, 500, threads=1)
    assert sum(layer.share for layer in layers) == pytest.approx(1.0)
    assert layers[0].share == pytest.approx(0.75)
