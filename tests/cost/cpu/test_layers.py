"""The times of a program's layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.cost.cpu import Calibration, layer_times
from fewbit.cost.cpu.layers import LayerTime
from fewbit.kernels import Isa
from fewbit.program.program import Program

MODEL = Calibration.default(Isa.of("x86-64-v4-vnni"))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.grouped = nn.Conv2d(32, 64, 1, groups=2)
        self.head = nn.Linear(64, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.grouped(self.depthwise(self.stem(x))))
        return self.head(x.mean((2, 3)))


@pytest.fixture(scope="module")
def program() -> Program:
    return fewbit.import_model(Net(), (torch.randn(1, 3, 16, 16),))


def test_every_layer_has_a_time(program: Program) -> None:
    times = layer_times(fewbit.quantize(program, "w4a8"), calibration=MODEL)
    assert [t.name for t in times] == ["stem", "depthwise", "grouped", "head"]
    assert [t.kernel.split("_")[1] for t in times] == ["conv2d", "depthwise", "conv2d", "matmul"]
    assert all(sorted(t.by_width) == list(range(1, 9)) for t in times)
    assert times[-1].seconds == pytest.approx(times[-1].by_width[4])
    assert times[1].widest_as_fast == 8


def test_floats_have_times_too(program: Program) -> None:
    times = layer_times(program, calibration=MODEL, widths=(8,))
    assert {t.kernel.rsplit("_", 1)[1] for t in times} == {"f32"}
    head = times[-1]
    assert head.by_width[8] < head.seconds


def test_threads_and_larger_inputs(program: Program) -> None:
    quantized = fewbit.quantize(program, "w8a8")
    one = layer_times(quantized, [np.zeros((1, 3, 16, 16), np.float32)], calibration=MODEL)
    two = layer_times(quantized, calibration=MODEL, threads=2)
    assert all(t.seconds > 0 for t in two)
    assert two[0].seconds != one[0].seconds


def test_groups_of_weights() -> None:
    program = fewbit.import_model(nn.Linear(64, 10), (torch.randn(1, 64),))
    times = layer_times(fewbit.quantize(program, "w4a8g32"), calibration=MODEL)
    assert times[-1].kernel == "fewbit_matmul_i8w4_groups_f32"


def test_the_widest_that_is_as_fast() -> None:
    assert LayerTime("x", "k", 1.0, {2: 1.0, 4: 1.04, 8: 2.0}).widest_as_fast == 4
    assert LayerTime("x", "k", 1.0, {}).widest_as_fast is None
