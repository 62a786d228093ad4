"""Modules of kernels: for every processor they compile, and depend on nothing outside."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding

from fewbit.errors import UnsupportedError
from fewbit.kernels import (
    BitConv2d,
    BitMatmul,
    Conv2d,
    Depthwise,
    IntegerMatmul,
    Isa,
    Kernel,
    Matmul,
    PackB,
    module_text,
)
from fewbit.kernels.integer.output import ACTIVATED, PLAIN
from fewbit.toolchain.isa import SDOT, VNNI, names
from tests.kernels.machine import INTEGER_SIGNATURES, target_machine

FAMILIES = ("x86-64-v4", "aarch64", "riscv64")
"""Processors without instructions that only some of their family have."""


@pytest.mark.parametrize(
    "name",
    [name if name in FAMILIES else pytest.param(name, marks=pytest.mark.slow) for name in names()],
)
def test_compiles_and_needs_no_library(name: str) -> None:
    isa = Isa.of(name)
    floats = [Matmul(isa), PackB(isa), Conv2d(isa), Depthwise(isa)]
    kernels: list[Kernel] = [
        *floats,
        *(kind(isa, output) for kind in INTEGER_SIGNATURES for output in PLAIN),
        *(IntegerMatmul(isa, output) for output in ACTIVATED),
        Conv2d(isa, "silu"),
        BitMatmul(isa),
        BitConv2d(isa),
    ]
    machine = target_machine(isa)
    module = binding.parse_assembly(module_text(kernels, isa))
    module.verify()
    assembly = machine.emit_assembly(module)
    defined = set(re.findall(r"^(\w+):", assembly, re.MULTILINE))
    assert {kernel.symbol for kernel in kernels} <= defined
    called = set(
        re.findall(
            r"^\s+(?:callq?|bl|jmp|b|tail)\s+(fewbit\w+|f\w*f|mem\w+|r\w*f|__\w+)",
            assembly,
            re.MULTILINE,
        )
    )
    assert called <= defined
    assert "fmaf" not in assembly
    assert ("vpdpbusd" in assembly) == (isa.dot == VNNI)
    assert bool(re.search(r"\bsdot\b", assembly)) == (isa.dot == SDOT)
    assert ("vpopcntd" in assembly) == (name == "x86-64-v4-popcnt")
    assert ("{vex}" in assembly) == (name == "x86-64-v3-vnni")


def test_shared_functions_are_defined_once() -> None:
    isa = Isa.of("x86-64-v3")
    text = module_text([Matmul(isa), Conv2d(isa), Matmul(isa)], isa)
    names_defined = re.findall(r"^define .*?@(\w+)\(", text, re.MULTILINE)
    assert len(names_defined) == len(set(names_defined))


def test_text_is_the_same_every_time() -> None:
    isa = Isa.of("x86-64-v4")
    assert module_text([Conv2d(isa)], isa) == module_text([Conv2d(isa)], isa)


def test_one_module_is_for_one_processor() -> None:
    with pytest.raises(UnsupportedError, match="aarch64"):
        module_text([Matmul(Isa.of("aarch64"))], Isa.of("riscv64"))


def test_the_page_tells_the_truth() -> None:
    page = Path(__file__).parents[2] / "docs" / "kernels.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    code = "\n".join(blocks)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "declare void @fewbit_matmul_f32(ptr, i64, ptr, ptr" in done.stdout
