"""How many threads a call is worth."""

from __future__ import annotations

from fewbit.cost.cpu.kernel_call import KernelCall, MatrixSizes
from fewbit.cost.cpu.threads import useful_threads
from fewbit.kernels import IntegerMatmul, Isa

KERNEL = IntegerMatmul(Isa.of("x86-64-v4-vnni"))


def test_a_tiny_layer_has_one_and_a_large_one_all() -> None:
    assert useful_threads(KernelCall(KERNEL, MatrixSizes(1, 10, 84)), 64) == 1
    assert useful_threads(KernelCall(KERNEL, MatrixSizes(4096, 4096, 4096)), 64) == 64


def test_one_panel_of_one_row_cannot_be_divided() -> None:
    assert useful_threads(KernelCall(KERNEL, MatrixSizes(1, 64, 1 << 16)), 8) == 1
    assert useful_threads(KernelCall(KERNEL, MatrixSizes(1, 128, 1 << 16)), 8) == 2
