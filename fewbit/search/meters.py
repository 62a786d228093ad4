"""What a compiled program takes on its target, layer by layer: seconds, or cycles of a simulator.

On the processor a library with a profile says where its time goes, and one without how long it
takes in all; only the fastest of many runs counts, since other programs disturb it least. What is
simulated needs one run, and says it for every machine of the target.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Protocol

from fewbit.errors import UsageError
from fewbit.ir.layers import layers
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from fewbit.targets.device import Device, Simulated
from fewbit.targets.registry import find_target

WHOLE = ""
"""What stands for a layer where the whole program is meant."""
SECONDS = 0.3
"""How long a program is run again and again, at least."""
FEWEST = 5
"""Runs, however long one takes."""

Amounts = Mapping[str, float]
"""By layer, and of the whole program; with several machines, `machine:layer`."""


class Meter(Protocol):
    """Runs programs on a target."""

    @property
    def unit(self) -> str:
        """What it counts in."""
        ...

    @property
    def how(self) -> str:
        """What it measures on, as it is stored with what it found."""
        ...

    def layers(self, program: Program) -> Amounts:
        """Return what each layer and the whole program take."""
        ...

    def compare(self, program: Program, baseline: Program) -> tuple[Amounts, Amounts]:
        """Return what two whole programs take, measured together."""
        ...


def find_meter(what: str, target: str, inputs: Sequence[Any]) -> Meter:
    """Return what measures cycles or latency on a target."""
    found = find_target(target)
    if what == "cycles" and isinstance(found, Device):
        return SimulatorMeter(target, tuple(inputs))
    if what == "latency" and target == "cpu":
        return ProcessorMeter(target, tuple(inputs))
    hint = "cycles of -t vexii, bitfusion or gemmini can be, and latency of -t cpu"
    raise UsageError(f"{what} on {target} cannot be measured here", hint=hint)


@dataclass(frozen=True)
class SimulatorMeter:
    """Counts cycles on the target's simulator."""

    target: str
    inputs: Sequence[Any]
    unit: str = "cycles"

    @property
    def how(self) -> str:
        return f"cycles on the simulator of {self.target}"

    def layers(self, program: Program) -> Amounts:
        with TemporaryDirectory(prefix="fewbit-search-") as folder:
            runner = _compile(program, self.target, folder).runner
            assert isinstance(runner, Simulated)
            estimates = runner.estimate(runner.execute(*self.inputs).events)
        # Symbols of machine code have no dots.
        names = {re.sub(r"\W", "_", name): name for name in layers(program.module)}
        amounts: dict[str, float] = {}
        for each in estimates:
            amounts[f"{each.machine}:{WHOLE}"] = each.cycles
            for layer in each.layers:
                key = f"{each.machine}:{names.get(layer.name, layer.name)}"
                amounts[key] = amounts.get(key, 0.0) + layer.cycles
        return amounts

    def compare(self, program: Program, baseline: Program) -> tuple[Amounts, Amounts]:
        return self.layers(program), self.layers(baseline)


@dataclass(frozen=True)
class ProcessorMeter:
    """Times programs on this processor, on one thread."""

    target: str
    inputs: Sequence[Any]
    unit: str = "s"
    _kept: dict[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)

    @property
    def how(self) -> str:
        from fewbit.toolchain.machine import this_machine

        return f"seconds on {this_machine().processor}"

    def layers(self, program: Program) -> Amounts:
        with TemporaryDirectory(prefix="fewbit-search-") as folder:
            call, artifact = self._prepare(program, f"{folder}/profiled", profile=True)
            call.run()
            artifact.profile(reset=True)
            runs = _repeat([call.run])
            amounts: dict[str, float] = {}
            for row in artifact.profile():
                spent = row.least * row.calls / runs
                amounts[row.name] = amounts.get(row.name, 0.0) + spent
            plain, _ = self._prepare(program, f"{folder}/plain")
            (amounts[WHOLE],) = _time_together([plain.run])
        return amounts

    def compare(self, program: Program, baseline: Program) -> tuple[Amounts, Amounts]:
        with TemporaryDirectory(prefix="fewbit-search-") as folder:
            calls = [
                self._prepare(each, f"{folder}/{number}")[0].run
                for number, each in enumerate((program, baseline))
            ]
            first, second = _time_together(calls)
        return {WHOLE: first}, {WHOLE: second}

    def _prepare(self, program: Program, folder: str, **options: Any) -> tuple[Any, Artifact]:
        artifact = _compile(program, self.target, folder, **options)
        return artifact.runner.prepare(*self.inputs, threads=1), artifact


def _compile(program: Program, target: str, folder: str, **options: Any) -> Artifact:
    from fewbit.targets.compile import compile

    return compile(program, target, Path(folder) / "net", name="net", **options)


def _repeat(functions: Sequence[Callable[[], object]]) -> int:
    """Call functions by turns until there was time enough; return how often."""
    runs, end = 0, perf_counter() + SECONDS
    while perf_counter() < end or runs < FEWEST:
        for function in functions:
            function()
        runs += 1
    return runs


def _time_together(functions: Sequence[Callable[[], object]]) -> list[float]:
    """Return the minimum processor time of a call of each; they take turns."""
    counts = [_calls_of(function) for function in functions]
    least = [float("inf")] * len(functions)

    def sample(number: int) -> None:
        start = process_time()
        for _ in range(counts[number]):
            functions[number]()
        least[number] = min(least[number], (process_time() - start) / counts[number])

    _repeat([lambda n=number: sample(n) for number in range(len(functions))])
    return least


def _calls_of(function: Callable[[], object]) -> int:
    """Return how many calls take about a millisecond, which a clock measures well enough."""
    for _ in range(3):
        function()
    start = perf_counter()
    function()
    return max(1, min(4096, round(1e-3 / max(perf_counter() - start, 1e-7))))
