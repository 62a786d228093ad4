"""Spaces: which schemes units have, what is tied, and what candidates say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.errors import UsageError
from fewbit.numerics import Width
from fewbit.quant.scheme import LayerScheme
from fewbit.search.space import Choices, SearchedLayer, Space, block_of, make_space

LAYERS = [
    SearchedLayer("conv1", (6, 1, 5, 5), "conv1.weight", 6 * 25),
    SearchedLayer("blocks.0.q", (8, 6), "blocks.0.q.weight", 48),
    SearchedLayer("blocks.0.k", (8, 6), "blocks.0.k.weight", 48),
    SearchedLayer("blocks.1.q", (8, 64), "blocks.1.q.weight", 512),
    SearchedLayer("head", (10, 8), "head.weight", 80),
]


def widths(*texts: str) -> tuple[Width, ...]:
    return tuple(Width.of(text) for text in texts)


FEW = Choices(widths("1", "1.58", "2", "3", "4", "8"))


def texts(space: Space, unit: int) -> list[str]:
    return [str(scheme) for scheme in space.units[unit].choices]


def test_rules_of_scales_are_tried_where_they_differ() -> None:
    space = make_space(LAYERS, FEW)
    expected = ["w1a8", "w1.58a8", "w2a8", "w3a8", "w3a8-mse", "w4a8", "w4a8-mse", "w8a8"]
    assert texts(space, 1) == expected


def test_the_first_and_last_layer_keep_eight_bits_unless_they_are_free() -> None:
    kept, free = make_space(LAYERS, FEW), make_space(LAYERS, FEW, free_ends=True)
    assert texts(kept, 0) == texts(kept, 4) == ["w8a8"]
    assert texts(free, 0) == texts(free, 4) == texts(kept, 1)


def test_groups_are_for_matrices_that_they_divide() -> None:
    choices = Choices(widths("4"), groups=(None, 32), rules=("max",))
    space = make_space(LAYERS, choices, free_ends=True)
    assert texts(space, 0) == texts(space, 1) == ["w4a8"]
    assert texts(space, 3) == ["w4a8", "w4a8g32"]


def test_layers_that_share_a_weight_are_one_unit() -> None:
    table = SearchedLayer("table", (10, 8), "head.weight", 0, is_table=True)
    space = make_space([table, *LAYERS], FEW, free_ends=True)
    assert [layer.name for layer in space.units[0].layers] == ["table", "head"]


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("layers.3.attn.q", "layers.3"),
        ("features.3", "features.3"),
        ("layer2.conv1", "layer2"),
        ("layer2.shortcut.0", "layer2"),
        ("fc", "fc"),
    ],
)
def test_blocks_are_read_from_names(name: str, block: str) -> None:
    assert block_of(name) == block


def test_layers_of_a_block_or_a_pattern_are_tied() -> None:
    blocks = make_space(LAYERS, FEW, tie="block", free_ends=True)
    assert [unit.name for unit in blocks.units] == [
        "conv1",
        "blocks.0.q (+1)",
        "blocks.1.q",
        "head",
    ]
    named = make_space(LAYERS, FEW, tie=r"re:.*\.q", free_ends=True)
    assert [layer.name for layer in named.units[1].layers] == ["blocks.0.q", "blocks.1.q"]


def test_a_pattern_that_selects_nothing_is_an_error() -> None:
    with pytest.raises(UsageError, match="matches no name"):
        make_space(LAYERS, FEW, tie="re:nothing")
    with pytest.raises(UsageError, match="matches no name"):
        make_space(LAYERS, FEW, keep={"conv9": "w8a8"})


def test_layers_that_are_kept_are_not_searched() -> None:
    space = make_space(LAYERS, FEW, keep={"blocks.0": "fp"}, free_ends=True)
    assert [unit.name for unit in space.units] == ["conv1", "blocks.1.q", "head"]
    assert space.schemes(space.widest)["blocks.0.k"].is_float


def test_a_model_without_layers_is_refused() -> None:
    with pytest.raises(UsageError, match="no layer whose weight could be quantized"):
        make_space([], FEW)


@given(st.data())
def test_recipes_say_what_candidates_do(data: st.DataObject) -> None:
    space = make_space(LAYERS, FEW, keep={"blocks.0.k": "w4a8"}, free_ends=True)
    candidate = tuple(data.draw(st.integers(0, len(unit.choices) - 1)) for unit in space.units)
    schemes = space.schemes(candidate)
    assert space.recipe(candidate).resolve([layer.name for layer in LAYERS]) == schemes
    assert schemes["blocks.0.k"] == LayerScheme.of("w4a8")
