"""A benchmark of a language model: its steps and prompts beside llama.cpp and beside the bound.

Decoding reads all weights for one token, so what bounds a step is how fast memory is read: its
share is given for the bytes of weights that a step reads, counted by the compiled program itself.
Which of llama.cpp's types a model is compared with follows from the bytes that its weights take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fewbit.base.progress import progress
from fewbit.base.target_name import TargetName
from fewbit.bench.case import COMPILED, Array, Case
from fewbit.bench.comparable_gguf import write_comparable
from fewbit.bench.contest import Prepared, contest, prepare
from fewbit.bench.peers import OURS
from fewbit.bench.report import package_versions
from fewbit.bench.roofline import measure_reading
from fewbit.bench.text_work import TextWork
from fewbit.cost.layers import sqnr
from fewbit.language.checkpoint import Checkpoint
from fewbit.language.export.weight_type import WeightType
from fewbit.language.text_files import GenerationSettings
from fewbit.passes.loops.count_cycles import LOOP
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from fewbit.targets.registry import DEFAULT_TARGET
from fewbit.toolchain.isa import Isa


@dataclass(frozen=True)
class TextPlan:
    """What to measure, and how."""

    steps: tuple[int, ...] = ()
    """How many tokens are before each step."""
    prompts: tuple[int, ...] = ()
    peers: tuple[str, ...] = ()
    gguf: Path | None = None
    """The file that llama.cpp runs; None to have the checkpoint written for it."""
    type: WeightType | None = None
    """What the matrices of a written file are; None for the type nearest in bytes."""
    target: str = DEFAULT_TARGET
    threads: tuple[int, ...] = (1,)
    seconds: float = 2.0


@dataclass(frozen=True)
class TextTime:
    """A tool's times for one piece of work; seconds of a call."""

    tool: str
    variant: str
    least: float
    median: float
    tokens_per_second: float
    """At the median."""
    ratio: float
    """Its minimum time over fewbit's: how many times as fast fewbit is."""
    sqnr_db: float | None
    """Its logits against fewbit's; None for fewbit itself."""


@dataclass(frozen=True)
class TextTimes:
    """The times of all tools for one piece of work on so many threads."""

    work: str
    threads: int
    tools: list[TextTime]
    absent: dict[str, str]
    """Tools that gave no time, and why."""
    of_bandwidth: float | None = None
    """The share of a measured read bandwidth at which a step of fewbit reads its weights."""


@dataclass(frozen=True)
class TextReport:
    """What was measured of one language model."""

    model: str
    recipe: str | None
    target: str
    date: str
    processor: str
    versions: dict[str, str]
    weights: int
    """Bytes of the compiled program's weights."""
    step_weights: int
    """Bytes of weights that one step reads."""
    gguf: int | None
    """Bytes of llama.cpp's file."""
    reading: dict[int, float]
    """Bytes a second that so many threads read, of a memory as large as the step's weights."""
    times: list[TextTimes]

    def plain(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        return asdict(self)


def measure_text(
    model: str, program: Program, plan: TextPlan, checkpoint: Checkpoint | None = None
) -> TextReport:
    """Measure a language model's steps and prompts beside other tools.

    These run the plan's GGUF file, or one that is written from the checkpoint.
    """
    from fewbit.targets.compile import compile, name_of
    from fewbit.toolchain.machine import this_machine

    name = name_of(model)
    with TemporaryDirectory(prefix="fewbit-bench-") as temporary:
        folder = Path(temporary)
        artifact = compile(program, plan.target, folder / COMPILED, name=name)
        settings = artifact.text_model.settings
        read = _step_weight_bytes(program, plan, name)
        with progress("Measuring how fast memory is read"):
            isa = Isa.of(TargetName.parse(plan.target).detail or "host")
            reading = {count: measure_reading(isa, read, count) for count in plan.threads}
        gguf = plan.gguf
        if gguf is None and checkpoint is not None and plan.peers:
            gguf = folder / "model.gguf"
            write_comparable(checkpoint, gguf, artifact.manifest.weight_bytes, plan.type)
        times: list[TextTimes] = []
        for number, work in enumerate(_works(plan, settings)):
            place = folder / f"work{number}"
            place.mkdir()
            (place / COMPILED).symlink_to(folder / COMPILED)
            quantized = program.recipe is not None
            case = Case(folder=place, model=None, quantized=quantized, text=work, gguf=gguf)
            case.save(None, (), ())
            times += _times(case, artifact, plan, reading, read)
        return TextReport(
            model=model,
            recipe=program.recipe,
            target=plan.target,
            date=datetime.now(UTC).date().isoformat(),
            processor=this_machine().processor,
            versions=package_versions(plan.peers),
            weights=artifact.manifest.weight_bytes,
            step_weights=read,
            gguf=gguf.stat().st_size if gguf is not None and plan.peers else None,
            reading=reading,
            times=times,
        )


def _works(plan: TextPlan, settings: GenerationSettings) -> list[TextWork]:
    given = [("step", length) for length in plan.steps]
    given += [("prompt", length) for length in plan.prompts]
    return [
        TextWork.model_validate(
            {
                "kind": kind,
                "length": length,
                "vocabulary": settings.vocabulary,
                "context": settings.context,
            }
        )
        for kind, length in given
    ]


def _step_weight_bytes(program: Program, plan: TextPlan, name: str) -> int:
    """Return what a step's kernels read; loops look up some rows of a table, and read little."""
    from fewbit.targets.compile import compile

    artifact = compile(program, plan.target, name=name, profile=True)
    session = artifact.decode_session()
    artifact.profile(reset=True)
    session(np.array([[0]]), np.array([0]))
    rows = [row for row in artifact.profile() if row.kernel != LOOP]
    return sum(row.weight_bytes * row.calls for row in rows)


def _times(
    case: Case, artifact: Artifact, plan: TextPlan, reading: Mapping[int, float], read: int
) -> list[TextTimes]:
    prepared, absent = prepare(case, plan.peers)
    tools = {OURS: Prepared(artifact.manifest.recipe or "float32"), **prepared}
    work = case.work
    results: list[TextTimes] = []
    for threads in plan.threads:
        times, failed = contest(case, tools, threads, plan.seconds)
        if OURS in failed:
            raise RuntimeError(failed[OURS])
        least = times[OURS].least
        expected = case.outputs(OURS)
        rows = [
            TextTime(
                tool=tool,
                variant=tools[tool].variant,
                least=timing.least,
                median=timing.median,
                tokens_per_second=len(work.measured) / timing.median,
                ratio=timing.least / least,
                sqnr_db=_closeness(expected, case.outputs(tool)) if tool != OURS else None,
            )
            for tool, timing in times.items()
        ]
        share = read / least / reading[threads] if work.kind == "step" else None
        results.append(TextTimes(work.name, threads, rows, {**absent, **failed}, share))
    return results


def _closeness(expected: Sequence[Array], given: Sequence[Array]) -> float | None:
    """Return how near the logits of one tool are to another's."""
    (own,), (other,) = expected, given
    decibels = float(sqnr(other, own.reshape(other.shape)))
    return decibels if isfinite(decibels) else None
