"""Published tables of the simulator, where they are at hand: `$FEWBIT_DATA` or `../shared/data`."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest


def rows(name: str) -> list[list[int]]:
    """The numbers of one of MiCo's tables; without it, the test is skipped."""
    root = Path(os.environ.get("FEWBIT_DATA", Path(__file__).parents[4] / "shared/data"))
    path = root / "mico" / name
    if not path.exists():
        pytest.skip(f"{name} is not here; FEWBIT_DATA says where MiCo's tables are")
    with path.open() as file:
        next(file)
        return [[int(value) for value in row] for row in csv.reader(file)]
