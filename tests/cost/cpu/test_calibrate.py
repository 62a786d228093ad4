"""Calibration on this machine: a very small one, and a real one that takes a while."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fewbit.cost.cpu import calibrate as module
from fewbit.cost.cpu.calibrate import QUICK, Effort, calibrate, unfinished_path
from fewbit.cost.cpu.kernel_call import ImageSizes, KernelCall, MatrixSizes
from fewbit.cost.cpu.measure import Bench
from fewbit.cost.cpu.samples import Samples
from fewbit.cost.cpu.work import work_of
from fewbit.errors import UnsupportedError
from fewbit.kernels import Depthwise, IntegerMatmul, Isa, PackB, QuantizeRows

HOST = Isa.host()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWBIT_CACHE_DIR", str(tmp_path))


def test_three_calls_are_measured_and_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIZES", (1 << 15, 1 << 20))
    calibration = calibrate(effort=Effort(3, 0, 2))
    assert calibration.is_calibrated
    assert calibration.accuracy is None
    assert calibration.macs["i8"] > 0
    assert 1e-12 < calibration.read(1 << 15) <= calibration.read(1 << 20) < 1e-8
    call = Samples(HOST, 0).draw(1)[0]
    assert 0 < calibration.seconds(call) < 1
    assert not unfinished_path(HOST).exists()


def test_an_interrupted_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIZES", (1 << 15,))
    effort = Effort(1, 0, 1)
    path = unfinished_path(HOST)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"what": f"0 {effort}", "rounds": 1, "times": [1e-3] * 4}))
    calibration = calibrate(effort=effort)
    assert calibration.read(1 << 15) == pytest.approx(1e-3 / (1 << 15))
    path.write_text('{"what": 1, "times": "none"}')
    assert calibrate(effort=effort).read(1 << 15) < 1e-9


def test_twice_the_rows_take_about_twice_the_time() -> None:
    bench = Bench(HOST, 1 << 22)
    kernel = QuantizeRows(HOST)
    timers = [bench.timer(KernelCall(kernel, MatrixSizes(m, 0, 256))) for m in (16, 64)]
    few, many = (min(timer.seconds() for _ in range(30)) for timer in timers)
    assert 2 < many / few < 7


def test_images_are_measured() -> None:
    bench = Bench(HOST, 1 << 22)
    sizes = ImageSizes.square(6, 8, 8, 3, depthwise=True)
    assert 0 < bench.timer(KernelCall(Depthwise(HOST), sizes)).seconds() < 1e-2


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="bytes"):
        Bench(HOST, 1 << 20).timer(KernelCall(IntegerMatmul(HOST), MatrixSizes(1, 4096, 4096)))
    with pytest.raises(UnsupportedError, match="row_stride"):
        Bench(HOST, 1 << 20).timer(KernelCall(PackB(HOST), MatrixSizes(1, 8, 8)))


def test_samples_are_the_same_each_time_and_all_have_a_cost() -> None:
    calls = Samples(HOST, 3).draw(60)
    assert calls == Samples(HOST, 3).draw(60)
    assert calls != Samples(HOST, 4).draw(60)
    assert all(work_of(call).counts for call in calls)


@pytest.mark.slow
def test_a_quick_calibration_predicts_calls_that_it_has_not_seen() -> None:
    calibration = calibrate(effort=QUICK)
    assert calibration.accuracy is not None
    assert calibration.accuracy.median < 0.2
    assert calibration.accuracy.within_fifth > 0.6
