"""`fewbit tune MODEL`: all ops of a program, for a target, and the program before and after.

What was found counts only if the whole program is faster with it; what an op gains alone it may
lose among others. Otherwise the default is kept for all its ops, and the database told so. How a
target is searched for is its tuner's matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fewbit.program.program import Program
from fewbit.targets.registry import DEFAULT_TUNED, make_options
from fewbit.tune.database import Database
from fewbit.tune.report import Report, Row
from fewbit.tune.tuner import Search, find_tuner


def tune_program(
    program: Program,
    target: str = DEFAULT_TUNED,
    *,
    seconds: float = 300.0,
    model: str = "analytic",
    workers: str = "1",
    database: Database | None = None,
    watch: Callable[[Row], None] = lambda row: None,
    **options: Any,
) -> Report:
    """Autotune the tile sizes of a program's ops, and keep what is faster.

    `options` are those of the target, as `fewbit.compile` takes them.
    """
    tuner = find_tuner(target)
    make_options(target, options)
    tuner.check(target)
    kept = database or Database()
    return tuner.search(Search(program, target, kept, seconds, model, workers, options, watch))
