"""StableHLO: modules as text or bytecode."""

from __future__ import annotations

import re
from pathlib import Path

from fewbit.frontends.frontend import Frontend, Given
from fewbit.program.program import Program

MODULES = (".mlir", ".mlirbc", ".stablehlo")
_OPS = re.compile(rb"\b(stablehlo|chlo|vhlo)\.")


class StableHlo(Frontend):
    def reads(self, path: Path) -> bool:
        return path.suffix in MODULES and path.is_file() and is_stablehlo(path)

    def import_file(self, path: Path, given: Given) -> Program:
        from fewbit.frontends.stablehlo import import_stablehlo

        return import_stablehlo(path)


def is_stablehlo(path: Path) -> bool:
    from fewbit.frontends.stablehlo.read import BYTECODE

    data = path.read_bytes()
    return data.startswith(BYTECODE) or _OPS.search(data) is not None
