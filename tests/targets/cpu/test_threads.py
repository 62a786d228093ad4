"""Which threads a call has: those that are worth waiting for, and others where they are awake."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import pytest

import fewbit
from fewbit.passes.llvm import translate_to_llvm_ir
from fewbit.runtime import Artifact
from tests.targets.cpu.programs import inputs, layers

TASKS = Path("/proc/self/task")
ASLEEP = 0.02
"""Seconds after which workers sleep, also on a machine that does other work."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """A program that shares its work with workers, but has too little to wake them for."""
    monkeypatch.setattr(translate_to_llvm_ir, "WORTH_WAKING", 1e30)
    return fewbit.compile(layers())


def switches(task: Path) -> int:
    """Return how often a thread went to sleep."""
    match = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", (task / "status").read_text(), re.M)
    assert match is not None
    return int(match[1])


def test_single_call_leaves_workers_asleep(small: Artifact) -> None:
    before = set(TASKS.iterdir())
    call = small.runner.prepare(*inputs(), threads=2)
    call()
    (worker,) = set(TASKS.iterdir()) - before
    sleep(ASLEEP)
    slept = switches(worker)
    for _ in range(3):
        call()
        sleep(ASLEEP)
    assert switches(worker) == slept


def test_calls_one_after_another_wake_workers(small: Artifact) -> None:
    before = set(TASKS.iterdir())
    call = small.runner.prepare(*inputs(), threads=2)
    call()
    (worker,) = set(TASKS.iterdir()) - before
    sleep(ASLEEP)
    slept, end = switches(worker), perf_counter() + 10
    while switches(worker) == slept and perf_counter() < end:
        for _ in range(100):
            call()
        sleep(ASLEEP)
    assert switches(worker) > slept


@pytest.mark.parametrize("worth_waking", [1e-30, 1e30])
def test_calls_at_the_same_time_are_right(
    monkeypatch: pytest.MonkeyPatch, worth_waking: float
) -> None:
    monkeypatch.setattr(translate_to_llvm_ir, "WORTH_WAKING", worth_waking)
    program = layers(dynamic=True, bits=8)
    artifact = fewbit.compile(program)

    def work(rows: int) -> bool:
        given = inputs(rows)
        wanted = program.run(*given)
        return all(
            np.array_equal(got, right)
            for turn in range(100)
            for got, right in zip(artifact.run(*given, threads=1 + turn % 4), wanted, strict=True)
        )

    with ThreadPoolExecutor(6) as callers:
        assert all(callers.map(work, range(1, 7)))
