"""The work of depthwise convolutions, counted by hand."""

from __future__ import annotations

from fewbit.cost.cpu.depthwise import has_columns
from fewbit.cost.cpu.kernel_call import ImageSizes, KernelCall, MatrixSizes
from fewbit.cost.cpu.work import work_of
from fewbit.kernels import Depthwise, IntegerDepthwise, Isa, QuantizeRows

VNNI = Isa.of("x86-64-v4-vnni")


def image(size: int, channels: int, kernel: int = 3) -> ImageSizes:
    return ImageSizes.square(size, channels, channels, kernel, depthwise=True)


def test_columns_are_for_3x3_with_full_chunks() -> None:
    assert has_columns(image(8, 64), VNNI)
    assert not has_columns(image(8, 64, 5), VNNI)
    assert not has_columns(image(8, 24), VNNI)
    assert not has_columns(image(8, 64), Isa.of("x86-64-v4"))


def test_columns() -> None:
    counts = work_of(KernelCall(IntegerDepthwise(VNNI, "f32"), image(6, 64))).counts
    # Six lines of two threes, each of which sees five columns.
    assert counts["dw8.chunks"] == 12
    assert counts["dw8.columns"] == 60
    assert counts["dw8.finish_columns.f32"] == 36 * 4


def test_taps_inside_the_image_only() -> None:
    counts = work_of(KernelCall(Depthwise(VNNI), image(4, 16))).counts
    # A line sees 3 kernel rows but for the first and last, and so do pixels.
    assert counts["dw32.finish"] == 16
    assert counts["dw32.dots"] == (2 * 2 + 2 * 3) ** 2
    assert counts["dw32.together"] == 4 * 3


def test_threads_divide_pixels() -> None:
    call = KernelCall(Depthwise(VNNI), image(8, 16))
    assert work_of(call.on(2)).counts["dw32.dots"] == work_of(call).counts["dw32.dots"] / 2


def test_quantization_reads_rows_twice() -> None:
    work = work_of(KernelCall(QuantizeRows(VNNI), MatrixSizes(3, 0, 40)))
    assert work.counts["rows.vectors"] == 3 * 3
    assert sum(s.bytes for s in work.streams if s.term == "rows.x") == 2 * 3 * 40 * 4
