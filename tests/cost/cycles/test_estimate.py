"""Estimates of cycles: their order, their limits, and how far they are from measurements."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.cost.cycles import CACHES, Conv2d, Linear, Matmul, cycles, instruction_cycles
from fewbit.cost.cycles.estimate import RELEASES, costs_of
from fewbit.cost.cycles.instructions import MISS
from fewbit.cost.cycles.tables import Measurement, read_table
from fewbit.errors import UsageError, WidthError
from fewbit.riscv.instructions import Kind

SHAPES = [Matmul(8, 64, 128), Linear(8, 64, 128), Conv2d(16, 32, (14, 14), (3, 3))]


@pytest.mark.parametrize("core", CACHES)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_fewer_bits_take_fewer_cycles(
    core: str, release: str, shape: Matmul | Linear | Conv2d
) -> None:
    equal = [cycles(core, shape, bits, bits, release).cycles for bits in (8, 4, 2, 1)]
    assert equal == sorted(equal, reverse=True)
    assert equal[0] > 1.2 * equal[-1]


@given(st.integers(1, 8), st.integers(1, 8))
def test_widths_without_an_instruction_count_as_the_next_wider(act: int, weight: int) -> None:
    wider = {3: 4, 5: 8, 6: 8, 7: 8}
    shape = SHAPES[2]
    assert cycles("high", shape, act, weight) == cycles(
        "high", shape, wider.get(act, act), wider.get(weight, weight)
    )


def test_every_cost_is_listed_with_its_source() -> None:
    for core in CACHES:
        for release in RELEASES:
            for kind in ("matmul", "linear", "conv2d", "avgpool", "maxpool"):
                costs = costs_of(core, kind, release)
                assert 0 < costs.error < 0.5
                assert costs.source
                assert all(value > 0 for value in costs.each.values())


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="no core 'big'"):
        cycles("big", SHAPES[0])
    with pytest.raises(UsageError, match="no release '2030'"):
        cycles("small", SHAPES[0], release="2030")
    with pytest.raises(WidthError):
        cycles("small", SHAPES[0], 9, 8)


def test_instructions_by_class() -> None:
    counts = {"alu": 100, "load": 40, "dot": 20, "branch": 10}
    few, many = instruction_cycles("high", counts), instruction_cycles("small", counts, taken=9)
    assert few.cycles < many.cycles


def test_no_instruction_takes_less_than_a_slot() -> None:
    for core, slot in {"small": 1.0, "high": 0.5, "cacheless": 1.0}.items():
        for kind in map(str, Kind):
            assert instruction_cycles(core, {kind: 1}).cycles >= slot, (core, kind)


def test_only_caches_have_lines_to_wait_for() -> None:
    counts, misses = {"alu": 100, "load": 40}, (30, 10)
    results = {core: instruction_cycles(core, counts, misses=misses).cycles for core in CACHES}
    hits = {core: instruction_cycles(core, counts).cycles for core in CACHES}
    waits = {core: results[core] - hits[core] for core in CACHES}
    assert waits == pytest.approx({"small": 30 * MISS, "high": 10 * MISS, "cacheless": 0})
    assert hits["cacheless"] == hits["small"]


TABLES = {
    "mico_small": 0.04,
    "mico_high": 0.02,
    "mico_small_bitlinear_test": 0.03,
    "mico_high_bitlinear_test": 0.01,
    "mico_small_bitconv2d_test": 0.03,
    "mico_high_bitconv2d_test_larger": 0.02,
    "mico_small_conv2d_zoo": 0.03,
    "mico_small_avgpool4d_f32_test": 0.03,
    "mico_high_maxpool4d_f32_test": 0.05,
}


@pytest.mark.parametrize("name", TABLES)
def test_as_measured(name: str) -> None:
    errors = [abs(_estimate(row) - row.cycles) / row.cycles for row in _rows(name)]
    assert mean(errors) < TABLES[name]


def _estimate(row: Measurement) -> float:
    bits = [min(width, 8) for width in (row.act_bits, row.weight_bits)]
    return cycles(row.core, row.shape, bits[0], bits[1], row.release).cycles


def data_folder() -> Path:
    root = Path(os.environ.get("FEWBIT_DATA", Path(__file__).parents[4] / "shared/data"))
    return root / "mico"


def _rows(name: str) -> list[Measurement]:
    path = data_folder() / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not here; FEWBIT_DATA says where MiCo's tables are")
    return read_table(path)
