"""Errors that are stated are those that the fit finds on what it did not see."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from fewbit.cost.cycles.estimate import RELEASES, costs_of
from tests.cost.cycles.test_estimate import data_folder
from tests.test_docs import ROOT

PAGE = ROOT / "docs" / "cycles.md"


@cache
def benchmark() -> Any:
    spec = spec_from_file_location("fit_cycles", ROOT / "benchmarks" / "fit_cycles.py")
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def samples() -> Any:
    folder: Path = data_folder()
    if not (folder / "mico_small.csv").exists():
        pytest.skip("MiCo's tables are not here; FEWBIT_DATA says where they are")
    return benchmark().read_samples(folder)


@pytest.fixture(scope="module")
def models(samples: Any) -> Any:
    return benchmark().fit_all(samples)


def test_stated_errors_are_those_on_what_was_held_out(models: Any) -> None:
    for (core, release, kind), model in models.items():
        stated = costs_of(core, kind, release)
        assert stated.error == pytest.approx(model.error, abs=5e-4), (core, release, kind)
        assert stated.source == model.source
        costs = {name: value for name, value in model.costs.items() if value > 0}
        assert stated.each == pytest.approx(costs, rel=1e-3)


def test_stated_errors_by_size_and_width(models: Any) -> None:
    for (core, release, kind), model in models.items():
        stated = costs_of(core, kind, release).errors
        if kind.endswith("pool"):
            assert stated is model.errors is None
            continue
        assert stated is not None
        assert stated.measured == model.errors.measured
        for cells, expected in zip(stated.cells, model.errors.cells, strict=True):
            assert cells == pytest.approx(expected, abs=6e-4)


def test_the_table_of_the_page(models: Any) -> None:
    page = PAGE.read_text()
    assert benchmark().table(models) in page


def test_a_call_costs_less_on_the_faster_core() -> None:
    for release in RELEASES:
        small, high = (costs_of(core, "linear", release).each for core in ("small", "high"))
        assert 0.5 * small["calls"] < high["calls"] < small["calls"]


def test_given_costs_stay_and_larger_layers_are_as_well_predicted(samples: Any) -> None:
    sample = samples["high", "2025", "linear"]
    known = {"calls": costs_of("high", "linear", "2025").each["calls"]}
    assert sample.fit(known=known)["calls"] == known["calls"]
    free = sample.errors(sample.hold_out(sample.folds()))
    given = sample.errors(sample.hold_out(sample.folds(), known))
    assert given.mean() < free.mean() + 1e-3
    assert sample.elsewhere(known) < sample.elsewhere()


@pytest.mark.parametrize(
    ("title", "key"),
    [
        ("`small`, matmul", ("small", "2025", "matmul")),
        ("`high`, matmul", ("high", "2025", "matmul")),
        ("`small`, linear", ("small", "2025", "linear")),
        ("`high`, linear", ("high", "2025", "linear")),
        ("`small`, convolution, 2025", ("small", "2025", "conv2d")),
        ("`high`, convolution, 2025", ("high", "2025", "conv2d")),
        ("`small`, convolution, 2026", ("small", "2026", "conv2d")),
    ],
)
def test_rows_of_the_page(title: str, key: tuple[str, str, str], samples: Any) -> None:
    sample = samples[key]
    accuracy = benchmark().Accuracy.of(sample, sample.hold_out(sample.folds()))
    shapes = len(set(sample.shapes))
    numbers = [
        f"{len(accuracy.errors)}",
        f"{shapes}",
        _percent(accuracy.mean),
        _percent(accuracy.p95),
    ]
    ranks = [f"{accuracy.median_rank:.3f}", f"{accuracy.worst_rank:.2f}"]
    assert f"| {title} | {' | '.join([*numbers, *ranks])} |" in PAGE.read_text()


def test_rules_of_the_page(samples: Any) -> None:
    fitted, _ = benchmark().fit_each(samples)
    rows = re.findall(
        r"^\| `(release|kind|core \w+)` \|.*\| ([\d.]+ %) \|$", PAGE.read_text(), re.M
    )
    found = benchmark().rule_errors(samples, fitted)
    assert dict(rows) == {name: _percent(rule.mean) for name, rule in found.items()}


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
