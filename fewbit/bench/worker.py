"""A process for one tool: `python -m fewbit.bench.worker CASE TOOL TASK`, told what to do by lines.

Each tool has a process to itself, because tools keep threads that wait busily and would disturb
others. A message is a JSON object in a line. To begin with the worker says what it has made ready,
or why it has not; then, for each number of seconds that it is given, how long calls took. What a
tool itself prints goes to the standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import IO

from fewbit.bench.case import Case
from fewbit.bench.peers import find_tool
from fewbit.bench.peers.peer import Peer
from fewbit.bench.timing import clock_for, repeats_of, sample

TRIAL_SECONDS = 0.3
LEAST_SAMPLES = 3
LONGEST_REASON = 200

Say = Callable[[dict[str, object]], None]


def main(folder: str, tool: str, task: str) -> None:
    say = _private_stdout()
    try:
        request = json.loads(task)
        case = Case.load(Path(folder))
        peer = find_tool(tool, case.text is not None)
        if request["cpus"] and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, request["cpus"])
        if request["task"] == "prepare":
            say(prepare(case, peer, tool))
        else:
            measure(case, peer, tool, request["variant"], request["threads"], say)
    except Exception as e:
        say({"failed": _reason(e)})


def prepare(case: Case, peer: Peer, tool: str) -> dict[str, object]:
    """Build all variants of a tool; return the fastest on one thread."""
    best: tuple[float, str] | None = None
    failed: dict[str, str] = {}
    for variant in peer.variants(case.quantized):
        folder = variant_folder(case, tool, variant)
        folder.mkdir(exist_ok=True)
        try:
            peer.build(case, variant, folder)
            run = peer.open(case, variant, folder, 1).run
            clock = clock_for(1)
            repeats = repeats_of(run, clock)
            end = perf_counter() + TRIAL_SECONDS
            seconds = sample(run, repeats, clock)
            while perf_counter() < end:
                seconds = min(seconds, sample(run, repeats, clock))
        except Exception as e:
            failed[variant] = _reason(e)
            continue
        if best is None or seconds < best[0]:
            best = seconds, variant
    if best is None:
        return {"failed": "; ".join(dict.fromkeys(failed.values()))}
    files = [f for f in variant_folder(case, tool, best[1]).rglob("*") if f.is_file()]
    return {"variant": best[1], "bytes": sum(f.stat().st_size for f in files), "tried": failed}


def measure(case: Case, peer: Peer, tool: str, variant: str, threads: int, say: Say) -> None:
    """Run a variant, keep its outputs, and then run it for as long as each line says."""
    session = peer.open(case, variant, variant_folder(case, tool, variant), threads)
    session.run()
    case.save_outputs(tool, session.outputs())
    clock = clock_for(threads)
    repeats = repeats_of(session.run, clock)
    say({"repeats": repeats})
    for line in sys.stdin:
        end = perf_counter() + float(line)
        session.run()
        samples: list[float] = []
        while perf_counter() < end or len(samples) < LEAST_SAMPLES:
            samples.append(sample(session.run, repeats, clock))
        say({"samples": samples})


def variant_folder(case: Case, tool: str, variant: str) -> Path:
    return case.place(tool) / variant.replace(", ", "-").replace(" ", "-")


def _private_stdout() -> Say:
    """Return what writes to the one who started this process; prints of tools go elsewhere."""
    stream: IO[str] = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(message: dict[str, object]) -> None:
        stream.write(json.dumps(message) + "\n")
        stream.flush()

    return say


def _reason(e: Exception) -> str:
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    return f"{type(e).__name__}: {lines[0] if lines else ''}"[:LONGEST_REASON].rstrip(": ")


if __name__ == "__main__":
    main(*sys.argv[1:])
