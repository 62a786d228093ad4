"""The plan of attention with its projections: three launches that fit together."""

from __future__ import annotations

import pytest

from fewbit.errors import UnsupportedError, UsageError
from fewbit.kernels.cuda.arch import AMPERE, HOPPER
from fewbit.kernels.cuda.plan import Pointer, TensorMap
from fewbit.kernels.cuda.self_attention import SelfAttention, self_attention_plan
from tests.kernels.cuda.compiling import needs_nvrtc


def test_shapes_are_read_and_written() -> None:
    problem = SelfAttention.parse("32x12x197x64,causal")
    assert (problem.batch, problem.heads, problem.length, problem.size) == (32, 12, 197, 64)
    assert str(problem) == "32x12x197x64,causal"
    with pytest.raises(UsageError, match="no shape"):
        SelfAttention.parse("32x12")


def test_attention_reads_heads_where_the_product_stores_them() -> None:
    problem = SelfAttention(2, 4, 19, 16)
    (batch, head, row), *_, y = problem.attention.strides
    assert (batch, head, row) == (19 * 3 * 64, 16, 3 * 64)
    assert y == (19 * 64, 16, 64)
    rows = 2 * 19
    products = 2 * rows * 64 * (3 * 64 + 64)
    assert problem.operations == products + 4 * 2 * 4 * 19 * 19 * 16


@needs_nvrtc
def test_launches_fit_together() -> None:
    problem = SelfAttention(2, 4, 70, 16)
    plan = self_attention_plan(problem, HOPPER)
    assert [launch.symbol for launch in plan.launches] == [
        "conv2d_wgmma",
        "attention_wgmma",
        "conv2d_wgmma",
    ]
    assert len({launch.image for launch in plan.launches}) == 3
    for launch in plan.launches:
        assert launch.symbol.encode() in plan.images[launch.image]
        for argument in launch.arguments:
            if isinstance(argument, Pointer | TensorMap):
                assert argument.offset < plan.buffers[argument.buffer].bytes
    with pytest.raises(UnsupportedError, match="ampere"):
        self_attention_plan(problem, AMPERE)
