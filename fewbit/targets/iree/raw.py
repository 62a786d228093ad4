"""Files that IREE compiles as they are, and programs that were stopped at one of its phases."""

from __future__ import annotations

import re
from pathlib import Path

from fewbit.program.artifact import MANIFEST, open_folder

SUFFIXES = (".mlir", ".mlirbc", ".stablehlo", ".tosa", ".linalg")
BYTECODE = b"ML\xefR"
_OURS = re.compile(r"(?<![\w.$#@%!\"])(mico|graph|kernel)\.[a-z]|!mico\.|#mico\.")


def is_raw_mlir(path: Path) -> bool:
    """Return whether a file is MLIR without any op or type of ours."""
    if path.suffix not in SUFFIXES or not path.is_file():
        return False
    data = path.read_bytes()
    if data.startswith(BYTECODE):
        return True
    lines = (line.partition("//")[0] for line in data.decode(errors="replace").splitlines())
    return not any(_OURS.search(line) for line in lines)


def phase_of(path: Path) -> str | None:
    """Return where an artifact was stopped; None for anything else."""
    if not (path / MANIFEST).is_file() or '"phase"' not in (path / MANIFEST).read_text():
        return None
    return open_folder(path).manifest.options.get("phase")
