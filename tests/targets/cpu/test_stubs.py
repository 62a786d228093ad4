"""Stubs: threads that a layer has no use for are left out, and results have the same bits."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.passes.kernel.call_kernels import call_kernels
from fewbit.passes.pipelines import TO_KERNELS
from fewbit.pipeline.compilation import run_passes
from fewbit.targets.compile import lower
from fewbit.toolchain.isa import Isa

LIMITED = r"select i1 %\w+, i64 %threads, i64 1\n"


@pytest.fixture(autouse=True)
def all_threads() -> None:
    """Here, threads are left out where they are not worth it, as always."""


@pytest.mark.parametrize("recipe", ["w8a8", "w4a8"])
def test_a_tiny_layer_runs_on_one_thread(recipe: str) -> None:
    layers = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))
    x = torch.randn(3, 16)
    program = fewbit.quantize(layers, recipe, example_inputs=(x,))
    assert re.search(LIMITED, lower(program, "llvm"))
    art = fewbit.compile(program, name="tiny")
    alone = art.run(x.numpy(), threads=1)
    for threads in (2, 5):
        np.testing.assert_array_equal(art.run(x.numpy(), threads=threads), alone)


def test_sizes_of_the_run_leave_all_threads() -> None:
    layer = nn.Linear(16, 8)
    shapes = {"input": {0: torch.export.Dim("n")}}
    program = fewbit.quantize(
        layer, "w8a8", example_inputs=(torch.randn(2, 16),), dynamic_shapes=shapes
    )
    assert not re.search(LIMITED, lower(program, "llvm"))


def test_a_stub_knows_the_kernels_that_it_calls() -> None:
    program = fewbit.import_model(nn.Conv2d(3, 4, 3).eval(), (torch.zeros(1, 3, 8, 8),))
    calls = call_kernels(run_passes(program, *TO_KERNELS), Isa.host())
    (convolution,) = [stub for stub in calls.stubs if "fewbit_conv2d" in stub.called[-1]]
    assert convolution.name in calls.names
    assert convolution.called[-1] in calls.kernels
