"""Costs of instructions by class, and their errors on the page, are what the benchmark finds."""

from __future__ import annotations

import os
import sys
import tomllib
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from tests.cost.cycles.test_estimate import data_folder
from tests.test_docs import ROOT

LIBRARY = os.environ.get("FEWBIT_MICO_LIBRARY")
"""A checkout of MiCo-Lib, at the version that the benchmark names."""


@cache
def benchmark() -> Any:
    spec = spec_from_file_location("costs", ROOT / "benchmarks" / "instruction_costs.py")
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def made_up_rows(core: str, costs: dict[str, float]) -> list[Any]:
    """Layers of three kinds that take what these costs say, and 21 cycles for a line."""
    kinds = {
        "matmul": {"alu": 5, "load": 3, "dot": 2, "branch": 1, "taken": 1},
        "conv2d": {"alu": 6, "float": 4, "float-load": 2, "jump": 2, "store": 1, "taken": 1},
        "maxpool": {"alu": 4, "branch": 3, "float": 1, "float-load": 1, "taken": 1},
    }
    rows: list[Any] = []
    for kind, each in kinds.items():
        for times in (100, 1000, 5000):
            counts = {name: number * times for name, number in each.items()}
            cycles = sum(costs[name] * number for name, number in counts.items()) + 21 * times
            rows.append(benchmark().Row(core, kind, round(cycles), counts, times))
    return rows


@pytest.mark.parametrize("core", ["small", "high"])
def test_a_fit_finds_what_layers_take(core: str) -> None:
    assumed = benchmark().prior(core)
    costs = {**assumed, "float": 1.5, "jump": 1.5}
    rows = made_up_rows(core, costs)
    before = abs(benchmark().errors(rows, assumed)).mean()
    found = benchmark().fit(rows)
    assert abs(benchmark().errors(rows, found)).mean() < before / 4
    assert found["float"] < assumed["float"]
    assert found["divide"] == pytest.approx(assumed["divide"]), "no row tells of it"


def test_costs_stay_above_a_slot() -> None:
    rows = made_up_rows("small", dict.fromkeys(benchmark().prior("small"), 0.1))
    assert min(cost for name, cost in benchmark().fit(rows).items() if name != "taken") == 1.0


@pytest.mark.slow
@pytest.mark.skipif(LIBRARY is None, reason="FEWBIT_MICO_LIBRARY names no checkout of MiCo-Lib")
@pytest.mark.skipif(find_spec("ziglang") is None, reason="the compiler is not installed")
def test_costs_and_the_table_of_the_page(tmp_path: Path) -> None:
    assert LIBRARY is not None
    rows = benchmark().count(benchmark().build(Path(LIBRARY), tmp_path), data_folder())
    page = (ROOT / "docs" / "cycles.md").read_text()
    assert "\n".join(benchmark().report(rows)) in page
    benchmark().write(tmp_path / "found.toml", rows)
    data = tomllib.loads((tmp_path / "found.toml").read_text())
    stated = tomllib.loads(benchmark().HOME.read_text())
    for core, costs in stated.items():
        assert data[core] == pytest.approx(costs, abs=0.02)
