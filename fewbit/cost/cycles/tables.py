"""The tables of cycles that MiCo publishes: what a row of each file measures.

Files are named by core and test, as `mico_small_conv2d_zoo.csv`. The zoos were measured with the
library of 2026, all others with that of 2025. Convolutions have no padding.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from fewbit.cost.cycles.shapes import Conv2d, Linear, Matmul, Pool, Shape
from fewbit.errors import UsageError


@dataclass(frozen=True)
class Measurement:
    """One row: a layer on a core, and its cycles."""

    core: str
    release: str
    shape: Shape
    act_bits: int
    weight_bits: int
    cycles: int


def read_table(path: Path) -> list[Measurement]:
    """Return all rows of one of MiCo's files."""
    core, _, test = path.stem.removeprefix("mico_").partition("_")
    with path.open() as file:
        next(file)
        rows = [[int(float(value)) for value in row] for row in csv.reader(file)]
    return [_measurement(core, test, row) for row in rows]


def _measurement(core: str, test: str, row: list[int]) -> Measurement:
    cycles = row[-1]
    match test:
        case "":
            n, m, k, act, weight = row[:5]
            return Measurement(core, "2025", Matmul(n, m, k), act, weight, cycles)
        case "bitlinear_test" | "matmul_zoo":
            n, m, k, act, weight = row[:5]
            release = "2026" if test == "matmul_zoo" else "2025"
            return Measurement(core, release, Linear(n, m, k), act, weight, cycles)
        case "bitconv2d_test" | "bitconv2d_test_larger":
            h, w, c, k, size, act, weight = row[:7]
            return Measurement(core, "2025", _conv2d(h, w, c, k, size, 1), act, weight, cycles)
        case "conv2d_zoo":
            h, w, c, k, size, stride, act, weight = row[:8]
            return Measurement(core, "2026", _conv2d(h, w, c, k, size, stride), act, weight, cycles)
        case "avgpool4d_f32_test" | "maxpool4d_f32_test":
            c, h, w, k, stride = row[:5]
            image = ((h - k) // stride + 1, (w - k) // stride + 1)
            shape = Pool(c, image, k, maximum=test.startswith("max"))
            return Measurement(core, "2025", shape, 32, 32, cycles)
        case _:
            raise UsageError(f"'{test}' is none of MiCo's tests", hint="see docs/cycles.md")


def _conv2d(h: int, w: int, inputs: int, outputs: int, size: int, stride: int) -> Conv2d:
    image = ((h - size) // stride + 1, (w - size) // stride + 1)
    return Conv2d(inputs, outputs, image, (size, size), (stride, stride))
