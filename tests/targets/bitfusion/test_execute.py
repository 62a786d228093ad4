"""Blocks run tile by tile: their sums are those of integers, their traffic that of the cost model."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fewbit.errors import UnsupportedError
from fewbit.numerics import conv2d
from fewbit.targets.bitfusion.accelerator import MICO, Accelerator
from fewbit.targets.bitfusion.blocks import Block, Shape, make_block
from fewbit.targets.bitfusion.execute import execute
from fewbit.targets.bitfusion.schedule import cost
from tests.targets.bitfusion.integers import integers

SMALL = Accelerator(
    rows=2, columns=4, weight_buffer=512, act_buffer=256, out_buffer=512, bandwidth=24
)
few = st.integers(1, 3)
sizes = st.integers(3, 9)
widths = st.integers(1, 8)


@settings(max_examples=60)
@given(
    few,
    st.integers(1, 8),
    st.integers(1, 11),
    few,
    sizes,
    sizes,
    few,
    few,
    widths,
    widths,
    st.booleans(),
)
def test_any_layer_on_a_small_accelerator(
    batch: int,
    inputs: int,
    outputs: int,
    kernel: int,
    height: int,
    width: int,
    stride: int,
    groups: int,
    act: int,
    weight: int,
    unfolded: bool,
) -> None:
    rng = np.random.default_rng(inputs * outputs)
    x = integers(rng, act, (batch, inputs * groups, height, width))
    w = integers(rng, weight, (outputs * groups, inputs, kernel, kernel))
    padding = ((kernel // 2, 0), (0, kernel // 2))
    expected = conv2d(x, w, stride=(stride, stride), padding=padding, groups=groups)
    shape = Shape(
        batch=batch,
        inputs=inputs,
        outputs=outputs,
        image=(expected.shape[2], expected.shape[3]),
        kernel=(kernel, kernel),
        stride=(stride, stride),
        padding=padding,
        dilation=(1, 1),
    )
    try:
        block = make_block("layer", shape, groups, (act, weight), unfolded, SMALL)
    except UnsupportedError:
        assume(False)
        raise
    sums, counted = execute(block, x, w)
    np.testing.assert_array_equal(sums, expected)
    predicted = cost(block.cost_layer, SMALL)
    assert counted.macs == block.cost_layer.macs
    assert sum(counted.loaded.values()) == predicted.reads["dram"]
    assert counted.stored == predicted.writes["dram"]


def test_dilation_is_unfolded() -> None:
    rng = np.random.default_rng(0)
    x, w = integers(rng, 4, (1, 3, 11, 9)), integers(rng, 3, (5, 3, 3, 3))
    expected = conv2d(x, w, dilation=(2, 3))
    shape = Shape(
        batch=1,
        inputs=3,
        outputs=5,
        image=(expected.shape[2], expected.shape[3]),
        kernel=(3, 3),
        stride=(1, 1),
        padding=((0, 0), (0, 0)),
        dilation=(2, 3),
    )
    block = make_block("layer", shape, 1, (4, 3), True, MICO)
    np.testing.assert_array_equal(execute(block, x, w)[0], expected)


def test_a_block_is_the_same_after_json() -> None:
    shape = Shape(
        batch=2,
        inputs=64,
        outputs=300,
        image=(14, 14),
        kernel=(3, 3),
        stride=(1, 1),
        padding=((1, 1), (1, 1)),
        dilation=(1, 1),
    )
    block = make_block("layer", shape, 1, (8, 4), False, MICO)
    assert block.loops
    assert Block.model_validate_json(block.model_dump_json()) == block
    again = block.for_batch(5, MICO)
    assert again.shape.batch == 5
    assert again.for_batch(2, MICO) == block
