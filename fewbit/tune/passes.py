"""Passes as choices: a pass says what it can do to a program, and the fastest of that is kept.

xDSL asks a pass for its `schedule_space`: all instances of it that change a module. A pass of one's
own that has options joins the search by overriding it, and nothing here knows any by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.passes import ModulePass

from fewbit.cost.layers import made_up_inputs
from fewbit.errors import Error
from fewbit.ir.context import make_context
from fewbit.program.program import Program
from fewbit.targets.registry import DEFAULT_TARGET
from fewbit.tune.timing import time_by_turns, timer

TOLERANCE = 1e-4
"""The tolerance, relative to the largest result: a pass may reorder sums."""


@dataclass(frozen=True)
class Choice:
    """One thing that a pass can do, and its time."""

    name: str
    """As it is written in a pipeline, with its options."""
    ratio: float | None
    """The program's time by that without the pass; None where it cannot be had so."""
    reason: str = ""
    faster: bool = False
    """By more than the noise."""


def pass_choices(program: Program, passes: Sequence[type[ModulePass]]) -> list[ModulePass]:
    """Return all that the passes can do to a program."""
    context = make_context()
    choices: list[ModulePass] = []
    for each in passes:
        choices += each.schedule_space(context, program.module)
    return choices


def tune_passes(
    program: Program,
    passes: Sequence[type[ModulePass]],
    stage: str = "mico",
    target: str = DEFAULT_TARGET,
) -> list[Choice]:
    """Time the choices after a stage, the fastest first, without those that change results."""
    from fewbit.targets.compile import compile

    inputs = made_up_inputs(program, dynamic=1)
    plain = [compile(program, target), compile(program, target)]
    expected = plain[0].run(*inputs)
    ready: list[tuple[str, Any]] = []
    choices: list[Choice] = []
    for each in pass_choices(program, passes):
        name = str(each.spec())
        try:
            artifact = compile(program, target, passes={stage: [_to_function(each)]})
            given = artifact.run(*inputs)
        except Error as e:
            choices.append(Choice(name, None, e.what))
            continue
        if all(_close(a, b) for a, b in zip(expected, given, strict=True)):
            ready.append((name, artifact))
        else:
            choices.append(Choice(name, None, "its results differ"))
    first, again = (timer(each.run, *inputs) for each in plain)
    times = time_by_turns((first, again), [timer(each.run, *inputs) for _, each in ready])
    ratios = [times.ratio(i) for i in range(len(ready))]
    measured = [
        Choice(name, ratio, faster=ratio < times.bar)
        for (name, _), ratio in zip(ready, ratios, strict=True)
    ]
    return [*sorted(measured, key=lambda choice: choice.ratio or 0.0), *choices]


def _to_function(each: ModulePass) -> Callable[[Any], None]:
    def run(module: Any) -> None:
        each.apply(make_context(), module)

    return run


def _close(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    size = float(np.max(np.abs(a), initial=0.0))
    return bool(np.allclose(a, b, rtol=0.0, atol=TOLERANCE * size, equal_nan=True))
