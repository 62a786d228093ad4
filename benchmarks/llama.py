"""A decode step of LLaMa-15M, beside other tools: a table in markdown.

    python benchmarks/llama.py [--recipe R] [--threads 1,2] [--against TOOLS] [--seconds S]

One token at position 128 of a cache of 256, batch 1; all tools have the same weights and the same
128 tokens before. A time is the minimum and the median of a step; behind it how many times as long
the minimum is as fewbit's, and how far logits are from PyTorch's in float32. llama.cpp is measured
where `llama-cpp-python` and `gguf` are installed.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from pathlib import Path

from fewbit.bench import decoding
from fewbit.bench.contest import check_threads
from fewbit.bench.peers import AVAILABLE, OURS, SPECIAL, missing_packages, parse_peers
from fewbit.bench.report import Plan, Times, ToolTime, measure
from fewbit.bench.subject import OUR_SAMPLES, find_subject
from fewbit.cli.calibration import CalibrationOptions

SHOWN = ("onnxruntime", "openvino")
"""The tools of 8 bits among those that run any model."""


def main() -> None:
    options = _options()
    peers = _peers(options.against)
    threads = tuple(map(int, options.threads.split(",")))
    for count in threads:
        check_threads(count)
    subject = find_subject(f"{decoding.__file__}:decoding")
    program = CalibrationOptions().quantize(
        subject.program, options.recipe, subject.random_samples(OUR_SAMPLES)
    )
    plan = Plan(options.recipe, "cpu", tuple(peers), threads, options.seconds, layers=False)
    report = measure(subject, program, plan)
    print(f"| {options.recipe} | threads | {' | '.join([OURS, *peers])} |")
    print("|---" * (3 + len(peers)) + "|")
    for times in report.times:
        print(_row(times, peers))
        for tool, reason in times.absent.items():
            print(f"{tool} is not measured: {reason}")
    if options.json is not None:
        options.json.write_text(json.dumps(report.plain(), indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", "-r", default="w4a8")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--against", default=AVAILABLE)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _peers(against: str) -> list[str]:
    if against != AVAILABLE:
        return parse_peers(against, quantized=True)
    wanted = (*SHOWN, *SPECIAL)
    missing = {name: missing_packages(name, quantized=True) for name in wanted}
    for name, packages in missing.items():
        if packages:
            print(f"{name} is not measured: {', '.join(packages)} is not installed")
    return [name for name, packages in missing.items() if not packages]


def _row(times: Times, peers: Sequence[str]) -> str:
    results = {row.tool: row for row in times.tools}
    cells = [_cell(results.get(tool)) for tool in (OURS, *peers)]
    return f"| LLaMa-15M decode | {times.threads} | {' | '.join(cells)} |"


def _cell(row: ToolTime | None) -> str:
    if row is None:
        return "-"
    time = f"{row.least * 1e3:.2f} / {row.median * 1e3:.2f} ms"
    quality = "" if row.sqnr_db is None else f", {row.sqnr_db:.0f} dB"
    more = "" if row.tool == OURS else f"{row.ratio:.2f}, "
    return f"{time} ({more}{row.variant}{quality})"


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
