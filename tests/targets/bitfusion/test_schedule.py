"""The cost model against published rows of the original, and against its definition, loop by loop."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import ceil, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import UnsupportedError, WidthError
from fewbit.targets.bitfusion.accelerator import EYERISS, MICO, Accelerator
from fewbit.targets.bitfusion.layer import Layer, conv2d, matmul
from fewbit.targets.bitfusion.schedule import LOOPS, MOVED_BY, cost, plan
from tests.targets.bitfusion.published import rows


def test_a_matrix_product_and_a_convolution_as_published() -> None:
    assert cost(matmul(16, 64, 2048, 2, 2)).cycles == 24592
    assert cost(conv2d((64, 64, 3, 2048), 1, 2, 2, 2)).cycles == 16786176


def test_every_column_of_a_layer_that_the_authors_published() -> None:
    layer = Layer(16, 512, 384, 4, 4, image=(13, 13), kernel=(3, 3))
    found = cost(layer, EYERISS)
    assert (found.cycles, found.stalls) == (3248129, 538625)
    assert found.reads == {
        "weight": 22196256768,
        "act": 22196256768,
        "out": 308281344,
        "dram": 469499904,
    }
    assert found.writes == {
        "weight": 7077888,
        "act": 308281344,
        "out": 308281344,
        "dram": 154140672,
    }


def test_a_sample_of_the_tables() -> None:
    for n, m, k, act, weight, cycles in rows("bitfusion_matmul_samples.csv")[::9]:
        assert cost(matmul(n, m, k, act, weight)).cycles == cycles
    for h, w, c, k, kernel, stride, act, weight, cycles in rows("bitfusion_conv2d_samples.csv")[
        ::29
    ]:
        assert cost(conv2d((h, w, c, k), kernel, stride, act, weight)).cycles == cycles


@pytest.mark.slow
def test_every_row_of_the_tables() -> None:
    for n, m, k, act, weight, cycles in rows("bitfusion_matmul_samples.csv"):
        assert cost(matmul(n, m, k, act, weight)).cycles == cycles
    for h, w, c, k, kernel, stride, act, weight, cycles in rows("bitfusion_conv2d_samples.csv"):
        assert cost(conv2d((h, w, c, k), kernel, stride, act, weight)).cycles == cycles


SMALL = Accelerator(
    rows=2, columns=4, weight_buffer=256, act_buffer=128, out_buffer=256, bandwidth=24
)
sizes = st.integers(1, 9)
widths = st.integers(1, 8)


@settings(max_examples=40, deadline=None)
@given(
    sizes,
    sizes,
    sizes,
    widths,
    widths,
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(1, 2),
    st.booleans(),
)
def test_as_if_tried_one_by_one(
    batch: int,
    inputs: int,
    outputs: int,
    act: int,
    weight: int,
    image: int,
    kernel: int,
    stride: int,
    im2col: bool,
) -> None:
    layer = Layer(
        batch,
        inputs,
        outputs,
        act,
        weight,
        (image, image),
        (kernel, kernel),
        (stride, stride),
        im2col=im2col,
    )
    expected = _fewest_cycles(layer, SMALL)
    if expected is None:
        with pytest.raises(UnsupportedError):
            cost(layer, SMALL)
    else:
        assert cost(layer, SMALL).cycles == expected


def test_groups_are_costed_one_after_the_other() -> None:
    depthwise = Layer(1, 64, 64, 8, 8, image=(8, 8), kernel=(3, 3), groups=64)
    one = replace(depthwise, inputs=1, outputs=1, groups=1)
    assert cost(depthwise).cycles == 64 * cost(one).cycles
    assert cost(depthwise).energy == 64 * cost(one).energy
    assert depthwise.macs == 8 * 8 * 9 * 64


def test_three_bits_compute_as_four_and_seven_as_eight() -> None:
    assert [MICO.parallel(bits, 8) for bits in range(1, 9)] == [4, 4, 2, 2, 1, 1, 1, 1]
    assert MICO.parallel(2, 2) == 16
    with pytest.raises(WidthError, match="9 bits"):
        MICO.parallel(9, 8)


def test_a_schedule_covers_the_layer() -> None:
    layer = Layer(2, 48, 70, 4, 8, image=(5, 12), kernel=(3, 1))
    schedule, _ = plan(layer)
    whole = {"batch": 2, "columns": 12, "rows": 5, "inputs": 48, "outputs": 70}
    assert {loop: ceil(whole[loop] / schedule.tile[loop]) for loop in LOOPS} == schedule.counts


def _fewest_cycles(layer: Layer, accelerator: Accelerator) -> int | None:
    found: list[int] = []
    size, outputs = layer.image[0], 1 if layer.im2col else accelerator.columns
    for batch in _steps(layer.batch):
        for side in _steps(size):
            for inputs in _steps(layer.inputs):
                for step in _steps(ceil(layer.outputs / outputs)):
                    tile = {"batch": batch, "columns": side, "rows": side, "inputs": inputs}
                    tile["outputs"] = min(step * outputs, layer.outputs)
                    found += _cycles(layer, tile, accelerator)
    return min(found, default=None)


def _steps(size: int) -> list[int]:
    steps = [1]
    while steps[-1] < size:
        steps.append(min(2 * steps[-1], size))
    return steps


def _cycles(layer: Layer, tile: dict[str, int], accelerator: Accelerator) -> list[int]:
    lanes = accelerator.rows * accelerator.parallel(layer.act_bits, layer.weight_bits)
    k, s = layer.kernel[0], layer.stride[0]
    side = tile["rows"] if layer.im2col else k + (tile["rows"] - 1) * s
    window = k * k if layer.im2col else 1
    columns = ceil(tile["outputs"] / accelerator.columns)
    bits = {
        "weight": ceil(k * k * tile["inputs"] / lanes)
        * lanes
        * tile["outputs"]
        * layer.weight_bits,
        "act": side**2 * window * tile["inputs"] * tile["batch"] * layer.act_bits,
        "out": tile["rows"] ** 2 * columns * accelerator.columns * tile["batch"] * 32,
    }
    halves = {
        "weight": accelerator.weight_buffer * 4,
        "act": accelerator.act_buffer * 4,
        "out": accelerator.out_buffer * 4,
    }
    if any(bits[stream] > halves[stream] for stream in bits):
        return []
    whole = {
        "batch": layer.batch,
        "columns": layer.image[1],
        "rows": layer.image[0],
        "inputs": layer.inputs,
        "outputs": layer.outputs,
    }
    count = {loop: ceil(whole[loop] / tile[loop]) for loop in LOOPS}
    deep = (
        ceil(k * k * tile["inputs"] / lanes)
        if layer.im2col
        else k * k * ceil(tile["inputs"] / lanes)
    )
    compute = prod(count.values()) * tile["batch"] * tile["rows"] ** 2 * columns * deep
    found: list[int] = []
    for order in permutations(LOOPS):
        moved, held = dict(bits), dict(bits)
        for stream in bits:
            stays = True
            for loop in reversed(order):
                if not stays:
                    moved[stream] *= count[loop]
                elif loop in MOVED_BY[stream]:
                    moved[stream] *= count[loop]
                    stays = moved[stream] <= halves[stream]
                    held[stream] = moved[stream] if stays else held[stream]
        first, last = sum(held.values()), held["out"]
        middle = sum(moved.values()) + moved["out"] - first - last
        width = accelerator.bandwidth
        edges = ceil(first / width) + ceil(last / width)
        found.append(compute + max(0, ceil(middle / width) - compute) + edges)
    return found
