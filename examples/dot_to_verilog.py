"""A matmul of few-bit integers, from MLIR to a circuit: writes Verilog, and simulates it.

    python examples/dot_to_verilog.py [FOLDER]

For every pair of widths that MiCo has an instruction for. Where Icarus Verilog is installed, the
circuit's sums are compared with numpy's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from fewbit.ir.parse import parse_module
from fewbit.numerics.widths import Width
from fewbit.riscv.instructions import DOT_WIDTHS
from fewbit.rtl import verilog
from fewbit.rtl.dot_unit import dot_unit
from fewbit.rtl.icarus import available, simulate

PROGRAM = """
func.func @dot(%x: tensor<?x64x!mico.int<{x}>>, %w: tensor<4x64x!mico.int<{w}>>)
    -> tensor<?x4xi32> {{
  %y = kernel.matmul(%x, %w)
    : (tensor<?x64x!mico.int<{x}>>, tensor<4x64x!mico.int<{w}>>) -> tensor<?x4xi32>
  func.return %y : tensor<?x4xi32>
}}"""


def integers(random: np.random.Generator, rows: int, bits: int) -> np.ndarray:
    if bits == 1:
        return random.choice(np.array([-1, 1], np.int8), (rows, 64))
    width = Width.of(bits)
    return random.integers(width.qmin, width.qmax, (rows, 64), np.int8, endpoint=True)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    random = np.random.default_rng(0)
    for x, w in DOT_WIDTHS:
        unit = dot_unit(parse_module(PROGRAM.format(x=x, w=w)))
        said = f"{unit.name}: {unit.lanes} lanes, sums of {unit.sum_bits} bits"
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{unit.name}.v").write_text(verilog.write(unit))
        if available():
            xs, ws = integers(random, 8, x), integers(random, 4, w)
            simulation = simulate(unit, xs, ws)
            equal = (simulation.sums == xs.astype(np.int32) @ ws.astype(np.int32).T).all()
            said += f", {simulation.clocks} clocks, {'equal to numpy' if equal else 'WRONG'}"
        print(said)


if __name__ == "__main__":
    main()
