"""Layers with scales for groups of weights: the bits of the interpreter, whatever their shapes.

The sum of each group is scaled and added in float32 in the order of the groups, so that there is
one right result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import fewbit
from fewbit.base.typed_torch import manual_seed


def assert_same_bits(model: nn.Module, x: torch.Tensor, recipe: str) -> None:
    scales = fewbit.quant.calibrate(model, [x], recipe) if "static" in recipe else None
    program = fewbit.quantize(model.eval(), recipe, scales, example_inputs=(x,))
    assert "!mico.int" in program.text()
    compiled = fewbit.compile(program)
    (expected,) = program.run(x.numpy())
    for threads in (1, 2):
        np.testing.assert_array_equal(compiled(x.numpy(), threads=threads), expected)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Conv2d(48, 3, 3, padding=1), (2, 48, 4, 5)),
        (nn.Conv1d(64, 8, 1), (1, 64, 6)),
        (nn.Conv2d(16, 1, 3), (1, 16, 3, 3)),
    ],
    ids=["image", "sequence", "one_output"],
)
def test_convolutions_add_groups_in_order(model: nn.Module, shape: tuple[int, ...]) -> None:
    assert_same_bits(model, torch.randn(shape, generator=manual_seed(0)), "w4a8g8")


@st.composite
def layers(draw: st.DrawFn) -> tuple[nn.Module, tuple[int, ...], str]:
    group = draw(st.sampled_from([4, 8, 12, 16, 32]))
    weights = draw(st.sampled_from(["w2", "w3", "w4", "w8"]))
    recipe = f"{weights}{draw(st.sampled_from(['a4', 'a8']))}g{group}"
    batch, out = draw(st.integers(1, 3)), draw(st.integers(1, 9))
    channels = group * draw(st.integers(1, 5))
    bias = draw(st.booleans())
    rank = draw(st.integers(0, 2))
    if rank == 0:
        rows = draw(st.sampled_from([(batch,), (batch, 3)]))
        return nn.Linear(channels, out, bias), (*rows, channels), recipe
    split = draw(st.integers(1, 2))
    window = [draw(st.integers(1, 3)) for _ in range(rank)]
    stride, padding, dilation = (
        draw(st.integers(1, 2)),
        draw(st.integers(0, 1)),
        draw(st.integers(1, 2)),
    )
    sizes = [dilation * (k - 1) + 1 + draw(st.integers(0, 5)) for k in window]
    kind: type[Any] = (nn.Conv1d, nn.Conv2d)[rank - 1]
    model = kind(
        split * channels, split * out, tuple(window), stride, padding, dilation, split, bias
    )
    return model, (batch, split * channels, *sizes), recipe


@pytest.mark.parametrize("recipe", ["w2a8g16-offset", "w4a4g32-offset", "w5a8g8-offset-static"])
def test_linear_layers_add_offsets_of_groups(recipe: str) -> None:
    model, x = nn.Linear(96, 19), torch.randn(3, 96, generator=manual_seed(0))
    assert_same_bits(model, x, recipe)


@pytest.mark.parametrize(
    "recipe", ["w4a8g32-blocks", "w8a4g16-blocks", "w3a8g96-blocks", "w4a8g32-offset-blocks"]
)
@pytest.mark.parametrize("rows", [(1,), (3,), (2, 9)], ids=str)
def test_rows_have_scales_for_groups(recipe: str, rows: tuple[int, ...]) -> None:
    model, x = nn.Linear(96, 19), torch.randn(*rows, 96, generator=manual_seed(0))
    assert_same_bits(model, x, recipe)


def test_blocks_that_no_kernel_takes_are_loops() -> None:
    """Groups that are shorter than a step, and zero points."""
    x = torch.randn(3, 64, generator=manual_seed(0))
    for recipe in ("w4a8g2-blocks", "w4a8g32-asym-blocks"):
        assert_same_bits(nn.Linear(64, 5), x, recipe)


@pytest.mark.parametrize("group", [2, 32])
def test_offsets_that_no_kernel_takes_are_loops(group: int) -> None:
    """Weights of 8 bits, and groups that are shorter than a step."""
    x = torch.randn(3, 64, generator=manual_seed(0))
    recipe = "w8a8g32-offset" if group == 32 else "w4a8g2-offset"
    assert_same_bits(nn.Linear(64, 5), x, recipe)


def test_rows_of_tables_have_offsets() -> None:
    table = nn.Embedding(20, 32)
    x = torch.tensor([[3, 19, 0]])
    for recipe in ("w3afpg16-offset", "w4afpg32-offset"):
        assert_same_bits(table, x, recipe)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=40, deadline=None)
@given(layers())
def test_any_shape_has_the_interpreters_bits(case: tuple[nn.Module, tuple[int, ...], str]) -> None:
    model, shape, recipe = case
    assert_same_bits(model, torch.randn(shape), recipe)
