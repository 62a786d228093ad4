"""Models of the zoo compiled for IREE, beside fewbit's own code, PyTorch and onnxruntime.

    python benchmarks/iree_models.py [--recipe R] [--seconds S] [NAME ...]

A row is the least processor time of a run at batch 1 on one thread, and behind it how many times as
fast as onnxruntime in float32 that is, both from one contest. Where a model is slower than half of
onnxruntime, the table says which dispatches have most of the work.
"""

from __future__ import annotations

import argparse
import warnings
from tempfile import TemporaryDirectory

import fewbit
from fewbit.artifact import open_folder
from fewbit.bench.report import Plan, Times, ToolTime, measure
from fewbit.bench.subject import OUR_SAMPLES, Subject, find_subject
from fewbit.cli.calibration import CalibrationOptions
from fewbit.models.registry import zoo
from fewbit.program import Program
from fewbit.targets.iree.dispatches import dispatches_of

PEERS = ("onnxruntime", "torch")
SLOW = 0.5
"""Of onnxruntime's speed; below it, the table gives a reason."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--recipe", "-r")
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    print(f"| {options.recipe or 'float32'} | iree-cpu | cpu | onnxruntime | torch |")
    print("|---|---|---|---|---|")
    for name in options.models or zoo():
        print(_row(name, options), flush=True)


def _row(name: str, options: argparse.Namespace) -> str:
    subject = find_subject(f"zoo:{name}")
    program = CalibrationOptions().quantize(
        subject.program, options.recipe, subject.random_samples(OUR_SAMPLES)
    )
    theirs = _times(subject, program, "iree-cpu", options.seconds)
    ours = _times(subject, program, "cpu", options.seconds)
    cells = [_cell(times, "fewbit") for times in (theirs, ours)]
    cells += [_cell(theirs, peer) for peer in PEERS]
    reason = ""
    if (_ratio(theirs, "fewbit") or 1.0) < SLOW:
        reason = f" ({_heaviest(program)})"
    return f"| {name} | {cells[0]}{reason} | {' | '.join(cells[1:])} |"


def _times(subject: Subject, program: Program, target: str, seconds: float) -> Times:
    plan = Plan(program.recipe, target, PEERS, (1,), seconds, layers=False)
    return measure(subject, program, plan).times[0]


def _tool(times: Times, name: str) -> ToolTime | None:
    return next((row for row in times.tools if row.tool == name), None)


def _ratio(times: Times, name: str) -> float | None:
    """How many times as fast as onnxruntime."""
    tool, peer = _tool(times, name), _tool(times, PEERS[0])
    return None if tool is None or peer is None else peer.least / tool.least


def _cell(times: Times, name: str) -> str:
    tool, ratio = _tool(times, name), _ratio(times, name)
    if tool is None:
        return "-"
    return f"{tool.least * 1e6:,.0f} us" + ("" if ratio is None else f", {ratio:.2f}")


def _heaviest(program: Program) -> str:
    with TemporaryDirectory() as folder:
        fewbit.compile(program, "iree-cpu", f"{folder}/net", name="net")
        found = dispatches_of(open_folder(f"{folder}/net"))
    runs = [each for each in found if not each.at_load]
    heavy = sorted(runs, key=lambda each: -each.macs)[:2]
    named = ", ".join(f"{each.layer} {each.macs:,} MACs" for each in heavy)
    return f"{len(runs)} dispatches; {named}"


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
