"""Budgets as they are written, and limits as they are met."""

from __future__ import annotations

import pytest

from fewbit.errors import Error, UsageError
from fewbit.numerics import Width
from fewbit.quant.scheme import LayerScheme
from fewbit.search.budget import Budget, Limit, make_limits, read_budgets
from fewbit.search.costs import Cost, CostTable, amount
from fewbit.search.plan import check_limits
from fewbit.search.space import Choices, SearchedLayer, make_space

LAYERS = [SearchedLayer(name, (8, 8), f"{name}.weight", 64) for name in "abcd"]
CHOICES = Choices(tuple(Width.of(bits) for bits in (2, 4, 8)), rules=("max",))
SPACE = make_space(LAYERS, CHOICES, free_ends=True)


def bits(name: str, scheme: LayerScheme) -> float:
    return 8.0 * (32 if scheme.weight is None else scheme.weight.bits)


SIZE = Cost("size", "B", bits, ("a", "b", "c", "d"), fixed=16.0)
"""16 and 64 a layer with 8 bits."""


def limit_of(text: str) -> float | None:
    (limit,) = make_limits([SIZE], [Budget.parse(text)], SPACE)
    return limit.limit


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("size=0.5x", 136),
        ("size=1x", 272),
        ("size=100", 100),
        ("size = 100B", 100),
        ("size=1.5kB", 1500),
        ("size=2M", 2e6),
        ("size=w2a8", 16 + 4 * 16),
        ("size=w8a8,a=w2a8", 272 - 48),
    ],
)
def test_a_limit_is_a_part_an_amount_or_a_recipe(text: str, limit: float) -> None:
    assert limit_of(text) == pytest.approx(limit)


@pytest.mark.parametrize("text", ["size", "size=", "=3", ""])
def test_a_text_without_a_limit_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no budget"):
        Budget.parse(text)


@pytest.mark.parametrize("text", ["size=much", "size=3q", "size=5ms", "size=-2x", "size=x"])
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no limit of size"):
        limit_of(text)


def test_an_unknown_cost_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'bops'"):
        Budget.parse("bobs=1x")
    with pytest.raises(UsageError, match="no cost 'size:high'"):
        Budget.parse("size:high=1x")


def test_numbers_in_python_are_parts() -> None:
    assert read_budgets({"size": 0.25, "cycles:small": "1M"}) == [
        Budget("size", "0.25x"),
        Budget("cycles:small", "1M"),
    ]
    assert read_budgets(["size=1x"]) == [Budget("size", "1x")]
    with pytest.raises(UsageError, match="given twice"):
        read_budgets(["size=1x", "size=2x"])


def test_a_limit_that_nothing_meets_is_not_reachable() -> None:
    (limit,) = make_limits([SIZE], [Budget.parse("size=0.1x")], SPACE)
    assert not limit.is_reachable
    assert limit.show(limit.table.least) == "80 B (0.294x)"
    (met,) = make_limits([SIZE], [Budget.parse("size=80B")], SPACE)
    assert met.is_reachable


def test_limits_are_met_by_candidates_and_shown_in_parts() -> None:
    (limit,) = make_limits([SIZE], [Budget.parse("size=w2a8")], SPACE)
    assert limit.is_met((0, 0, 0, 0))
    assert not limit.is_met((0, 0, 0, 1))
    assert limit.table.cheapest() == (0, 0, 0, 0)
    assert limit.show(136) == "136 B (0.5x)"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (10900, "B", "10.9 kB"),
        (1.2e6, "cycles", "1.2 M cycles"),
        (3.5e-5, "s", "35 us"),
        (2, "s", "2 s"),
    ],
)
def test_amounts_are_short(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


def test_limits_that_exclude_each_other_are_refused() -> None:
    rising, falling = ((1.0, 2.0, 3.0),) * 4, ((3.0, 2.0, 1.0),) * 4
    tables = [CostTable(name, "B", 0.0, rows) for name, rows in (("a", rising), ("b", falling))]
    check_limits([Limit(table, 12.0, 8.0) for table in tables], list)
    with pytest.raises(Error, match="no recipe meets the budgets of a and b together"):
        check_limits([Limit(table, 12.0, 7.0) for table in tables], list)
