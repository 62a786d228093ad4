"""Fit what instructions cost: `python benchmarks/instruction_costs.py LIBRARY DATA --write`.

LIBRARY is a checkout of MiCo-Lib as it was when most tables were measured (0dd8f37, 2025-09-26),
and DATA the folder of its tables. Clang of the package ziglang compiles the library for RV32IMF,
the simulator counts instructions of each class and lines that caches fetch, and costs of classes
are fitted to the measured cycles, each kind of layer with the same weight. They are drawn to what
is known of the pipelines (`PRIOR`), and none is below a slot of the pipeline. The error is that on
the kind of layer that a fit did not see. Costs go to `fewbit/cost/cycles/instructions.toml`.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fewbit.cost.cpu.nnls import nnls
from fewbit.cost.cycles.instructions import MISS, missed
from fewbit.simulators.riscv.machine import Machine

HOME = Path(__file__).parents[1] / "fewbit/cost/cycles/instructions.toml"
DRIVER = Path(__file__).with_suffix(".c")
MEMORY = 1 << 27
ROUNDS = 6
FLOOR = 0.02
PULL = 0.1
"""What a cost twice its prior weighs, beside all layers of a kind, which weigh 1."""

KINDS = {
    "matmul": "mico_{}",
    "linear": "mico_{}_bitlinear_test",
    "conv2d": "mico_{}_bitconv2d_test",
    "avgpool": "mico_{}_avgpool4d_f32_test",
    "maxpool": "mico_{}_maxpool4d_f32_test",
}
SLOT = {"small": 1.0, "high": 0.5}
FLOATS = {"multiply": 3.0, "divide": 18.0, "jump": 3.0, "float": 4.0, "float-divide": 20.0}
STORES = {"store": 1.0, "float-store": 1.0}
PRIOR = {
    "small": {"alu": 1.0, "load": 1.6, "float-load": 1.6, "dot": 2.7, "branch": 1.0, "taken": 1.2},
    "high": {"alu": 0.5, "load": 0.5, "float-load": 0.5, "dot": 3.5, "branch": 0.5, "taken": 0.7},
}
"""What kernels of matmuls say, which are known instruction by instruction; the rest is assumed."""

HEADERS = {
    "malloc.h": "void *malloc(size_t); void free(void *);",
    "string.h": "void *memset(void *, int, size_t); void *memcpy(void *, const void *, size_t);",
    "math.h": "float roundf(float); float sqrtf(float); float expf(float);",
}
FLAGS = (
    *("-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+f", "-mabi=ilp32f", "-O3"),
    *("-ffreestanding", "-fno-inline", "-fno-sanitize=undefined", "-mcmodel=medany", "-w"),
    *("-nostdlib", "-DRISCV_VEXII", "-Wl,-e,prepare", "-Wl,--no-gc-sections"),
)


@dataclass(frozen=True)
class Row:
    """A layer that was measured, and what the simulator counted of it."""

    core: str
    kind: str
    cycles: int
    counts: dict[str, int]
    """Instructions by class, and branches that were taken."""
    misses: int


def build(library: Path, folder: Path) -> Path:
    for name, text in HEADERS.items():
        (folder / name).write_text(f"#include <stddef.h>\n{text}\n")
    kernels = library / "targets/vexii/mico32"
    layers = ("mico/bitlinear.c", "mico/quant.c", "mico/bitconv2d.c", "im2col.c", "pooling.c")
    sources = [DRIVER, *kernels.glob("*.[cS]"), *(library / "src" / name for name in layers)]
    places = [folder, library / "include", library / "targets/vexii"]
    places.append(library / "targets/vexii/driver")
    program = folder / "layers.elf"
    command = [sys.executable, "-m", "ziglang", "cc", *FLAGS, *(f"-I{place}" for place in places)]
    subprocess.run([*command, "-o", program, *sources], check=True)
    return program


def count(program: Path, data: Path) -> list[Row]:
    machine = Machine(32, MEMORY, lines=True)
    machine.load(program.read_bytes())
    machine.call("prepare")
    rows: list[Row] = []
    for core in SLOT:
        for kind, table in KINDS.items():
            with (data / f"{table.format(core)}.csv").open() as file:
                next(file)
                lines = [[int(float(value)) for value in line] for line in csv.reader(file)]
            for *arguments, cycles in lines:
                machine.call(f"run_{kind}", *arguments)  # fills the cache
                found = machine.call(f"run_{kind}", *arguments).histogram
                counts = {str(each): number for each, number in found.kinds.items()}
                counts["taken"] = found.taken
                rows.append(Row(core, kind, cycles, counts, missed(core, found.misses)))
    return rows


def prior(core: str) -> dict[str, float]:
    return {**FLOATS, **STORES, **PRIOR[core]}


def fit(rows: Sequence[Row]) -> dict[str, float]:
    """Costs of classes on the core of these rows, for which relative errors are least."""
    core = rows[0].core
    costs = prior(core)
    names = list(costs)
    low = np.array([0.0 if name == "taken" else SLOT[core] for name in names])
    expected = np.array(list(costs.values())) - low
    scale = np.maximum(expected, 0.5)
    cycles = np.array([row.cycles for row in rows], float)
    matrix = (
        np.array([[row.counts.get(name, 0) for name in names] for row in rows]) / cycles[:, None]
    )
    wanted = 1 - np.array([MISS * row.misses for row in rows]) / cycles - matrix @ low
    kinds = [row.kind for row in rows]
    equal = np.array([kinds.count(kind) ** -0.5 for kind in kinds])
    pull, weights, found = PULL * np.eye(len(names)), np.ones(len(rows)), expected / scale
    for _ in range(ROUNDS):
        weight = equal * weights
        system = np.concatenate([matrix * scale * weight[:, None], pull])
        found = nnls(system, np.concatenate([weight * wanted, PULL * expected / scale]))
        errors = np.abs(matrix * scale @ found - wanted)
        weights = 1 / np.sqrt(np.maximum(errors, FLOOR))
        weights /= weights.mean()
    return dict(zip(names, (low + found * scale).tolist(), strict=True))


def errors(rows: Sequence[Row], costs: dict[str, float]) -> np.ndarray:
    cycles = [
        MISS * row.misses + sum(costs.get(name, 0.0) * n for name, n in row.counts.items())
        for row in rows
    ]
    measured = np.array([row.cycles for row in rows])
    return np.array(cycles) / measured - 1


def report(rows: Sequence[Row]) -> list[str]:
    """The table of docs/cycles.md: errors as assumed, as fitted, and of a kind not seen."""
    lines = ["| core, layers | assumed | fitted | of other kinds |", "| --- | --- | --- | --- |"]
    for core in SLOT:
        of_core = [row for row in rows if row.core == core]
        costs = fit(of_core)
        for kind in KINDS:
            inside = [row for row in of_core if row.kind == kind]
            unseen = fit([row for row in of_core if row.kind != kind])
            results = [errors(inside, each) for each in (prior(core), costs, unseen)]
            cells = [f"{100 * np.abs(each).mean():.0f} %" for each in results]
            lines.append(f"| `{core}`, {kind} | {' | '.join(cells)} |")
    return lines


def write(path: Path, rows: Sequence[Row]) -> None:
    lines = ["# Cycles of instructions by class; written by benchmarks/instruction_costs.py.", ""]
    for core in SLOT:
        lines.append(f"[{core}]")
        costs = fit([row for row in rows if row.core == core])
        lines += [f"{name} = {cost:.2f}" for name, cost in sorted(costs.items())]
        lines.append("")
    path.write_text("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        rows = count(build(options.library, Path(folder)), options.data)
    print("\n".join(report(rows)))
    if options.write:
        write(HOME, rows)


if __name__ == "__main__":
    main()
