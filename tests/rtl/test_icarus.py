"""Circuits on Icarus Verilog give what numpy and the interpreter give."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fewbit.errors import ShapeError, UnsupportedError, WidthError
from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from fewbit.numerics.widths import Width
from fewbit.riscv.instructions import DOT_WIDTHS
from fewbit.rtl import verilog
from fewbit.rtl.dot_unit import DotUnit, dot_unit
from fewbit.rtl.icarus import available, simulate

needs_icarus = pytest.mark.skipif(
    not available(), reason="Icarus Verilog is not installed (apt install iverilog)"
)


def program(x: int, w: int, length: int, rows: int) -> str:
    xs, ws = f"tensor<?x{length}x!mico.int<{x}>>", f"tensor<{rows}x{length}x!mico.int<{w}>>"
    return f"""
func.func @dot(%x: {xs}, %w: {ws}) -> tensor<?x{rows}xi32> {{
  %y = kernel.matmul(%x, %w) : ({xs}, {ws}) -> tensor<?x{rows}xi32>
  func.return %y : tensor<?x{rows}xi32>
}}"""


def integers(shape: tuple[int, int], bits: int, seed: int) -> NDArray[np.int8]:
    """Draw integers, with the least and the greatest among them."""
    random, width = np.random.default_rng(seed), Width.of(bits)
    if bits == 1:
        return random.choice(np.array([-1, 1], np.int8), shape)
    values = random.integers(width.qmin, width.qmax, shape, np.int8, endpoint=True)
    values[0, :], values[:, 0] = width.qmin, width.qmax
    return values


@needs_icarus
@pytest.mark.parametrize(("x", "w"), [*DOT_WIDTHS, (4, 8), (1, 2), (6, 3), (5, 7)])
def test_every_pair_of_widths(x: int, w: int) -> None:
    """A length that no number of lanes divides, several inputs and rows of weights."""
    module = parse_module(program(x, w, 45, 3))
    unit = dot_unit(module)
    xs, ws = integers((4, 45), x, x), integers((3, 45), w, 10 + w)
    simulation = simulate(unit, xs, ws)
    wanted = xs.astype(np.int32) @ ws.astype(np.int32).T
    assert (simulation.sums == wanted).all()
    assert simulation.clocks == 4 * unit.steps
    (interpreted,) = interpret(module, xs, ws)
    assert (interpreted == wanted).all()


@needs_icarus
@pytest.mark.parametrize(("length", "lanes"), [(1, 1), (1, 4), (7, 1), (16, 4), (5, 8)])
def test_lengths_and_lanes(length: int, lanes: int) -> None:
    xs, ws = integers((2, length), 4, 1), integers((1, length), 2, 2)
    simulation = simulate(DotUnit(4, 2, length, 1, lanes), xs, ws)
    assert (simulation.sums == xs.astype(np.int32) @ ws.astype(np.int32).T).all()
    assert simulation.clocks == 2 * -(-length // lanes)


@needs_icarus
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_the_largest_sums_fit(bits: int) -> None:
    least = np.full((1, 64), -1 << bits - 1, np.int8)
    unit = DotUnit(bits, bits, 64, 1, 32 // bits)
    assert simulate(unit, least, least).sums.item() == 64 << 2 * bits - 2


@pytest.mark.skipif(shutil.which("verilator") is None, reason="Verilator is not installed")
@pytest.mark.parametrize(
    "unit", [DotUnit(8, 1, 45, 2, 4), DotUnit(1, 1, 64, 1, 32), DotUnit(4, 2, 5, 1, 4)]
)
def test_verilator_finds_nothing_odd(unit: DotUnit, tmp_path: Path) -> None:
    path = tmp_path / f"{unit.name}.v"
    path.write_text(verilog.write(unit))
    command = ["verilator", "--lint-only", "-Wall", "-Wno-DECLFILENAME", "--top-module", unit.name]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_no_circuit() -> None:
    with pytest.raises(UnsupportedError, match="the program has 0"):
        dot_unit(parse_module("func.func @main() { func.return }"))
    floats = "tensor<1x8xf32>"
    with pytest.raises(UnsupportedError, match="few-bit"):
        dot_unit(
            parse_module(
                f"func.func @main(%x: {floats}, %w: {floats}) -> tensor<1x1xf32> {{"
                f"%y = kernel.matmul(%x, %w) : ({floats}, {floats}) -> tensor<1x1xf32>\n"
                "func.return %y : tensor<1x1xf32> }"
            )
        )


def test_inputs_are_checked() -> None:
    unit = DotUnit(4, 2, 8, 1, 8)
    with pytest.raises(ShapeError, match="M x 8"):
        simulate(unit, np.zeros((1, 9), np.int8), np.zeros((1, 8), np.int8))
    with pytest.raises(WidthError, match="2 bits"):
        simulate(unit, np.zeros((1, 8), np.int8), np.full((1, 8), 2, np.int8))
