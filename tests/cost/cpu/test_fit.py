"""Fitting: a machine that is made up is found again from its times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fewbit.cost.cpu.calibration import Calibration
from fewbit.cost.cpu.fit import accuracy, fit
from fewbit.cost.cpu.samples import Samples
from fewbit.cost.cpu.work import work_of
from fewbit.kernels import Isa

VNNI = Isa.of("x86-64-v4-vnni")


def made_up(seed: int) -> Calibration:
    rng = np.random.default_rng(seed)
    default = Calibration.default(VNNI)
    changed = {term: c * rng.uniform(0.5, 2) for term, c in default.coefficients.items()}
    return replace(default, coefficients=changed)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_machine_is_found_again(seed: int) -> None:
    machine = made_up(seed)
    calls = Samples(VNNI, 0).draw(300)
    rng = np.random.default_rng(seed)
    times = [machine.seconds(call) * rng.uniform(0.98, 1.02) for call in calls]
    found = fit([work_of(call) for call in calls], times, machine.read)
    assert all(value >= 0 for value in found.values())
    assert found["i8.steps"] == pytest.approx(machine.coefficients["i8.steps"], rel=0.1)
    unseen = Samples(VNNI, 1).draw(100)
    again = replace(machine, coefficients=found)
    good = accuracy([again.seconds(c) for c in unseen], [machine.seconds(c) for c in unseen])
    assert good.within_fifth > 0.95
    assert good.median < 0.04


def test_a_few_disturbed_calls_change_little() -> None:
    machine = made_up(2)
    calls = Samples(VNNI, 0).draw(300)
    times = [machine.seconds(call) * (3 if i % 20 == 0 else 1) for i, call in enumerate(calls)]
    found = replace(
        machine, coefficients=fit([work_of(call) for call in calls], times, machine.read)
    )
    errors = [found.seconds(call) / machine.seconds(call) - 1 for call in calls]
    assert np.median(np.abs(errors)) < 0.06


def test_accuracy() -> None:
    found = accuracy([1.0, 1.1, 1.3, 0.9], [1.0, 1.0, 1.0, 1.0])
    assert found.calls == 4
    assert found.within_fifth == 0.75
    assert found.median == pytest.approx(0.1)
