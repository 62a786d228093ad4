"""The autotuning of one op, as a job that any process can do, and what comes back of it.

A job holds all that it needs as plain data, so that it can be sent to another machine. Whoever sent
it writes what comes back into the database: a job that is lost is sent again, and none counts
twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from fewbit.cost.hardware import Hardware
from fewbit.cost.loops import LoopNest
from fewbit.tune.analytic import Analytic
from fewbit.tune.database import Key, Result, Trial
from fewbit.tune.iree.configured import Configured
from fewbit.tune.iree.measured import Measured
from fewbit.tune.model import CostModel
from fewbit.tune.schedule import Schedule
from fewbit.tune.search import AROUND, FIRST, Keeper, Tried, search
from fewbit.tune.space import schedules
from fewbit.tune.zigzag import Zigzag, refusal

MORE = 4
"""Times as many trials where the device alone decides."""
MODELS = ("analytic", "zigzag", "measured", "random")


@dataclass(frozen=True)
class Job:
    """The autotuning of one dispatch's tile sizes."""

    key: Key
    name: str
    text: str
    """The dispatch, as IREE configured it."""
    hardware: Hardware
    model: str = "analytic"
    flags: tuple[str, ...] = ()
    known: tuple[Trial, ...] = ()
    """Trials of an earlier search."""
    seconds: float = float("inf")
    """That it may take."""
    first: int = FIRST
    around: int = AROUND


@dataclass(frozen=True)
class Outcome:
    """What came of a job."""

    result: Result
    trials: tuple[Trial, ...]
    """The new ones."""


@dataclass
class Record:
    """Keeps what a search finds until it is sent back."""

    known: dict[Schedule, Trial]
    added: list[Trial] = field(default_factory=list[Trial])

    def trials(self, key: Key) -> dict[Schedule, Trial]:
        return dict(self.known)

    def add_trial(self, key: Key, trial: Trial) -> None:
        self.added.append(trial)

    def put(self, result: Result) -> None:
        pass


def run_job(job: Job, keeper: Keeper | None = None) -> Outcome:
    """Search for one op; the keeper gets each trial and result as soon as it is known."""
    record = Record({trial.schedule: trial for trial in job.known})
    with TemporaryDirectory(prefix="fewbit-job-") as folder:
        result = _search(job, Path(folder), keeper or record)
    return Outcome(result, tuple(record.added))


def _search(job: Job, folder: Path, keeper: Keeper) -> Result:
    dispatch = Configured(job.text, job.name)
    measured = Measured(dispatch, folder, job.flags)
    nest, _ = dispatch.nest.without_units()
    reason = measured.can(nest)
    if reason is not None:
        return Result(job.key, None, 1.0, 0.0, 0.0, 0, job.model, reason)

    def attempt(wanted: Sequence[Schedule]) -> Tried:
        trials = measured.try_all(wanted)
        times = measured.times
        assert times is not None
        return Tried(trials, times.default, times.noise, times.bar)

    model = model_of(job.model, job.hardware, nest)
    own = model.own(nest) if isinstance(model, Zigzag) else []
    return search(
        job.key,
        nest,
        [*own, *schedules(nest, job.hardware)],
        model,
        attempt,
        keeper,
        deadline=monotonic() + job.seconds,
        first=job.first if job.model != "measured" else MORE * job.first,
        around=job.around,
    )


def model_of(name: str, hardware: Hardware, nest: LoopNest) -> CostModel | None:
    """Return a model by name; None is random. Our own takes what ZigZag cannot express."""
    if name == "random":
        return None
    if name != "zigzag":
        return Analytic(hardware)
    reason = refusal(nest)
    return Zigzag(hardware) if reason is None else Analytic(hardware, f"analytic: {reason}")
