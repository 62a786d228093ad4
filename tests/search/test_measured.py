"""Budgets that are measured on the target."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fewbit
from fewbit.errors import UsageError
from fewbit.numerics import Width
from fewbit.quant.recipe import Recipe
from fewbit.search.budget import eight_bits
from fewbit.search.load import Asked, Loaded, load
from fewbit.search.measured_costs import Measured
from fewbit.search.meters import WHOLE, find_meter
from fewbit.search.space import Choices, Space, make_space
from fewbit.search.store import Store
from tests.search.models import images, small

FEW = (1, 2, 4, 8)


@cache
def model() -> Loaded:
    return load(Asked(small(), images()))


def space() -> Space:
    widths = tuple(map(Width.of, FEW))
    searched = [layer.searched for layer in model().layers.values()]
    return make_space(searched, Choices(widths, widths, ("max",)), free_ends=True)


def make_measured(kind: str, target: str, folder: Path) -> Measured:
    meter = find_meter(kind, target, model().inputs)
    return Measured(model().program, "model", model().layers, meter, Store(folder))


@pytest.mark.slow
@pytest.mark.parametrize(("target", "machine"), [("vexii", "high"), ("bitfusion", "")])
def test_layers_add_up_to_what_whole_programs_take(
    target: str, machine: str, tmp_path: Path
) -> None:
    made = make_measured("cycles", target, tmp_path)
    cost = made.cost("cycles", machine, space())
    wide = eight_bits(space())
    for recipe in ("w8a8", "w2a2", "w4a4,conv2=w1a1,fc=w8a8"):
        schemes = Recipe.of(recipe).resolve(list(model().layers))
        part = made.compare(schemes, wide)[cost.name]
        near = 1e-6 if len(set(schemes.values())) == 1 else 0.05
        assert cost.total(schemes) / cost.total(wide) == pytest.approx(part, rel=near)


@pytest.mark.slow
def test_a_search_keeps_to_what_the_simulator_counts(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "data": images(),
        "target": "vexii",
        "weights": FEW,
        "acts": (2, 4, 8),
        "rules": ("max",),
        "measured": True,
        "free_ends": True,
        "output": tmp_path,
        "trials": 4,
    }
    result = fewbit.search(small(), budget={"cycles": 0.95}, **options)
    best = result.best
    assert best is not None
    assert best.measured["cycles:high"] <= 0.95 * result.ranges[0].baseline
    assert "measured as a whole: cycles:high" in str(result)
    program = fewbit.import_model(small(), model().inputs)
    artifact = fewbit.compile(program, "vexii", recipe=best.recipe)
    artifact(*model().inputs)
    counted = {e.machine: e.cycles for e in artifact.runner.estimate(artifact.runner.events)}
    assert counted["high"] == pytest.approx(best.measured["cycles:high"], rel=0.001)


@pytest.mark.slow
def test_latency_is_that_of_compiled_programs(tmp_path: Path) -> None:
    made = make_measured("latency", "cpu", tmp_path)
    schemes = Recipe.of("w8a8").resolve(list(model().layers))
    program = fewbit.quantize(model().program, Recipe.by_name(schemes))
    amounts = made.meter.layers(program)
    # The call of a function is part of the module around it.
    assert {"conv1", "conv2", "model", "fc"} <= set(amounts)
    assert sum(x for name, x in amounts.items() if name != WHOLE) > 0
    assert 0 < amounts[WHOLE] < 1


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(UsageError, match="latency on vexii cannot be measured"):
        find_meter("latency", "vexii", ())
    with pytest.raises(UsageError, match="cycles on cpu cannot be measured"):
        find_meter("cycles", "cpu", ())
    with pytest.raises(UsageError, match="no budget that could be measured"):
        fewbit.search(small(), data=images(), budget={"size": 0.5}, measured=True)
