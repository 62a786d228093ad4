"""Prepared candidates, timed on a GPU by its driver alone: no compiler, no PyTorch, no IREE.

    python -m fewbit.tune.cuda.measure FOLDER

Each candidate of an op is run once on the same random numbers, and what it writes compared with
what the present way writes; those that agree are timed by turns with it. Before each call the
second-level cache is emptied, so a call takes what it takes in a program. A candidate may stop the
GPU for the whole process; then another process goes on behind it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbit.base.start import command
from fewbit.errors import Error
from fewbit.kernels.cuda.driver import Loaded, device
from fewbit.tune.database import Trial
from fewbit.tune.prepared import MEASURED, Candidate, Op, Region, plain_trial, read_prepared
from fewbit.tune.timing import Times

ROUNDS, LAST_ROUNDS = 16, 32
FLUSHED = 256 << 20
"""Bytes written to empty the cache."""
DEATHS = 40
"""Processes that may be lost to candidates."""
_LOCAL, _REGISTERS = 3, 4

Array = NDArray[Any]

KINDS: dict[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.uint16,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "i1": np.int8,
}
"""Types of elements, as numpy holds them."""


def measure(folder: Path) -> None:
    """Time all candidates of a folder, in other processes; `measured.jsonl` is what comes of it."""
    device()
    progress = folder / MEASURED
    progress.unlink(missing_ok=True)
    for _ in range(DEATHS):
        started = command("fewbit.tune.cuda.measure", str(folder))
        if subprocess.run(started).returncode == 0:
            return
        lines = _lines(progress)
        if not lines or "trying" not in lines[-1]:
            raise Error(
                "the process that measures ended without a word",
                hint=f"see what {' '.join(started)} says",
            )
        with progress.open("a") as file:
            file.write(json.dumps({"stopped": lines[-1]["trying"]}) + "\n")


def read_measured(folder: Path) -> list[dict[str, Any]]:
    """Return what is known of each op that was measured, also while others still are."""
    return [line["done"] for line in _lines(folder / MEASURED) if "done" in line]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def run(folder: Path) -> None:
    """Measure what is left of a folder, in this process."""
    prepared, progress = read_prepared(folder), folder / MEASURED
    lines = _lines(progress)
    done = {line["op"] for line in lines if "done" in line}
    stopped = {tuple(line["stopped"]) for line in lines if "stopped" in line}
    with progress.open("a", buffering=1) as file:

        def tell(line: dict[str, Any]) -> None:
            file.write(json.dumps(line) + "\n")

        for number, op in enumerate(prepared.ops):
            if number not in done:
                tell({"op": number, "done": Bench(op, number, stopped, tell).run()})


@dataclass
class Bench:
    """One op on the GPU."""

    op: Op
    number: int
    stopped: set[tuple[int, int]]
    tell: Callable[[dict[str, Any]], None]
    addresses: dict[str, int] = field(default_factory=dict[str, int])
    copies: list[tuple[Region, int]] = field(default_factory=list[tuple[Region, int]])
    """What is written, as it was before, kept on the GPU."""
    trials: list[Trial] = field(default_factory=list[Trial])

    def run(self) -> dict[str, Any]:
        default, *others = self.op.candidates
        for name, buffer in default.plan.buffers.items():
            if buffer.role != "work":
                self.addresses[name] = device().allocate(buffer.bytes)
        self._fill(self.op.regions)
        for region in self.op.regions:
            if region.written:
                self.copies.append((region, device().allocate(bytes_of(region))))
                self._move(self.copies[-1][1], self._at(region), bytes_of(region))
        try:
            return self._measure(default, others)
        finally:
            for address in (*self.addresses.values(), *(copy for _, copy in self.copies)):
                device().free(address)

    def _measure(self, default: Candidate, others: Sequence[Candidate]) -> dict[str, Any]:
        base = self._load(default, 0)
        expected = self._result(default, base)
        ready: list[tuple[Candidate, Loaded]] = []
        for place, candidate in enumerate(others, 1):
            assert candidate.schedule is not None
            loaded = self._check(candidate, place, expected)
            if isinstance(loaded, str):
                self.trials.append(Trial(candidate.schedule, None, loaded))
            else:
                ready.append((candidate, loaded))
        times = time_cold(base, [loaded for _, loaded in ready], ROUNDS)
        again = None
        for i, (candidate, _) in enumerate(ready):
            assert candidate.schedule is not None
            self.trials.append(Trial(candidate.schedule, times.ratio(i)))
        best = min(range(len(ready)), key=times.ratio, default=None)
        if best is not None and times.ratio(best) < times.bar:
            # Of many trials the best is partly luck: it is timed again, alone.
            again = time_cold(base, [ready[best][1]], LAST_ROUNDS)
        plain = {
            "key": list(self.op.key.row),
            "name": self.op.name,
            "seconds": times.default,
            "noise": max(times.noise, again.noise if again else 0.0),
            "bar": times.bar,
            "again": None if again is None or again.ratio(0) >= again.bar else again.ratio(0),
            "best": None if best is None else _schedule(ready[best][0]),
            "resources": [_resources(loaded) for loaded in (base, *(x for _, x in ready))],
            "trials": [plain_trial(trial) for trial in self.trials],
        }
        for _, loaded in ready:
            loaded.close()
        base.close()
        return plain

    def _load(self, candidate: Candidate, place: int) -> Loaded:
        self.tell({"trying": [self.number, place]})
        return Loaded(candidate.plan, self.addresses)

    def _check(self, candidate: Candidate, place: int, expected: list[Array]) -> Loaded | str:
        """Return a candidate that is ready to be timed, or why it is not."""
        if (self.number, place) in self.stopped:
            return "the GPU stops with it"
        try:
            loaded = self._load(candidate, place)
        except Error as e:
            return e.what
        given = self._result(candidate, loaded)
        for (region, _), a, b in zip(self.copies, expected, given, strict=True):
            wrong = differs(a, b, region.element, self.op.tolerance.get(region.element))
            if wrong:
                loaded.close()
                return wrong
        return loaded

    def _fill(self, regions: Sequence[Region]) -> None:
        for seed, region in enumerate(regions):
            data = numbers(region, seed)
            size = c_size_t(data.nbytes)
            source = c_void_p(data.ctypes.data)
            device().call("cuMemcpyHtoD_v2", c_uint64(self._at(region)), source, size)

    def _result(self, candidate: Candidate, loaded: Loaded) -> list[Array]:
        """Return what a run leaves behind where results are."""
        if candidate.regions:
            self._fill(candidate.regions)
        for region, copy in self.copies:
            self._move(self._at(region), copy, bytes_of(region))
        loaded()
        device().synchronize()
        arrays: list[Array] = []
        for region, _ in self.copies:
            data = np.empty(bytes_of(region), np.uint8)
            into, size = c_void_p(data.ctypes.data), c_size_t(data.nbytes)
            device().call("cuMemcpyDtoH_v2", into, c_uint64(self._at(region)), size)
            arrays.append(data)
        return arrays

    def _at(self, region: Region) -> int:
        return self.addresses[region.buffer] + region.offset

    def _move(self, to: int, source: int, size: int) -> None:
        device().call("cuMemcpyDtoD_v2", c_uint64(to), c_uint64(source), c_size_t(size))


def _schedule(candidate: Candidate) -> Any:
    return None if candidate.schedule is None else candidate.schedule.as_json()


def _resources(loaded: Loaded) -> dict[str, int]:
    """Return registers and spilled bytes of a thread, of the first kernel."""
    resources: dict[str, int] = {}
    function = loaded.launches[0][1]
    for name, number in (("registers", _REGISTERS), ("local", _LOCAL)):
        value = c_int()
        device().call("cuFuncGetAttribute", byref(value), number, function)
        resources[name] = value.value
    return resources


def numbers(region: Region, seed: int) -> Array:
    """Return random numbers for a region, the same for the same seed; many repeat after a while."""
    random = np.random.default_rng(seed)
    count = prod(region.shape)
    drawn = min(count, 1 << 20)
    if region.element in ("f64", "f32", "f16", "bf16"):
        some = random.uniform(region.low, 1.0, drawn).astype(np.float32)
    else:
        low = -128 if region.low < 0 else 0
        some = random.integers(low, 100 if low == 0 else 128, drawn)
    values = np.resize(some, count).reshape(region.shape)
    if region.order == "depthwise":
        values = np.moveaxis(values[..., 0], 0, -1)
        kind = np.int32 if region.element == "i8" else np.float32
        return np.ascontiguousarray(values.astype(kind))
    if region.element == "bf16":
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return np.ascontiguousarray(values.astype(KINDS[region.element]))


def bytes_of(region: Region) -> int:
    return prod(region.shape) * np.dtype(KINDS[region.element]).itemsize


def differs(expected: Array, given: Array, element: str, tolerance: float | None) -> str | None:
    """Return how a result is wrong, if it is; without a tolerance its bytes must be equal."""
    if np.array_equal(expected, given):
        return None
    if tolerance is None:
        return "its integers differ"
    a, b = (_floats(data, element) for data in (expected, given))
    with np.errstate(all="ignore"):
        size = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
        off = float(np.max(np.abs(a - b), initial=0.0))
    if np.isnan(off) and np.array_equal(np.isnan(a), np.isnan(b)):
        off = float(np.nanmax(np.abs(a - b), initial=0.0))
    return None if off <= tolerance * size else f"its numbers differ by {off:.2g}"


def _floats(data: Array, element: str) -> Array:
    if element == "bf16":
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if element == "f16":
        return data.view(np.float16).astype(np.float32)
    return data.view(np.float64 if element == "f64" else np.float32)


def time_cold(default: Loaded, others: Sequence[Loaded], rounds: int) -> Times:
    """Time calls with an empty cache, by turns, the default first and last.

    What an event says depends on where it lies: all calls are timed with the same two, in half of
    the rounds in the other order, and the medians of the two halves are averaged.
    """
    gpu, order = device(), [default, *others, default]
    flush, stream = gpu.allocate(FLUSHED), c_void_p()
    gpu.call("cuStreamCreate", byref(stream), 1)
    events = _event(), _event()
    seconds: list[list[float]] = [[] for _ in order]
    for loaded in order:
        loaded(stream.value or 0)
    for turn in range(rounds):
        start, end = events if turn % 2 else events[::-1]
        for place, loaded in enumerate(order):
            gpu.call("cuMemsetD32Async", c_uint64(flush), c_uint(0), c_size_t(FLUSHED // 4), stream)
            gpu.call("cuEventRecord", start, stream)
            loaded(stream.value or 0)
            gpu.call("cuEventRecord", end, stream)
            gpu.call("cuEventSynchronize", end)
            seconds[place].append(_elapsed_seconds(start, end))
    for event in events:
        gpu.call("cuEventDestroy_v2", event)
    gpu.call("cuStreamDestroy_v2", stream)
    gpu.free(flush)
    first, *between, last = ((median(each[::2]) + median(each[1::2])) / 2 for each in seconds)
    return Times(min(first, last), abs(first - last) / min(first, last), tuple(between))


def _event() -> c_void_p:
    event = c_void_p()
    device().call("cuEventCreate", byref(event), 0)
    return event


def _elapsed_seconds(start: c_void_p, end: c_void_p) -> float:
    milliseconds = c_float()
    device().call("cuEventElapsedTime", byref(milliseconds), start, end)
    return milliseconds.value * 1e-3


if __name__ == "__main__":
    run(Path(sys.argv[1]))
