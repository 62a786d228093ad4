"""Running a program that is placed on several devices: parts by turns, and transfers between them.

Each part is an artifact of its own, loaded by its target. A transfer copies a value to memory of
the part that reads it; all are counted and timed. State stays with the part that updates it. What
the manifest says of parts, values and transfers is checked before anything of a part is loaded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from time import perf_counter
from typing import Any

import numpy as np

from fewbit.errors import Error, UnsupportedError, UsageError
from fewbit.program.artifact import STATE_FILE, Folder, Manifest, Part
from fewbit.runtime.flow import Flow
from fewbit.runtime.held_state import HeldState
from fewbit.runtime.native import (
    Array,
    NativeLibrary,
    PreparedCall,
    check_inputs,
    check_threads,
    read_initial_state,
)
from fewbit.runtime.placed_manifest import open_parts

Value = tuple[str, str]
"""A value by its name, on the device of a target."""


@dataclass
class Count:
    """How often something was done, for how long, and how much it moved."""

    count: int = 0
    seconds: float = 0.0
    bytes: int = 0

    def add(self, seconds: float, moved: int = 0) -> None:
        self.count += 1
        self.seconds += seconds
        self.bytes += moved


class PlacedRunner:
    """A program on several devices, loaded."""

    def __init__(self, folder: Folder) -> None:
        from fewbit.targets.registry import find_target

        self.manifest: Manifest = folder.manifest
        self.threads = 1
        """How many threads a part uses that can use several, unless a call says otherwise."""
        folders = open_parts(folder)
        _refuse_absent(self.manifest.parts)
        self.runners = [
            _load(part, lambda p=part, f=each: find_target(p.target).load(f))
            for part, each in zip(self.manifest.parts, folders, strict=True)
        ]
        updates = [tensor.updates for tensor in self.manifest.outputs]
        self.state = tuple(each for each in self.manifest.inputs if each.name in updates)
        """The inputs whose new values are outputs; they are behind all others."""
        has_start = STATE_FILE in self.manifest.files
        self._state_file = folder.file(STATE_FILE) if has_start else None
        self.flow = Flow(self.manifest)
        self.part_counts = [Count() for _ in self.manifest.parts]
        self.transfer_counts = [Count() for _ in self.manifest.transfers]

    def __call__(self, *arrays: Any, threads: int | None = None) -> tuple[Array, ...]:
        """Run the program and return its outputs."""
        return self.prepare(*arrays, threads=threads)()

    def prepare(
        self, *arrays: Any, threads: int | None = None, in_place: bool = False
    ) -> PlacedCall:
        """Return a call, to be made again and again, as `NativeLibrary.prepare` does."""
        count = check_threads(self.threads if threads is None else threads)
        if self.state and len(arrays) == self._own_inputs:
            start = read_initial_state(self.state, self._state_file)
            arrays, in_place = (*arrays, *start.values()), True
        ports = self.manifest.inputs
        held = {t.name: a for t, a in zip(ports, arrays, strict=False) if isinstance(a, HeldState)}
        rest = [array for array in arrays if not isinstance(array, HeldState)]
        open_ports = [port for port in ports if port.name not in held]
        given = zip(open_ports, check_inputs(rest, open_ports), strict=True)
        named: dict[str, Any] = {port.name: array for port, array in given} | held
        return PlacedCall(self, {p.name: named[p.name] for p in ports}, count, in_place)

    @property
    def _own_inputs(self) -> int:
        return len(self.manifest.inputs) - len(self.state)

    def check_own(self, arrays: Sequence[Any]) -> list[Array]:
        """Return arrays for all inputs but the state, as the program takes them."""
        return check_inputs(arrays, self.manifest.inputs[: self._own_inputs])

    def initial_state(self) -> dict[str, Array | HeldState]:
        """Return what state starts from, by the names of inputs, where a session keeps it.

        These are new arrays; state of a part on a device of its own is held there.
        """
        arrays, owners = read_initial_state(self.state, self._state_file), self.flow.owners
        return {
            name: self._hold(owners[name], array) if name in owners else array
            for name, array in arrays.items()
        }

    def _hold(self, part: int, array: Array) -> Array | HeldState:
        runner = self.runners[part]
        return runner.hold(array) if hasattr(runner, "hold") else array

    def stats(self) -> str:
        """Return how long parts and transfers took in all calls, for people to read."""
        from fewbit.targets.placed.report import stats_text

        return stats_text(self.manifest, self.part_counts, self.transfer_counts)

    def plain_stats(self) -> dict[str, Any]:
        """Return the same for JSON."""
        from fewbit.targets.placed.report import plain_stats

        return plain_stats(self.manifest, self.part_counts, self.transfer_counts)

    @property
    def profile(self) -> Any:
        raise UsageError(
            "a program on several devices counts the time of its parts, not of layers",
            hint="'fewbit run DIR --stats' shows it",
        )

    @property
    def variant(self) -> None:
        return None

    def use_variant(self, name: str) -> None:
        raise UsageError("a program on several devices has no variants")


def _refuse_absent(parts: Sequence[Part]) -> None:
    """Refuse parts that this machine cannot run, before any is loaded."""
    from fewbit.targets.registry import find_target

    for part in parts:
        reason = find_target(part.target).find_obstacle(part.target)
        if reason is not None:
            raise UnsupportedError(
                f"this machine cannot run {part.name}, which is for {part.target}: {reason}",
                hint="run it where there is such a device, or place that part on another",
            )


def _load(part: Part, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Error as e:
        what = f"{e.what}, in {part.name} for {part.target}"
        raise type(e)(what, place=e.place, hint=e.hint) from e


class PlacedCall:
    """A call with memory for what passes between parts; it overwrites its outputs."""

    def __init__(
        self, runner: PlacedRunner, inputs: Mapping[str, Any], threads: int, in_place: bool
    ) -> None:
        self._runner, self._manifest, self._inputs = runner, runner.manifest, inputs
        self._in_place = in_place
        self._flow = runner.flow
        updates = [self._flow.updates_of(part) for part in self._manifest.parts]
        self._steps = [
            _make_step(each, threads, updated)
            for each, updated in zip(runner.runners, updates, strict=True)
        ]
        self._values: dict[Value, Any] = {}
        """Arrays, and state that a device holds."""
        self._before: dict[str, Array] = {}
        self._buffers: dict[Value, Array] = {}
        self.outputs: tuple[Any, ...] = ()
        """The outputs of the last run; among them state, as it was given."""

    def run(self) -> None:
        self._values, self._before = {}, {}
        for name, array in self._inputs.items():
            self._begin(name, array)
        parts = zip(self._manifest.parts, self._steps, strict=True)
        for number, (part, step) in enumerate(parts):
            given = [self._read(name, number) for name in part.inputs]
            start = perf_counter()
            results = step(given)
            self._runner.part_counts[number].add(perf_counter() - start)
            for name, result in zip(part.outputs, results, strict=True):
                self._give(name, part.target, self._update_state(name, result))
        self._finish()

    def _begin(self, name: str, array: Any) -> None:
        """Put an input to its place; of state that is read after its update, keep a copy."""
        is_state = name in self._flow.states
        array = np.array(array) if is_state and not self._in_place else array
        if name in self._flow.read_again:
            self._before[name] = np.array(array)
        self._give(name, self._flow.home(name), array)

    def _read(self, name: str, part: int) -> Any:
        target = self._manifest.parts[part].target
        is_here = self._flow.home(name) == target
        if is_here and name in self._before and self._flow.owners[name] != part:
            return self._before[name]
        return self._values[name, target]

    def _update_state(self, name: str, result: Any) -> Any:
        """Return a result; a new value of state is where the old one was."""
        state = self._flow.updated.get(name)
        if state is None:
            return result
        array = self._values[state, self._flow.home(state)]
        if array is not result:
            np.copyto(array, result)
        return array

    def _give(self, name: str, device: str, array: Any) -> None:
        """Keep a value, and transfer it to other devices that need it."""
        self._values[name, device] = array
        for number in self._flow.transfers.get(name, ()):
            place = name, self._manifest.transfers[number].target
            start = perf_counter()
            buffer = self._buffers.get(place)
            source = np.asarray(array)
            if buffer is None or buffer.shape != source.shape:
                buffer = self._buffers[place] = np.empty(source.shape, source.dtype)
            np.copyto(buffer, source)
            self._runner.transfer_counts[number].add(perf_counter() - start, source.nbytes)
            self._values[place] = buffer

    def _finish(self) -> None:
        """Gather outputs; state that no part updates, but another input, is written last."""
        results: list[Any] = []
        late: list[tuple[Array, Array]] = []
        for tensor, name in zip(self._manifest.outputs, self._manifest.results, strict=True):
            home = self._flow.home_of_result(tensor.updates, name)
            array: Any = self._before.get(name, self._values[name, home])
            array = np.array(array) if name in self._inputs else array
            if self._in_place and tensor.updates in self._inputs.keys() - self._flow.owners.keys():
                late.append((self._inputs[tensor.updates], array))
                array = self._inputs[tensor.updates]
            results.append(array)
        for state, array in late:
            np.copyto(state, array)
        self.outputs = tuple(results)

    @property
    def own_outputs(self) -> tuple[Array, ...]:
        """Those that are not new values of state."""
        pairs = zip(self._manifest.outputs, self.outputs, strict=True)
        return tuple(array for tensor, array in pairs if tensor.updates is None)

    def __call__(self) -> tuple[Array, ...]:
        self.run()
        return self.outputs


Step = Callable[[Sequence[Any]], Sequence[Any]]


def _make_step(runner: Any, threads: int, updates: Mapping[int, int]) -> Step:
    if isinstance(runner, NativeLibrary):
        return _NativeStep(runner, threads)
    if updates and hasattr(runner, "call_held"):
        return partial(runner.call_held, updates=updates, threads=threads)
    options = {"threads": threads} if "threads" in signature(runner).parameters else {}
    return lambda arrays: runner(*arrays, **options)


class _NativeStep:
    """A part in this process's memory, prepared anew only where its inputs are other arrays."""

    def __init__(self, library: NativeLibrary, threads: int) -> None:
        self._library, self._threads = library, threads
        self._given: Sequence[Array] = ()
        self._call: PreparedCall | None = None

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        same = len(arrays) == len(self._given) and all(map(operator.is_, arrays, self._given))
        if self._call is None or not same:
            self._call = self._library.prepare(*arrays, threads=self._threads, in_place=True)
            self._given = arrays
        return self._call()
