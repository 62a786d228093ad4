"""Candidates that are compiled but not timed yet: a folder that a machine with a GPU can measure.

Compiling needs no GPU and measuring no compiler, so they are two steps, and may be two machines.
For each op there is the way that is used now and others, as plans that the driver launches, and
what their buffers are filled with. `measured.jsonl` is written beside them, a line an op.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from fewbit.base.files import replacing_file
from fewbit.errors import Place, UsageError
from fewbit.kernels.cuda.plan import Plan
from fewbit.tune.database import Key, Trial
from fewbit.tune.schedule import Schedule

FORMAT = 1
FILE, MEASURED = "prepared.json", "measured.jsonl"


@dataclass(frozen=True)
class Region:
    """A part of a buffer, with elements of one type."""

    buffer: str
    offset: int
    """In bytes."""
    shape: tuple[int, ...]
    element: str
    low: float = 0.0
    """Floats lie between it and 1."""
    written: bool = True
    """Whether what is there after a run is a result."""
    order: str = ""
    """`depthwise`: filters are outermost in the data, and innermost in the buffer, as f32."""


@dataclass(frozen=True)
class Candidate:
    """A schedule that is compiled: a plan that can be launched."""

    schedule: Schedule | None
    """None for the way that is used now."""
    plan: Plan
    regions: tuple[Region, ...] = ()
    """Where they differ from the op's."""
    registers: int | None = None
    spilled: int | None = None
    """Registers of a thread, as the assembler said."""


@dataclass(frozen=True)
class Op:
    """An op with its candidates, the default first."""

    key: Key
    name: str
    calls: int
    macs: int
    regions: tuple[Region, ...]
    candidates: tuple[Candidate, ...]
    """The way that is used now is the first."""
    failed: tuple[Trial, ...] = ()
    """What could not be compiled, or makes the same instructions."""
    tolerance: Mapping[str, float] = field(default_factory=dict[str, float])
    """By type of element, of the largest result; integers must be the same."""
    model: str = "analytic"


@dataclass(frozen=True)
class Prepared:
    """A round of candidates of a program."""

    target: str
    arch: str
    title: str
    ops: tuple[Op, ...]
    left: Mapping[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    """Ops that are left as they are: how often they are called, and why."""


def write_prepared(folder: Path, prepared: Prepared) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MEASURED).unlink(missing_ok=True)
    images: dict[str, bytes] = {}
    plain = {
        "format": FORMAT,
        "target": prepared.target,
        "arch": prepared.arch,
        "title": prepared.title,
        "left": dict(prepared.left),
        "ops": [_plain_op(op, images) for op in prepared.ops],
    }
    for name, image in images.items():
        (folder / name).write_bytes(image)
    with replacing_file(folder / FILE) as file:
        file.write(json.dumps(plain).encode())


def read_prepared(folder: Path) -> Prepared:
    path = folder / FILE
    if not path.is_file():
        raise UsageError(
            "there are no prepared candidates here",
            place=Place(file=str(folder)),
            hint="'fewbit tune prepare MODEL -o DIR' makes them",
        )
    plain = json.loads(path.read_text(encoding="utf-8"))
    if plain.get("format") != FORMAT:
        raise UsageError(
            f"the candidates are of format {plain.get('format')}, and this is {FORMAT}",
            place=Place(file=str(path)),
            hint="prepare them again",
        )
    return Prepared(
        plain["target"],
        plain["arch"],
        plain["title"],
        tuple(_op(each, folder) for each in plain["ops"]),
        {name: (calls, why) for name, (calls, why) in plain["left"].items()},
    )


def _plain_op(op: Op, images: dict[str, bytes]) -> dict[str, Any]:
    return {
        "key": asdict(op.key),
        "name": op.name,
        "calls": op.calls,
        "macs": op.macs,
        "model": op.model,
        "tolerance": dict(op.tolerance),
        "regions": [asdict(region) for region in op.regions],
        "candidates": [_plain_candidate(each, images) for each in op.candidates],
        "failed": [plain_trial(trial) for trial in op.failed],
    }


def _plain_candidate(candidate: Candidate, images: dict[str, bytes]) -> dict[str, Any]:
    names = [f"{sha256(image).hexdigest()[:16]}.image" for image in candidate.plan.images]
    images |= dict(zip(names, candidate.plan.images, strict=True))
    schedule = candidate.schedule
    return {
        "schedule": None if schedule is None else schedule.as_json(),
        "plan": {**candidate.plan.plain(), "images": names},
        "regions": [asdict(region) for region in candidate.regions],
        "registers": candidate.registers,
        "spilled": candidate.spilled,
    }


def _op(plain: Mapping[str, Any], folder: Path) -> Op:
    return Op(
        Key(**plain["key"]),
        plain["name"],
        plain["calls"],
        plain["macs"],
        _regions(plain["regions"]),
        tuple(_candidate(each, folder) for each in plain["candidates"]),
        tuple(trial_of(each) for each in plain["failed"]),
        plain["tolerance"],
        plain["model"],
    )


def _candidate(plain: Mapping[str, Any], folder: Path) -> Candidate:
    plan = Plan.of({**plain["plan"], "images": []})
    images = tuple((folder / name).read_bytes() for name in plain["plan"]["images"])
    stored = plain["schedule"]
    return Candidate(
        None if stored is None else Schedule.from_json(stored),
        Plan(plan.name, plan.arch, plan.buffers, plan.launches, images),
        _regions(plain["regions"]),
        plain["registers"],
        plain["spilled"],
    )


def _regions(plain: Sequence[Mapping[str, Any]]) -> tuple[Region, ...]:
    given: list[dict[str, Any]] = [{**each, "shape": tuple(each["shape"])} for each in plain]
    return tuple(Region(**each) for each in given)


def plain_trial(trial: Trial) -> dict[str, Any]:
    return {
        "schedule": trial.schedule.as_json(),
        "ratio": trial.ratio,
        "reason": trial.reason,
    }


def trial_of(plain: Mapping[str, Any]) -> Trial:
    return Trial(Schedule.from_json(plain["schedule"]), plain["ratio"], plain["reason"])
