"""Programs that boot, and the machines of QEMU that run what has no instructions of ours."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.program.program import Program
from fewbit.riscv import elf
from fewbit.targets.bare_metal.board import BOARDS
from fewbit.targets.bare_metal.simulate import Booted, boot

UART = 0x10000000
_WEIGHTS = bytes((i * 37 + 11) % 256 for i in range(24)).hex()
LAYER = f"""\
mico.constant @a.scale : tensor<6xf32> = dense<[0.5, 0.25, 1.0, 2.0, 0.125, 0.75]>
mico.constant @a.weight : tensor<6x4x1x1x!mico.int<8>> = dense<"0x{_WEIGHTS}"> scale @a.scale
func.func @main(%x: tensor<1x4x3x3xf32>) -> tensor<1x6x3x3xf32> {{
  %s = arith.constant 0.03125 : f32
  %y = mico.bitconv2d(%x, @a.weight) act_scale(%s) {{act_bits = 8}}
    : (tensor<1x4x3x3xf32>, f32) -> tensor<1x6x3x3xf32>
  %z = mico.relu(%y) : tensor<1x6x3x3xf32> -> tensor<1x6x3x3xf32>
  func.return %z : tensor<1x6x3x3xf32>
}}
"""
"""A layer of integers."""


def floats() -> Program:
    """Return layers of floats, with exponentials, for which no core has instructions of ours."""
    manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(12, 9), torch.nn.Sigmoid(), torch.nn.Linear(9, 5))
    return fewbit.import_model(net, example_inputs=(torch.randn(1, 12),))


def compile_elf(program: Program, target: str, folder: Path, **options: Any) -> Path:
    artifact = fewbit.compile(
        program, target, folder / "net", name="net", bare_metal=True, **options
    )
    return artifact.folder / "net.elf"


def boot_on(board: str, program: bytes, native: bool | None = None) -> Booted:
    uart = BOARDS[board].uart
    return boot(program, uart=uart and uart.address, native=native)


def change_data(path: Path, symbol: str) -> bytes:
    """Return an executable with one byte less a bit in the data of a symbol."""
    data = bytearray(path.read_bytes())
    program = elf.read(bytes(data))
    address = program.symbols[symbol].address
    part = next(s for s in program.segments if s.address <= address < s.address + len(s.data))
    at = data.index(part.data) + address - part.address
    data[at + 2] ^= 0x40
    return bytes(data)


def qemu(machine: str, program: Path, xlen: int = 64) -> subprocess.CompletedProcess[str]:
    emulator = f"qemu-system-riscv{xlen}"
    if shutil.which(emulator) is None:
        pytest.skip(f"{emulator} is not installed")
    return subprocess.run(
        [emulator, "-M", machine, "-bios", "none", "-nographic", "-monitor", "none",
         "-kernel", str(program)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
