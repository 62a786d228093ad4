"""Tiles on a GPU keep within its limits, and the model ranks them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fewbit.cost.hardware import find_hardware
from fewbit.errors import UsageError
from fewbit.kernels.cuda.arch import AMPERE, HOPPER
from fewbit.tune.cuda.model import GpuAnalytic
from fewbit.tune.cuda.space import (
    gpu_hardware,
    gpu_schedules,
    matmul_of,
    problem_of,
    resources_of,
    uses_mma,
)
from fewbit.tune.schedule import Schedule
from tests.cost.loops.nests import matmul

H200 = find_hardware("h200")
NEST = matmul(256, 256, 128)
PROMOTED = (("promote", 1),)


def halves():
    inputs = [replace(a, element="f16", bits=16) for a in NEST.inputs]
    return replace(NEST, accesses=(*inputs, *NEST.outputs))


def test_all_are_within_limits() -> None:
    given = matmul_of(NEST)
    assert given is not None
    schedules = gpu_schedules(NEST, H200)
    assert len(schedules) > 50
    for schedule in schedules:
        takes = resources_of(given, schedule)
        assert 32 <= takes.threads <= 1024
        assert takes.threads % 32 == 0
        assert takes.shared <= 232448
        assert not uses_mma(schedule)


def test_limits_are_named() -> None:
    given = matmul_of(NEST)
    assert given is not None

    def why(group: tuple[int, int], thread: tuple[int, int, int]) -> str:
        schedule = Schedule((*group, 0), thread, how=PROMOTED)
        return problem_of(given, schedule, H200) or ""

    assert "more than 1024" in why((256, 256), (2, 2, 8))
    assert "no whole warps" in why((16, 16), (8, 8, 8))
    assert "shared memory" in why((256, 256), (8, 8, 128))
    assert "too many results" in why((256, 256), (16, 16, 8))
    assert why((64, 64), (4, 4, 16)) == ""
    with pytest.raises(UsageError, match="no GPU"):
        gpu_schedules(NEST, find_hardware("vexii"))


def test_halves_are_for_tensor_cores() -> None:
    nest = halves()
    schedules = gpu_schedules(nest, H200, HOPPER)
    assert schedules
    assert all(map(uses_mma, schedules))
    assert not any(map(uses_mma, gpu_schedules(nest, H200, HOPPER, mma=False)))
    given = matmul_of(nest)
    assert given is not None
    schedule = Schedule((64, 32, 0), (2, 2, 4), how=(("mma", "x"), ("stages", 2)))
    takes = resources_of(given, schedule)
    assert takes.threads == 4 * 32  # two warps of rows, two of columns
    assert takes.blocks == (256 // 64) * (256 // 32)


def test_the_model_prefers_tiles_that_share() -> None:
    model = GpuAnalytic(gpu_hardware(HOPPER))
    large = matmul(2048, 2048, 512)
    alone = Schedule((1, 32, 0), (1, 1, 4), how=(("promote", 0),))
    shared = Schedule((64, 64, 0), (8, 8, 16), how=PROMOTED)
    assert model.can(large) is None
    assert model.seconds(large, shared) < model.seconds(large, alone) / 3
    assert gpu_hardware(AMPERE).cores == 108
    assert Schedule.from_json(shared.as_json()) == shared
    assert "promote 1" in str(shared)
