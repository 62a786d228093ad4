"""What a circuit takes on a small FPGA: Yosys and nextpnr, which Debian has, place it on an iCE40.

The iCE40 HX8K has 7,680 cells of a lookup table with four inputs and a flip-flop, and no
multipliers, so that cells compare circuits of different widths fairly.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fewbit.errors import Error, MissingToolError
from fewbit.rtl import verilog
from fewbit.rtl.dot_unit import DotUnit

YOSYS, NEXTPNR = "yosys", "nextpnr-ice40"
SEED = 1
WANTED_MEGAHERTZ = 200


@dataclass(frozen=True)
class Area:
    """A circuit that was placed and routed."""

    tables: int
    """Lookup tables with four inputs, of the synthesis."""
    flip_flops: int
    cells: int
    """Cells that are used, for one or both of these or for a carry."""
    megahertz: float
    """The highest frequency of the clock: the longest path from register to register."""
    input_nanoseconds: float
    """The longest path from a pin to a register."""


def available() -> bool:
    return shutil.which(YOSYS) is not None and shutil.which(NEXTPNR) is not None


def synthesize(unit: DotUnit) -> Area:
    """Place a unit on an iCE40 HX8K; at most 206 of its wires may lead outside."""
    if not available():
        raise MissingToolError(
            "circuits are synthesized by Yosys and nextpnr, which are not installed",
            hint="on Debian: apt install yosys nextpnr-ice40",
        )
    with TemporaryDirectory(prefix="fewbit-rtl-") as folder:
        at = Path(folder)
        (at / "unit.v").write_text(verilog.write(unit))
        script = f"read_verilog unit.v; synth_ice40 -top {unit.name} -json unit.json"
        _run([YOSYS, "-q", "-p", f"{script}; tee -q -o stat.json stat -json"], at)
        _run(
            [NEXTPNR, "--hx8k", "--package", "ct256", "--json", "unit.json", "--quiet",
             "--seed", str(SEED), "--freq", str(WANTED_MEGAHERTZ), "--timing-allow-fail",
             "--pcf-allow-unconstrained", "--report", "report.json"],
            at,
        )  # fmt: skip
        counted = _counts((at / "stat.json").read_text())
        report = json.loads((at / "report.json").read_text())
    flip_flops = sum(count for name, count in counted.items() if name.startswith("SB_DFF"))
    (clock,) = report["fmax"].values()
    inputs = [path for path in report["critical_paths"] if path["from"] == "<async>"]
    return Area(
        tables=counted["SB_LUT4"],
        flip_flops=flip_flops,
        cells=report["utilization"]["ICESTORM_LC"]["used"],
        megahertz=clock["achieved"],
        input_nanoseconds=max(map(_delay, inputs), default=0.0),
    )


def _counts(text: str) -> dict[str, int]:
    stats: dict[str, Any] = json.loads(text[text.index("{") :])
    return dict(stats["design"]["num_cells_by_type"])


def _delay(path: dict[str, Any]) -> float:
    return sum(step["delay"] for step in path["path"])


def _run(command: list[str], folder: Path) -> None:
    """Run a tool, which may warn, of a frequency that it does not reach for one."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Error(f"{command[0]} failed: {(done.stderr or done.stdout).strip()}")
