"""Calibration of the cost model on this machine: time calls, fit, and test on calls not seen.

All calls take turns, again and again, and of each the minimum counts: what else the machine does
disturbs some rounds and not all. After each round, what was measured is saved in a file, from which
a calibration that was interrupted goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path

from fewbit.base.progress import progress
from fewbit.cost.cpu.calibration import Calibration, Read
from fewbit.cost.cpu.fit import accuracy, fit
from fewbit.cost.cpu.kernel_call import KernelCall
from fewbit.cost.cpu.measure import Bench, Timer
from fewbit.cost.cpu.probes import BytePeak, FloatPeak
from fewbit.cost.cpu.samples import Samples
from fewbit.cost.cpu.store import calibration_path, read_json, write_json
from fewbit.cost.cpu.work import work_of
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.machine import this_machine

SIZES = tuple(1 << i for i in range(15, 27))
"""Bytes that are read to find out what memory gives."""
TIMES = 3
"""How often a call is timed in one round."""
PEAK_COUNT = 2000


@dataclass(frozen=True)
class Effort:
    """How many calls to fit, how many to test on, and how often to time each."""

    fitted: int
    tested: int
    rounds: int


FULL = Effort(450, 150, 8)
QUICK = Effort(150, 45, 4)


def calibrate(isa: Isa | None = None, effort: Effort = FULL, seed: int = 0) -> Calibration:
    """Measure this machine; only what is needed to resume after an interruption is stored."""
    isa = isa or Isa.host()
    calls = [
        *Samples(isa, seed).draw(effort.fitted),
        *Samples(isa, seed + 1).draw(effort.tested),
    ]
    times = _measure(isa, calls, effort.rounds, f"{seed} {effort}")
    calibration = fit_calibration(isa, calls[: effort.fitted], times)
    tested = calls[effort.fitted :]
    predicted = [calibration.seconds(call) for call in tested]
    measured = times[effort.fitted : len(calls)]
    return replace(calibration, accuracy=accuracy(predicted, measured) if tested else None)


def fit_calibration(isa: Isa, calls: Sequence[KernelCall], times: Sequence[float]) -> Calibration:
    """Fit a calibration to the times of these calls, followed by those of the probes."""
    *_, floats, bytes_ = times
    highest, points = 0.0, list[tuple[int, float]]()
    for size, time in zip(SIZES, times[-len(SIZES) - 2 : -2], strict=True):
        highest = max(highest, time / size)  # noise aside, more memory is never nearer
        points.append((size, highest))
    read = Read(tuple(points))
    return Calibration(
        processor=this_machine().processor,
        isa=isa,
        coefficients=fit([work_of(call) for call in calls], times[: len(calls)], read),
        read=read,
        macs={
            "f32": PEAK_COUNT * FloatPeak(isa).macs / floats,
            "i8": PEAK_COUNT * BytePeak(isa).macs / bytes_,
        },
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
    )


def unfinished_path(isa: Isa) -> Path:
    path = calibration_path(isa)
    return path.with_name(path.name.replace("calibration", "unfinished"))


def _measure(isa: Isa, calls: Sequence[KernelCall], rounds: int, what: str) -> list[float]:
    """Return the minimum time of each call, then of reading each size, then of both peaks."""
    bench, path = Bench(isa), unfinished_path(isa)
    done, times = _unfinished(path, what, len(calls) + len(SIZES) + 2)
    with progress("Compiling kernels"):
        bench.compile([call.kernel for call in calls])
    with progress("Timing kernels", total=(rounds - done + 1) * len(times)) as step:
        timers: list[Timer] = []
        for make in (
            *((lambda call=call: bench.timer(call)) for call in calls),
            *((lambda size=size: bench.read(size)) for size in SIZES),
            lambda: bench.peak(FloatPeak(isa), PEAK_COUNT),
            lambda: bench.peak(BytePeak(isa), PEAK_COUNT),
        ):
            timers.append(make())
            step()
        for number in range(done, rounds):
            for i, timer in enumerate(timers):
                times[i] = min(times[i], *(timer.seconds() for _ in range(TIMES)))
                step()
            write_json(path, {"what": what, "rounds": number + 1, "times": times})
    with suppress(OSError):
        path.unlink()
    return times


def _unfinished(path: Path, what: str, count: int) -> tuple[int, list[float]]:
    """Return the rounds that an interrupted calibration has done, and its times."""
    saved = read_json(path) or {}
    try:
        times = [float(time) for time in saved["times"] if time > 0]
        if saved["what"] == what and len(times) == count:
            return int(saved["rounds"]), times
    except (KeyError, TypeError, ValueError):
        pass
    return 0, [inf] * count
