"""The best choices by a score for each, within all limits: exact, by OR-tools' CP-SAT.

One variable says that a unit has a choice; exactly one choice of each unit is taken, each limit is
a linear inequality, and the sum of scores is least. Costs and scores are rounded to integers, costs
upward, so a limit is never exceeded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor
from typing import Any

from fewbit.search.budget import Limit
from fewbit.search.extras import import_extra
from fewbit.search.space import Candidate

STEPS = 1 << 24
"""How finely scores, and costs that are no whole numbers, are told apart."""
EFFORT = 2.0
"""When to be content with what was found; counted in work and not in time, which differs."""

Scores = Sequence[Sequence[float]]
"""For each unit, what each of its choices loses; smaller is better."""


def solve(
    scores: Scores,
    limits: Sequence[Limit],
    *,
    without: Iterable[Candidate] = (),
    near: tuple[Candidate, int] | None = None,
    seed: int = 0,
) -> Candidate | None:
    """Return the candidate with the least sum of scores, or None where there is none.

    It is none of those in `without`. With `near`, a candidate and a number, at most so many units
    differ from that candidate.
    """
    cp_model: Any = import_extra("ortools.sat.python.cp_model", "ortools")
    model = cp_model.CpModel()
    taken = [
        [model.new_bool_var(f"{unit} {choice}") for choice in range(len(row))]
        for unit, row in enumerate(scores)
    ]
    for row in taken:
        model.add_exactly_one(row)
    for limit in limits:
        if limit.limit is not None:
            _limit(model, taken, limit)
    for candidate in without:
        model.add_bool_or([~row[choice] for row, choice in zip(taken, candidate, strict=True)])
    if near is not None:
        candidate, most = near
        same = sum(row[choice] for row, choice in zip(taken, candidate, strict=True))
        model.add(same >= len(taken) - most)
    scale = STEPS / max(max((abs(s) for row in scores for s in row), default=1.0), 1e-30)
    model.minimize(
        sum(
            round(score * scale) * variable
            for variables, row in zip(taken, scores, strict=True)
            for variable, score in zip(variables, row, strict=True)
        )
    )
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = EFFORT
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return tuple(
        next(choice for choice, each in enumerate(row) if solver.value(each)) for row in taken
    )


def _limit(model: Any, taken: Sequence[Sequence[Any]], limit: Limit) -> None:
    table, most = limit.table, limit.limit
    assert most is not None
    largest = max(max(max(row) for row in table.rows), abs(most - table.fixed), 1e-30)
    # Costs that are whole numbers stay exact.
    scale = 1.0 if largest >= 1 and _are_whole(table.rows) else STEPS / largest
    model.add(
        sum(
            ceil(cost * scale * (1 - 1e-12)) * variable
            for variables, row in zip(taken, table.rows, strict=True)
            for variable, cost in zip(variables, row, strict=True)
        )
        <= floor((most - table.fixed) * scale * (1 + 1e-9))
    )


def _are_whole(rows: Sequence[Sequence[float]]) -> bool:
    return all(float(cost).is_integer() for row in rows for cost in row)
