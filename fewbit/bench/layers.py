"""Where a program's time goes, layer by layer, and how close each comes to the bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from fewbit.bench.case import Array
from fewbit.bench.roofline import Roofline
from fewbit.passes.loops.count_cycles import LOOP
from fewbit.runtime import Artifact
from fewbit.runtime.profile import CallProfile


@dataclass(frozen=True)
class LayerTime:
    """All calls that are part of one layer; amounts are of one run of the program."""

    name: str
    kernels: tuple[str, ...]
    """What computes it, the slowest first; loop nests count as one kernel."""
    seconds: float
    share: float
    macs: int
    bytes: int
    bound: float
    """Seconds that this machine needs at least."""

    @property
    def achieved(self) -> float:
        """The fraction of the bound's speed."""
        return self.bound / self.seconds if self.seconds else 0.0


def profile_calls(
    artifact: Artifact, inputs: Sequence[Array], threads: int, seconds: float
) -> tuple[list[CallProfile], int]:
    """Run a program compiled with a profile; return its calls, and how often it ran."""
    call = artifact.runner.prepare(*inputs, threads=threads)
    for _ in range(3):
        call.run()
    artifact.profile(reset=True)
    runs, end = 0, perf_counter() + seconds
    while perf_counter() < end or runs < 5:
        call.run()
        runs += 1
    return artifact.profile(), runs


def times_of_layers(
    calls: Sequence[CallProfile], runs: int, roofline: Roofline, program_bytes: int, threads: int
) -> list[LayerTime]:
    """Return layers in program order; a call's time is its minimum times how often it runs."""
    by_layer: dict[str, list[CallProfile]] = {}
    for call in calls:
        by_layer.setdefault(call.name, []).append(call)
    total = sum(_seconds(call, runs) for call in calls)
    return [
        LayerTime(
            name=name,
            kernels=_kernels(own, runs),
            seconds=spent,
            share=spent / total if total else 0.0,
            macs=sum(round(c.macs * c.calls / runs) for c in own),
            bytes=sum(round(c.bytes * c.calls / runs) for c in own),
            bound=sum(roofline.seconds(c, program_bytes, threads) * c.calls / runs for c in own),
        )
        for name, own in by_layer.items()
        for spent in [sum(_seconds(call, runs) for call in own)]
    ]


def _seconds(call: CallProfile, runs: int) -> float:
    """Return the seconds of one run."""
    return call.least * call.calls / runs


def _kernels(calls: Sequence[CallProfile], runs: int) -> tuple[str, ...]:
    spent: dict[str, float] = {}
    for call in calls:
        name = call.kernel if call.kernel == LOOP else call.kernel.removeprefix("fewbit_")
        spent[name] = spent.get(name, 0.0) + _seconds(call, runs)
    return tuple(sorted(spent, key=lambda name: -spent[name]))
