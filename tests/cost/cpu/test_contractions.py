"""The work of matmuls and convolutions, counted by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.cost.cpu.calibration import Calibration
from fewbit.cost.cpu.contractions import field_operations
from fewbit.cost.cpu.kernel_call import ImageSizes, KernelCall, MatrixSizes
from fewbit.cost.cpu.work import Work, work_of
from fewbit.errors import UnsupportedError
from fewbit.kernels import Conv2d, IntegerConv2d, IntegerMatmul, Isa, Matmul, PackB
from fewbit.toolchain.isa import names

VNNI = Isa.of("x86-64-v4-vnni")


def bytes_of(work: Work, term: str) -> float:
    return sum(stream.bytes for stream in work.streams if stream.term == term)


def test_a_product_of_bytes() -> None:
    work = work_of(KernelCall(IntegerMatmul(VNNI, "f32"), MatrixSizes(12, 64, 256)))
    # Two tiles of 6 rows by 4 vectors, 64 steps of 12 cycles each.
    assert work.counts["i8.tiles"] == 2
    assert work.counts["i8.steps"] == 2 * 64 * 12
    assert work.counts["i8.finish.f32"] == 12 * 4
    assert work.counts["i8.offsets"] == 12 * 4
    assert bytes_of(work, "i8.weights") == 64 * 256
    assert bytes_of(work, "i8.y") == 12 * 64 * 4


def test_a_vector_with_few_bits_takes_weights_apart_in_registers() -> None:
    work = work_of(KernelCall(IntegerMatmul(VNNI, "f32", 4), MatrixSizes(1, 64, 256)))
    # Four multiplications and eight operations that unpack weights, two at once.
    assert work.counts["i8.fields"] == 64 * 6
    assert "i8.apart" not in work.counts
    assert bytes_of(work, "i8.weights") == 64 * 256 / 2


def test_many_rows_with_few_bits_take_them_apart_beforehand() -> None:
    work = work_of(KernelCall(IntegerMatmul(VNNI, "f32", 4), MatrixSizes(18, 64, 256)))
    assert work.counts["i8.apart"] == 64 * 4 * field_operations(VNNI, 4)
    assert work.counts["i8.steps"] == 3 * 64 * 12


def test_groups_are_scaled_one_by_one() -> None:
    kernel = IntegerMatmul(VNNI, "f32", 4, grouped=True)
    work = work_of(KernelCall(kernel, MatrixSizes(1, 64, 256, groups=2)))
    assert work.counts["i8.groups"] == 2 * 4
    assert bytes_of(work, "i8.weights") == 64 * 256 / 2 + 4 * 2 * 64


def test_fields_by_planes() -> None:
    assert [field_operations(VNNI, bits) for bits in (1, 2, 3, 4, 7, 8)] == [2, 2, 5, 2, 8, 0]


def test_a_product_of_floats_is_cut_in_depth() -> None:
    work = work_of(KernelCall(Matmul(VNNI), MatrixSizes(12, 64, 768)))
    assert work.counts["f32.tiles"] == 2 * 2
    assert work.counts["f32.steps"] == 2 * 768 * 12
    one_tile = work_of(KernelCall(Matmul(VNNI), MatrixSizes(6, 64, 768)))
    assert one_tile.counts["f32.tiles"] == 1


def test_a_convolution_has_taps_or_strips() -> None:
    kernel = IntegerConv2d(VNNI, "i8")
    many = work_of(KernelCall(kernel, ImageSizes.square(8, 64, 64, 3))).counts
    assert many["i8.finish.i8"] == 64 * 4
    assert many["i8.offsets"] == 64 * 9
    assert many["i8.taps"] == many["i8.tiles"] * 9
    assert "i8.lines" not in many
    few = work_of(KernelCall(kernel, ImageSizes.square(8, 3, 64, 3))).counts
    assert few["i8.lines"] == 8 + 2
    assert few["i8.chunks"] == few["i8.lines"]
    assert few["i8.taps"] == few["i8.tiles"] * 3
    assert "i8.offsets" not in few


def test_floats_with_few_channels_take_runs() -> None:
    work = work_of(KernelCall(Conv2d(VNNI), ImageSizes.square(8, 3, 16, 3))).counts
    assert work["f32.edges"] == pytest.approx(2 * 8 * 3)


def test_calls_of_groups_add_up() -> None:
    one = KernelCall(IntegerConv2d(VNNI, "f32"), ImageSizes.square(8, 16, 16, 3))
    two = KernelCall(one.kernel, one.sizes, calls=2)
    assert work_of(two).counts["i8.calls"] == 2
    assert bytes_of(work_of(two), "i8.x") == 2 * bytes_of(work_of(one), "i8.x")


def test_a_kernel_that_is_not_known() -> None:
    with pytest.raises(UnsupportedError, match="fewbit_pack_b_f32"):
        work_of(KernelCall(PackB(VNNI), MatrixSizes(1, 1, 1)))


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(names()),
    bits=st.integers(1, 8),
    m=st.integers(1, 200),
    n=st.integers(1, 300),
    k=st.integers(4, 600),
    threads=st.integers(1, 4),
)
def test_time_is_positive_and_grows_with_whole_tiles(
    name: str, bits: int, m: int, n: int, k: int, threads: int
) -> None:
    isa = Isa.of(name)
    model = Calibration.default(isa)
    for kernel in (Matmul(isa), IntegerMatmul(isa, "f32", bits)):
        small = model.seconds(KernelCall(kernel, MatrixSizes(m, n, k), threads))
        large = model.seconds(KernelCall(kernel, MatrixSizes(8 * m, 2 * n, 2 * k), threads))
        assert 0 < small < large
