"""Tools beside one another: each in a process of its own, by turns, for each number of threads.

Only one process runs at a time. The others are stopped, not only waiting: threads of some tools
look for work busily for a while after a call.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from fewbit.base.progress import progress
from fewbit.base.start import command
from fewbit.bench.case import Case
from fewbit.bench.peers import find_tool
from fewbit.bench.timing import Timing, timing_of
from fewbit.errors import Error

ROUND = 0.1
"""Seconds that a tool has before it is the turn of the next."""
LEAST_ROUNDS = 5


@dataclass(frozen=True)
class Prepared:
    """What a tool made of the model."""

    variant: str
    bytes: int | None = None
    """The size of its files; None where it has none of its own."""


class Worker:
    """The process of a tool; stopped except where it is asked for something."""

    def __init__(self, case: Case, tool: str, threads: int, **task: object) -> None:
        self.tool = tool
        self._log: IO[bytes] = (case.place(tool) / "log.txt").open("wb")
        cpus = _cpus(threads) if task["task"] == "run" else []
        request = {"threads": threads, "cpus": cpus, **task}
        # In a group of its own, the system ends it even while it is stopped, should we die.
        self._process = subprocess.Popen(
            command("fewbit.bench.worker", str(case.folder), tool, json.dumps(request)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=_environment(threads),
            process_group=0,
        )

    def answer(self) -> dict[str, Any]:
        """Return the next message; it says so itself where the process ended."""
        line = cast("IO[str]", self._process.stdout).readline()
        if line:
            return json.loads(line)
        code = self._process.wait()
        return {"failed": f"its process ended with status {code}: {self._last_words()}"}

    def ask(self, seconds: float) -> dict[str, Any]:
        """Return how long calls take, tried for this long."""
        self._process.send_signal(signal.SIGCONT)
        stdin = cast("IO[str]", self._process.stdin)
        stdin.write(f"{seconds}\n")
        stdin.flush()
        answer = self.answer()
        self.stop()
        return answer

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGSTOP)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            cast("IO[Any]", stream).close()

    def _last_words(self) -> str:
        lines = Path(self._log.name).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def prepare(case: Case, tools: Sequence[str]) -> tuple[dict[str, Prepared], dict[str, str]]:
    """Let each tool build what it runs; the second result has the reasons of those that cannot."""
    prepared: dict[str, Prepared] = {}
    absent: dict[str, str] = {}
    with progress("Preparing other tools", len(tools)) as step:
        for tool in tools:
            peer = find_tool(tool, case.text is not None)
            if not peer.makes_files:
                prepared[tool] = Prepared(peer.variants(case.quantized)[0])
                step()
                continue
            with _worker(case, tool, 1, task="prepare") as worker:
                answer = worker.answer()
            if "failed" in answer:
                absent[tool] = answer["failed"]
            else:
                prepared[tool] = Prepared(answer["variant"], answer["bytes"])
            step()
    return prepared, absent


def contest(
    case: Case, tools: Mapping[str, Prepared], threads: int, seconds: float
) -> tuple[dict[str, Timing], dict[str, str]]:
    """Measure times of each tool, measured for so many seconds each; and why some have none."""
    absent: dict[str, str] = {}
    samples: dict[str, list[float]] = {tool: [] for tool in tools}
    repeats: dict[str, int] = {}
    rounds = max(LEAST_ROUNDS, round(seconds / ROUND))
    with ExitStack() as stack:
        workers: list[Worker] = []
        with progress(f"Starting tools, {_thread_count(threads)}", len(tools)) as step:
            for tool, prepared in tools.items():
                worker = stack.enter_context(
                    _worker(case, tool, threads, task="run", variant=prepared.variant)
                )
                answer = worker.answer()
                worker.stop()
                step()
                if "failed" in answer:
                    absent[tool] = answer["failed"]
                    continue
                repeats[tool] = answer["repeats"]
                workers.append(worker)
        with progress(f"Measuring, {_thread_count(threads)}", rounds) as step:
            for _ in range(rounds):
                for worker in workers:
                    if worker.tool in absent:
                        continue
                    answer = worker.ask(seconds / rounds)
                    if "failed" in answer:
                        absent[worker.tool] = answer["failed"]
                    else:
                        samples[worker.tool] += answer["samples"]
                step()
    times = {tool: timing_of(samples[tool], repeats[tool]) for tool in tools if tool not in absent}
    return times, absent


@contextmanager
def _worker(case: Case, tool: str, threads: int, **task: object) -> Generator[Worker]:
    worker = Worker(case, tool, threads, **task)
    try:
        yield worker
    finally:
        worker.end()


def _thread_count(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def usable_cpus() -> list[int]:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def check_threads(threads: int) -> None:
    if threads > len(usable_cpus()):
        raise Error(
            f"{threads} threads on {len(usable_cpus())} processors would measure the system's "
            "scheduler",
            hint=f"ask for at most {len(usable_cpus())}",
        )


def _cpus(threads: int) -> list[int]:
    """Return where a worker runs: the last, because systems use the first for themselves."""
    return usable_cpus()[-threads:]


def _environment(threads: int) -> dict[str, str]:
    """Return our environment, with the number of threads for libraries that look it up there."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, str(threads))}
