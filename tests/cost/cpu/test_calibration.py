"""From work to seconds."""

from __future__ import annotations

import pytest

from fewbit.cost.cpu.calibration import MEETING, Calibration, Read, overlap
from fewbit.cost.cpu.kernel_call import KernelCall, MatrixSizes
from fewbit.kernels import IntegerMatmul, Isa
from fewbit.toolchain.isa import names

VNNI = Isa.of("x86-64-v4-vnni")


def test_the_longer_of_both_decides() -> None:
    assert overlap(1.0, 0.0) == 1.0
    assert overlap(0.0, 0.0) == 0.0
    assert overlap(1.0, 0.1) == pytest.approx(1.0, rel=1e-3)
    assert overlap(1.0, 1.0) == pytest.approx(2 ** (1 / 3))


def test_reading_is_interpolated() -> None:
    read = Read(((1 << 10, 1.0), (1 << 12, 3.0)))
    assert [read(size) for size in (1, 1 << 10, 1 << 11, 1 << 12, 1 << 20)] == [1, 1, 2, 3, 3]


@pytest.mark.parametrize("name", names())
def test_a_default_for_every_processor(name: str) -> None:
    model = Calibration.default(Isa.of(name))
    assert not model.is_calibrated
    bounds = model.bounds()
    assert bounds.macs["f32"] > 0
    assert bounds.bandwidth(1 << 14) > bounds.bandwidth(1 << 26) > 0


def test_no_call_is_faster_than_the_bound() -> None:
    model = Calibration.default(VNNI)
    for m, n, k in ((128, 1024, 1024), (1, 4096, 4096), (512, 64, 64)):
        call = KernelCall(IntegerMatmul(VNNI, "i32"), MatrixSizes(m, n, k))
        assert call.macs / model.seconds(call) < model.bounds().macs["i8"]


def test_narrow_weights_pay_for_vectors_and_not_for_matrices() -> None:
    model = Calibration.default(VNNI)

    def ratio(m: int) -> float:
        sizes = MatrixSizes(m, 4096, 4096)
        wide, narrow = (
            model.seconds(KernelCall(IntegerMatmul(VNNI, "f32", bits), sizes)) for bits in (8, 4)
        )
        return narrow / wide

    assert ratio(1) < 0.7
    assert ratio(128) > 0.85


def test_weights_that_were_pushed_out_take_longer() -> None:
    model = Calibration.default(VNNI)
    near = KernelCall(IntegerMatmul(VNNI, "f32"), MatrixSizes(1, 512, 512))
    far = KernelCall(near.kernel, near.sizes, footprint=64 << 20)
    assert model.seconds(far) > 2 * model.seconds(near)


def test_threads_help_large_calls_only() -> None:
    model = Calibration.default(VNNI)
    large = KernelCall(IntegerMatmul(VNNI, "f32"), MatrixSizes(128, 1024, 1024))
    tiny = KernelCall(large.kernel, MatrixSizes(1, 32, 32))
    assert model.seconds(large.on(2)) < 0.55 * model.seconds(large) + MEETING
    assert model.seconds(tiny.on(2)) > model.seconds(tiny)
