"""Errors that are stated are those that the fit finds on what it did not see."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from fewbit.cost.cycles.estimate import costs_of
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


def test_stated_errors_are_those_on_what_was_held_out(samples: Any) -> None:
    for (core, release, kind), (costs, error, source) in benchmark().fit_all(samples).items():
        stated = costs_of(core, kind, release)
        assert stated.error == pytest.approx(error, abs=5e-4), (core, release, kind)
        assert stated.source == source
        assert stated.each == pytest.approx({n: v for n, v in costs.items() if v > 0}, rel=1e-3)


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
    found = benchmark().Accuracy.of(sample, sample.held_out())
    shapes = len(set(sample.shapes))
    numbers = [f"{len(found.errors)}", f"{shapes}", _percent(found.mean), _percent(found.p95)]
    ranks = [f"{found.median_rank:.3f}", f"{found.worst_rank:.2f}"]
    assert f"| {title} | {' | '.join([*numbers, *ranks])} |" in PAGE.read_text()


def test_rules_of_the_page(samples: Any) -> None:
    fitted = {key: sample.fit() for key, sample in samples.items()}
    rows = re.findall(
        r"^\| `(release|kind|core \w+)` \|.*\| ([\d.]+ %) \|$", PAGE.read_text(), re.M
    )
    found = benchmark().rule_errors(samples, fitted)
    assert dict(rows) == {name: _percent(error) for name, error in found.items()}


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
