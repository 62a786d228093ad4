"""A linear layer of 4096 x 4096 on 128 rows at every width, beside other tools' int8: a table.

    python benchmarks/linear_layer.py [--recipes R,R,...] [--threads 1,2] [--rows M] [--seconds S]

As `fewbit bench benchmarks/linear_layer.py:layer -r R` measures it: a whole program, floats in and
floats out, so the quantization of activations and the scaling of sums are part of the time. Other
tools have weights and activations of 8 bits; they are measured anew beside every recipe.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from fewbit.bench.contest import check_threads
from fewbit.bench.peers import parse_peers
from fewbit.bench.report import Plan, Report, measure
from fewbit.bench.subject import OUR_SAMPLES, find_subject
from fewbit.cli.calibration import CalibrationOptions

SIZE = 4096
RECIPES = "w8a8-static,w8a8,w7a8,w6a8,w5a8,w4a8,w3a8,w2a8,w1.58a8,w1a8,w8a8g128,w4a8g128"


def layer(rows: int = 128) -> tuple[Any, tuple[Any, ...]]:
    import torch

    from fewbit.base.typed_torch import manual_seed

    manual_seed(0)
    return torch.nn.Linear(SIZE, SIZE).eval(), (torch.randn(rows, SIZE),)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipes", default=RECIPES)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rows", type=int, default=128)
    parser.add_argument("--against", default="onnxruntime,openvino")
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    threads = tuple(map(int, options.threads.split(",")))
    for count in threads:
        check_threads(count)
    peers = tuple(parse_peers(options.against, True))
    subject = find_subject(f"{__file__}:layer", [(options.rows, SIZE)])
    print(f"| {options.rows} rows | threads | fewbit | GMAC/s | {' | '.join(peers)} |")
    print("|---" * (4 + len(peers)) + "|")
    for recipe in options.recipes.split(","):
        samples = subject.random_samples(OUR_SAMPLES)
        program = CalibrationOptions().quantize(subject.program, recipe, samples)
        plan = Plan(recipe, "cpu", peers, threads, options.seconds, layers=False)
        for line in _lines(recipe, measure(subject, program, plan), options.rows):
            print(line, flush=True)


def _lines(recipe: str, report: Report, rows: int) -> list[str]:
    lines: list[str] = []
    for times in report.times:
        ours, *others = times.tools
        rate = rows * SIZE * SIZE / ours.least / 1e9
        cells = [f"{row.least * 1e3:.2f} ms ({row.ratio:.2f})" for row in others]
        lines.append(
            f"| {recipe} | {times.threads} | {ours.least * 1e3:.2f} ms | {rate:.0f} "
            f"| {' | '.join(cells)} |"
        )
    return lines


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
