"""StableHLO text for tests, and what is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewbit.frontends.stablehlo import import_stablehlo
from fewbit.program.program import Program


def module(arguments: Sequence[str], body: str, results: str) -> bytes:
    """`module(["2xf32"], "%0 = ...", "%0 : tensor<2xf32>")`."""
    given = ", ".join(f"%arg{i}: tensor<{type}>" for i, type in enumerate(arguments))
    types = ", ".join(part.strip() for part in results.partition(":")[2].split(","))
    return (
        f"module {{\nfunc.func public @main({given}) -> ({types}) {{\n{body}\n"
        f"return {results}\n}}\n}}\n"
    ).encode()


def imported(arguments: Sequence[str], body: str, results: str, **named: Any) -> Program:
    return import_stablehlo(module(arguments, body, results), **named)


def names(program: Program, dialect: str = "mico") -> list[str]:
    """The ops of a dialect, constants aside."""
    left_out = ("mico.constant", "mico.get_constant")
    return [
        op.name.partition(".")[2]
        for op in program.module.walk()
        if op.name.startswith(f"{dialect}.") and op.name not in left_out
    ]
