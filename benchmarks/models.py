"""Models of the zoo, batch 1, beside other tools: a table in markdown.

    python benchmarks/models.py [--recipe R|float] [--threads 1,2] [--against TOOLS] [NAME ...]

Each row is what `fewbit bench zoo:NAME` measures: the minimum time of a run, and behind it how many
times as long that is as fewbit's. The last rows are geometric means of those ratios.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean

from fewbit.bench.contest import check_threads
from fewbit.bench.peers import AVAILABLE, OURS, parse_peers
from fewbit.bench.report import Plan, Report, ToolTime, measure
from fewbit.bench.subject import OUR_SAMPLES, find_subject
from fewbit.cli.calibration import CalibrationOptions

LARGE = (1, 3, 224, 224)
MODELS: dict[str, tuple[int, ...] | None] = {
    "resnet18": LARGE,
    "resnet8": None,
    "mobilenet-v2": LARGE,
    "ds-cnn": None,
    "lenet": None,
    "mlp": None,
    "vit-tiny": None,
}
"""Sizes of inputs, where they are not those of the zoo."""


def main() -> None:
    options = _options()
    recipe = None if options.recipe == "float" else options.recipe
    peers = parse_peers(options.against, recipe is not None)
    threads = tuple(map(int, options.threads.split(",")))
    for count in threads:
        check_threads(count)
    plan = Plan(recipe, "cpu", tuple(peers), threads, options.seconds, layers=False)
    print(f"| {recipe or 'float32'} | threads | {' | '.join([OURS, *peers])} |")
    print("|---" * (3 + len(peers)) + "|")
    reports: list[Report] = []
    for name in options.models or MODELS:
        reports.append(_measure(name, plan))
        for line in _rows(name, reports[-1], peers):
            print(line, flush=True)
    for count in threads:
        print(_means(reports, count, peers))
    if options.json is not None:
        plain = [report.plain() for report in reports]
        options.json.write_text(json.dumps(plain, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", choices=[*MODELS, []])
    parser.add_argument("--recipe", "-r", default="w8a8-static")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--against", default=AVAILABLE)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _measure(name: str, plan: Plan) -> Report:
    shape = MODELS[name]
    subject = find_subject(f"zoo:{name}", None if shape is None else [shape])
    program = CalibrationOptions().quantize(
        subject.program, plan.recipe, subject.random_samples(OUR_SAMPLES)
    )
    return measure(subject, program, plan)


def _rows(name: str, report: Report, peers: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for times in report.times:
        results = {row.tool: row for row in times.tools}
        cells = [_cell(results.get(tool)) for tool in (OURS, *peers)]
        lines.append(f"| {name} | {times.threads} | {' | '.join(cells)} |")
    return lines


def _cell(row: ToolTime | None) -> str:
    if row is None:
        return "-"
    least = row.least * 1e6
    time = f"{least:.1f} us" if least < 100 else f"{least:.0f} us"
    return time if row.tool == OURS else f"{time} ({row.ratio:.2f}, {row.variant})"


def _means(reports: Sequence[Report], threads: int, peers: Sequence[str]) -> str:
    cells: list[str] = []
    for peer in peers:
        ratios = [
            row.ratio
            for report in reports
            for times in report.times
            for row in times.tools
            if times.threads == threads and row.tool == peer
        ]
        cells.append(f"{geometric_mean(ratios):.2f}" if ratios else "-")
    return f"| geometric mean | {threads} | | {' | '.join(cells)} |"


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
