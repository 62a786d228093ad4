"""Products on the model, in all styles, equal numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.simulators.gemmini.hardware import DIMS, Hardware
from fewbit.targets.gemmini.streams.matmul import Matmul, Style, matmul
from fewbit.targets.gemmini.streams.output import I32, Output
from tests.targets.gemmini.dram import requantized, run_stream, some

STYLES: tuple[Style, ...] = ("loop", "explicit", "output-stationary")
sizes = st.integers(1, 70)


@settings(max_examples=40, deadline=None)
@given(m=sizes, n=sizes, k=sizes, bias=st.booleans(), full=st.booleans(), relu=st.booleans(),
       style=st.sampled_from(STYLES), turned=st.sampled_from(["", "x", "weight", "both"]),
       dim=st.sampled_from(DIMS), seed=st.integers(0, 99))  # fmt: skip
def test_products_are_exact(
    m: int,
    n: int,
    k: int,
    bias: bool,
    full: bool,
    relu: bool,
    style: Style,
    turned: str,
    dim: int,
    seed: int,
) -> None:
    both_allowed = style == "output-stationary"
    x_turned = turned == "x" or (turned == "both" and both_allowed)
    w_turned = turned == "both" if both_allowed else turned == "weight"
    rng = np.random.default_rng(seed)
    x, w = some(rng, m, k), some(rng, k, n)
    b = rng.integers(-1000, 1000, n, dtype=np.int32)
    output = I32 if full else Output(0.003, relu)
    product = Matmul(m, n, k, bias, output, x_turned, w_turned)
    sums = x.astype(np.int32) @ w.astype(np.int32) + bias * b
    y = np.zeros((m, n), np.int32 if full else np.int8)
    model = run_stream(
        matmul(product, Hardware(dim), style), y, Hardware(dim),
        x=x.T if x_turned else x, weight=w.T if w_turned else w, bias=b,
    )  # fmt: skip
    assert np.array_equal(y, sums if full else requantized(sums, 0.003, relu))
    assert model.events.macs == product.macs
    assert model.events.bytes_written == y.nbytes


@pytest.mark.parametrize("style", STYLES)
def test_tiles_along_every_dimension(style: Style) -> None:
    rng = np.random.default_rng(1)
    m, n, k = 130, 200, 1500
    x, w = some(rng, m, k), some(rng, k, n)
    y = np.zeros((m, n), np.int32)
    run_stream(matmul(Matmul(m, n, k), style=style), y, x=x, weight=w)
    assert np.array_equal(y, x.astype(np.int32) @ w.astype(np.int32))


def test_loops_send_fewer_commands() -> None:
    product = Matmul(64, 64, 64)
    assert len(matmul(product)) == 11
    assert len(matmul(product, style="explicit")) > 100
