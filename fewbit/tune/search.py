"""Autotuning of one op's schedule: a model ranks, the device decides.

First the register tiles that the model thinks best, each with its best workgroups; then around the
winner other workgroups and other unrolling. The default stays unless it is beaten beyond the noise.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from fewbit.cost.loops import LoopNest
from fewbit.tune.database import Key, Result, Trial
from fewbit.tune.model import CostModel
from fewbit.tune.schedule import Schedule, Tile

FIRST, AROUND = 10, 6
"""How many schedules are tried: the best by the model, then neighbours of the fastest."""
ALIKE = 2
"""How many of the first may differ in their unrolling alone."""
BATCH = 8
"""How many of them are timed together, by turns."""


class Keeper(Protocol):
    """Where trials and results go: a database, or a list that becomes part of one."""

    def trials(self, key: Key) -> dict[Schedule, Trial]: ...

    def add_trial(self, key: Key, trial: Trial) -> None: ...

    def put(self, result: Result) -> None: ...


Try = Callable[[Sequence[Schedule]], "Tried"]


@dataclass(frozen=True)
class Tried:
    """What came of a batch of trials."""

    trials: list[Trial]
    seconds: float
    """Seconds of the default."""
    noise: float
    bar: float


def search(
    key: Key,
    nest: LoopNest,
    candidates: Iterable[Schedule],
    model: CostModel | None,
    attempt: Try,
    keeper: Keeper,
    *,
    deadline: float = float("inf"),
    first: int = FIRST,
    around: int = AROUND,
    seed: int = 0,
) -> Result:
    """Search for an op's best schedule, and keep it; trials that are kept are not repeated.

    Without a model, schedules are drawn at random, as many as with one.
    """
    pool = list(candidates)
    done = keeper.trials(key)
    seconds, noise, bar = 0.0, 0.0, 0.99

    def run(wanted: Sequence[Schedule]) -> None:
        nonlocal seconds, noise, bar
        fresh = [s for s in wanted if s not in done]
        for start in range(0, len(fresh), BATCH):
            if monotonic() > deadline:
                return
            tried = attempt(fresh[start : start + BATCH])
            seconds, noise, bar = tried.seconds, max(noise, tried.noise), min(bar, tried.bar)
            for trial in tried.trials:
                done[trial.schedule] = trial
                keeper.add_trial(key, trial)

    if model is None:
        draw = random.Random(seed).sample(pool, min(first + around, len(pool)))
        run(draw)
    else:
        ranked = sorted(pool, key=lambda s: model.seconds(nest, s))
        begun = diverse(ranked, first, nest)
        run(begun)
        leader = _fastest(done[s] for s in begun if s in done)
        if leader is not None:
            run(neighbours(leader.schedule, ranked, around))
    best = _fastest(done.values())
    if best is not None and best.ratio is not None and best.ratio < bar:
        # Of many trials the best is partly luck: it is timed again, alone.
        tried = attempt([best.schedule])
        again = tried.trials[0]
        seconds, noise = tried.seconds, max(noise, tried.noise)
        if again.ratio is not None and again.ratio < tried.bar:
            ratio = max(again.ratio, best.ratio)
            result = Result(key, best.schedule, ratio, noise, seconds, len(done), _name(model))
            keeper.put(result)
            return result
    reason = "the default was not beaten" if done else "no time was left"
    result = Result(key, None, 1.0, noise, seconds, len(done), _name(model), reason)
    if done:
        keeper.put(result)
    return result


def diverse(ranked: Sequence[Schedule], count: int, nest: LoopNest) -> list[Schedule]:
    """Return the best of each register tile; not many of them that only unroll other steps."""
    sums = nest.of_kind("reduction")
    chosen: dict[Tile, Schedule] = {}
    shapes: Counter[Tile] = Counter()
    for schedule in ranked:
        shape = tuple(size for i, size in enumerate(schedule.vector) if i not in sums)
        if schedule.vector in chosen or shapes[shape] == ALIKE:
            continue
        chosen[schedule.vector] = schedule
        shapes[shape] += 1
        if len(chosen) == count:
            break
    return list(chosen.values())


def neighbours(best: Schedule, ranked: Sequence[Schedule], count: int) -> list[Schedule]:
    """Return schedules that differ from the best in workgroups or one side of the tile."""
    same_tile = [s for s in ranked if s.vector == best.vector and s != best]
    others: dict[tuple[int, ...], Schedule] = {}
    for schedule in ranked:
        pairs = zip(schedule.vector, best.vector, strict=True)
        if sum(a != b for a, b in pairs) == 1:
            others.setdefault(schedule.vector, schedule)
    half = count // 2
    chosen = [*same_tile[: count - half], *others.values()]
    return chosen[:count]


def _fastest(trials: Iterable[Trial]) -> Trial | None:
    timed = [t for t in trials if t.ratio is not None]
    return min(timed, key=lambda t: t.ratio or 0.0, default=None)


def _name(model: CostModel | None) -> str:
    return "random" if model is None else model.name
