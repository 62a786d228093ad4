"""The small runtime that libraries carry: C, compiled ahead, and kept here as LLVM IR.

`make runtime` writes `ir/` anew, with a compiler that only developers install. Generated code
defines what differs between libraries, as the C declares it: tables, counts, and the function that
is one thread's part of a call.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def runtime_ir(part: str, family: str) -> str:
    """Return LLVM IR of one part, for a family of processors; `rv32` and `rv64` have no system."""
    return (files(__name__) / "ir" / family / f"{part}.ll").read_text(encoding="utf-8")
