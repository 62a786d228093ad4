"""The small runtime that libraries carry: C, compiled ahead, and kept here as LLVM IR.

`make runtime` writes `ir/` anew, with a compiler that only developers install. Generated code
defines what differs between libraries, as the C declares it: tables, counts, and the function that
is one thread's part of a call.

Parts of it are executed before anybody asks what the processor can do, or when a process ends in
which nobody ever asked. So its functions keep to what all processors of a family execute, whatever
the program around them is compiled for; they are inlined into the program's all the same.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from fewbit.codegen.llvm_text import with_attributes
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.system import WINDOWS


@cache
def runtime_ir(part: str, family: str) -> str:
    """Return LLVM IR of one part, for a family of processors.

    That of Linux is good anywhere, but for threads; `rv32` and `rv64` have no system.
    """
    return (files(__name__) / "ir" / family / f"{part}.ll").read_text(encoding="utf-8")


def baseline_ir(part: str, isa: Isa) -> str:
    """Return one part for a program of a processor, of instructions that all of its family have."""
    baseline = isa.baseline
    kept = f'"target-cpu"="{baseline.cpu}" "target-features"="{baseline.features}"'
    is_other = part == "threads" and isa.system is WINDOWS
    family = f"{isa.architecture}-{WINDOWS.name}" if is_other else isa.architecture
    return with_attributes(runtime_ir(part, family), kept)
