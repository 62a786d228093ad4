"""Runs a circuit on Icarus Verilog, which Debian has as `iverilog`."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from fewbit.errors import Error, MissingToolError, ShapeError, WidthError
from fewbit.numerics.widths import Width
from fewbit.rtl import verilog
from fewbit.rtl.dot_unit import DotUnit

Integers = NDArray[np.int8]


@dataclass(frozen=True)
class Simulation:
    sums: NDArray[np.int32]
    clocks: int


def available() -> bool:
    return shutil.which("iverilog") is not None and shutil.which("vvp") is not None


def simulate(unit: DotUnit, x: Integers, weight: Integers) -> Simulation:
    """Run the circuit on rows of inputs, M x K, and weights, N x K, and return its sums."""
    _check(unit, x, weight)
    if not available():
        raise MissingToolError(
            "circuits are simulated by Icarus Verilog, which is not installed",
            hint="on Debian: apt install iverilog",
        )
    rows = [words(row, unit.x_bits, unit.lanes) for row in x]
    weights = [words(row, unit.w_bits, unit.lanes) for row in weight]
    with TemporaryDirectory(prefix="fewbit-rtl-") as folder:
        at, w = Path(folder), unit.lanes * unit.w_bits
        (at / "unit.v").write_text(verilog.write(unit) + verilog.test_bench(unit, len(x)))
        (at / "x.hex").write_text("\n".join(f"{word:x}" for row in rows for word in row))
        together = [
            sum(row[step] << w * i for i, row in enumerate(weights)) for step in range(unit.steps)
        ]
        (at / "w.hex").write_text("\n".join(f"{word:x}" for word in together))
        _run(["iverilog", "-g2001", "-Wall", "-Wno-timescale", "-o", "unit.vvp", "unit.v"], at)
        printed = _run(["vvp", "unit.vvp"], at).split("\n")
    lines = [line for line in printed if line and not line.startswith("clocks")]
    clocks = next(line for line in printed if line.startswith("clocks"))
    sums = [_sums(int(line, 16), unit) for line in lines]
    return Simulation(np.array(sums, np.int32), int(clocks.split()[1]))


def words(row: Integers, bits: int, lanes: int) -> list[int]:
    """Split a row into the words of each clock, lowest element first; zeros behind the end."""
    fields = [int(value) & (1 << bits) - 1 if bits > 1 else int(value < 0) for value in row]
    return [
        sum(field << bits * i for i, field in enumerate(fields[start : start + lanes]))
        for start in range(0, len(fields), lanes)
    ]


def _sums(word: int, unit: DotUnit) -> list[int]:
    half = 1 << unit.sum_bits - 1
    fields = (word >> unit.sum_bits * r & 2 * half - 1 for r in range(unit.rows))
    return [(field ^ half) - half for field in fields]


def _check(unit: DotUnit, x: Integers, weight: Integers) -> None:
    if x.ndim != 2 or x.shape[1] != unit.length or weight.shape != (unit.rows, unit.length):
        raise ShapeError(
            f"the circuit takes inputs of M x {unit.length} and weights of {unit.rows} x "
            f"{unit.length}, not {x.shape} and {weight.shape}"
        )
    for values, bits in ((x, unit.x_bits), (weight, unit.w_bits)):
        if not Width.of(bits).holds(values):
            raise WidthError(f"the values do not fit {bits} bits")


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        raise Error(f"{command[0]} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout
