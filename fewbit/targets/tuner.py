"""What a tuner is: autotuning of a target's programs, and what compiles use of it.

Searches compile and run programs, so they stand above the targets. A target names its tuner by its
place, `package.module:Class`, as entry points name targets; nothing here imports one by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit.base.cache import cache_folder
from fewbit.errors import UsageError
from fewbit.targets.options import NO_TUNING

if TYPE_CHECKING:
    from fewbit.program.program import Program
    from fewbit.targets.target import Request

FILE = "tuning.db"


def default_path() -> Path:
    """Return the database that compiles use if no other is named."""
    return cache_folder() / FILE


def find_database_file(given: str | None) -> Path | None:
    """Return the file given as `tuning_db`, or the usual one; None where there is none."""
    if given == NO_TUNING:
        return None
    path = Path(given) if given else default_path()
    if given and not path.is_file():
        raise UsageError(f"there is no tuning database '{given}'", hint="'fewbit tune' makes one")
    return path if path.is_file() else None


class KnownSettings(ABC):
    """The part of a tuner that compiles need; `fewbit.tune.tuner.Tuner` adds the search."""

    @abstractmethod
    def known(self, program: Program, request: Request, database: Path, *, named: bool) -> Any:
        """Return what a database has for a program, as the target takes it, if anything.

        A database that the user `named` must be readable.
        """
