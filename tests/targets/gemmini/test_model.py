"""What single commands do to the accelerator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fewbit.errors import InterpretError, UnsupportedError
from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import ACCUMULATE, ACCUMULATOR
from fewbit.simulators.gemmini.commands import Act, Dataflow
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.simulators.gemmini.model import Model
from fewbit.targets.gemmini.streams.matmul import Matmul, matmul
from fewbit.targets.gemmini.streams.output import Output
from tests.targets.gemmini.dram import run_stream, some

AT, OUT = 0x1000, 0x2000


def with_memory() -> tuple[Model, np.ndarray[tuple[int], np.dtype[np.uint8]]]:
    memory = np.zeros(0x4000, np.uint8)
    memory[AT : AT + 256] = np.random.default_rng(0).integers(0, 256, 256, np.uint8)
    return Model(), memory


def test_scaled_as_it_is_read() -> None:
    model, memory = with_memory()
    memory[AT : AT + 4] = np.array([5, 6, 7, 8], np.int8).view(np.uint8)
    model.run_all([c.ConfigLoad(scale=0.5), c.Mvin(AT, 0, cols=4, rows=1)], memory)
    assert model.scratchpad[0, :4].tolist() == [2, 3, 4, 4]  # halves go to even


def test_wide_rows_become_blocks() -> None:
    model, memory = with_memory()
    model.run_all([c.ConfigLoad(block_stride=100), c.Mvin(AT, 3, cols=40, rows=1)], memory)
    given = memory[AT : AT + 40].view(np.int8)
    found = np.concatenate([model.scratchpad[3], model.scratchpad[103], model.scratchpad[203, :8]])
    assert np.array_equal(found, given)


def test_pixels_are_kept_beside_their_neighbours() -> None:
    model, memory = with_memory()
    model.run_all([c.ConfigLoad(stride=2, pixel_repeats=3), c.Mvin(AT, 10, cols=2, rows=6)], memory)
    pixels = memory[AT : AT + 12].view(np.int8).reshape(6, 2)
    for row in range(4):
        assert model.scratchpad[10 + row, :6].tolist() == pixels[row : row + 3].ravel().tolist()


def test_what_is_moved_in_may_be_added() -> None:
    model, memory = with_memory()
    values = np.arange(16, dtype=np.int32)
    memory[AT : AT + 64] = values.view(np.uint8)
    first = c.Mvin(AT, ACCUMULATOR, rows=1)
    model.run_all([first, replace(first, local=ACCUMULATOR | ACCUMULATE)], memory)
    assert np.array_equal(model.accumulator[0], 2 * values)


def test_sums_that_stay_are_shifted_on_their_way_to_the_scratchpad() -> None:
    model, memory = with_memory()
    model.scratchpad[:16] = 3 * np.eye(16, dtype=np.int8)
    model.scratchpad[16:32] = np.arange(-8, 8, dtype=np.int8)[:, None]
    config = c.ConfigExecute(dataflow=Dataflow.OUTPUT_STATIONARY, shift=1, activation=Act.RELU)
    model.run_all([config, c.Preload(c=64), c.ComputePreloaded(0, bd=16)], memory)
    wanted = np.maximum(np.rint(3 * np.arange(-8, 8) / 2), 0)
    assert np.array_equal(model.scratchpad[64:80, 0], wanted)


def test_a_product_has_a_bias_in_the_scratchpad() -> None:
    model, memory = with_memory()
    rng = np.random.default_rng(1)
    a, b, d = (some(rng, 16, 16, low=-9, high=9) for _ in range(3))
    model.scratchpad[:48] = np.concatenate([a, b, d])
    stream = [c.ConfigExecute(), c.Preload(16, c=ACCUMULATOR), c.ComputePreloaded(0, bd=32)]
    model.run_all(stream, memory)
    wanted = a.astype(np.int32) @ b.astype(np.int32) + d
    assert np.array_equal(model.accumulator[:16], wanted)


def test_what_is_outside_is_refused() -> None:
    model, memory = with_memory()
    with pytest.raises(InterpretError, match="outside memory"):
        model.run(c.Mvin(0x3FFF, 0), memory)
    with pytest.raises(InterpretError, match="outside the scratchpad"):
        model.run(c.Mvin(AT, 16384 - 8), memory)
    with pytest.raises(InterpretError, match="outside the accumulator"):
        model.run(c.Mvin(0, ACCUMULATOR + 1020), memory)
    with pytest.raises(InterpretError, match=r"before loop_ws\.bounds"):
        model.run(c.LoopWs(), memory)
    with pytest.raises(UnsupportedError, match="not both"):
        model.run(c.ConfigExecute(a_transpose=1, b_transpose=1), memory)


def test_a_loop_that_does_not_fit_is_refused() -> None:
    model, memory = with_memory()
    small = matmul(Matmul(16, 16, 16))
    places = {"x": AT, "weight": AT, "y": OUT}
    large = [
        replace(each, i=33) if isinstance(each, c.LoopBounds) else each.bind(places)
        for each in small
    ]
    with pytest.raises(InterpretError, match="half the accumulator"):
        model.run_all(large, memory)


def test_softmax_and_layer_norm_of_rows() -> None:
    rng = np.random.default_rng(2)
    x, w = some(rng, 20, 8, low=-4, high=5), some(rng, 8, 40, low=-4, high=5)
    sums = x.astype(np.int64) @ w
    for act in (Act.SOFTMAX, Act.LAYERNORM):
        stream = matmul(Matmul(20, 40, 8, output=Output(1.0 if act == Act.SOFTMAX else 30.0)))
        stream = [replace(s, activation=act) if isinstance(s, c.LoopWs) else s for s in stream]
        # exp(q/8) by I-BERT's polynomial: b = 1.353, c = 0.344, ln 2.
        norm = c.ConfigNorm(act_msb=act >> 2, qb=11, qc=61)
        constants = [replace(norm, constant=6), replace(norm, constant=65536 // 6, constant_type=1)]
        store = next(i for i, s in enumerate(stream) if isinstance(s, c.ConfigStore))
        stream[store] = c.ConfigStore(stride=40, activation=act & 3, scale=stream[store].scale)  # type: ignore[attr-defined]
        y = np.zeros((20, 40), np.int8)
        run_stream([*stream[: store + 1], *constants, *stream[store + 1 :]], y, x=x, weight=w)
        if act == Act.SOFTMAX:
            powers = np.exp((sums - sums.max(axis=1, keepdims=True)) / 8)
            assert np.abs(y - 127 * powers / powers.sum(axis=1, keepdims=True)).max() < 4
        else:
            centred = sums - sums.mean(axis=1, keepdims=True)
            wanted = np.clip(30 * np.trunc(centred / sums.std(axis=1, keepdims=True)), -128, 127)
            assert np.mean(np.abs(y - wanted) <= 30) > 0.99


def test_events_are_counted() -> None:
    y = np.zeros((20, 24), np.int32)
    x, w = np.ones((20, 40), np.int8), np.ones((40, 24), np.int8)
    events = run_stream(matmul(Matmul(20, 24, 40)), y, x=x, weight=w).events
    assert events.commands == 11
    assert events.computes == 2 * 2 * 3
    assert events.macs == 20 * 24 * 40
    assert events.bytes_read == x.nbytes + w.nbytes
    assert events.bytes_written == y.nbytes
    assert events.utilization(Hardware()) == pytest.approx(20 * 24 * 40 / (12 * 16**3))
