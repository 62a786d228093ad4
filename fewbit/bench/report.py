"""A whole benchmark of one model: sizes, times beside other tools, and the share of each layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fewbit.base.progress import progress
from fewbit.base.target_name import TargetName
from fewbit.bench.case import COMPILED, Array, Case
from fewbit.bench.contest import Prepared, contest, prepare
from fewbit.bench.layers import LayerTime, profile_calls, times_of_layers
from fewbit.bench.peers import OURS
from fewbit.bench.roofline import Roofline, measure_roofline
from fewbit.bench.subject import Subject
from fewbit.cost.layers import sqnr
from fewbit.program.artifact import Manifest
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from fewbit.targets.registry import DEFAULT_TARGET, find_target
from fewbit.toolchain.isa import Isa

CLOSE = 50.0
"""Decibels; float tools whose outputs are farther from PyTorch's compute something else."""
PROFILE_SECONDS = 1.0


@dataclass(frozen=True)
class Plan:
    """What to measure, and how."""

    recipe: str | None = None
    target: str = DEFAULT_TARGET
    peers: tuple[str, ...] = ()
    threads: tuple[int, ...] = (1,)
    seconds: float = 2.0
    layers: bool = True
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The target's options, as `fewbit.compile` takes them."""


@dataclass(frozen=True)
class ToolTime:
    """A tool's times; seconds of one run."""

    tool: str
    variant: str
    least: float
    median: float
    runs: int
    throughput: float
    """Inferences a second, at the median."""
    ratio: float
    """Its minimum time over fewbit's: how many times as fast fewbit is."""
    sqnr_db: float | None
    """Its outputs against PyTorch's in float32; None where there are none, or they are equal."""
    bytes: int | None
    """The size of its files."""


@dataclass(frozen=True)
class Times:
    """The times of all tools on so many threads."""

    threads: int
    tools: list[ToolTime]
    absent: dict[str, str]
    """Tools that gave no time, and why."""


@dataclass(frozen=True)
class Sizes:
    """On disk."""

    weights: int
    library: int
    float32: int
    """What the weights take as floats."""


@dataclass(frozen=True)
class Report:
    """What was measured of one model."""

    model: str
    recipe: str | None
    target: str
    batch: int
    inputs: list[str]
    date: str
    processor: str
    versions: dict[str, str]
    sizes: Sizes
    times: list[Times]
    layers: list[LayerTime] = field(default_factory=list[LayerTime])
    layer_threads: int | None = None
    roofline: Roofline | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """The target's options."""

    def plain(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        values = asdict(self)
        for plain, layer in zip(values["layers"], self.layers, strict=True):
            plain["achieved"] = layer.achieved
        return values


def measure(
    subject: Subject,
    program: Program,
    plan: Plan,
    samples: Sequence[Sequence[Array]] | None = None,
) -> Report:
    """Measure the subject, compiled by the plan's recipe, beside other tools."""
    from fewbit.targets.compile import compile, name_of

    name = name_of(subject.name)
    quantized = program.recipe is not None
    with TemporaryDirectory(prefix="fewbit-bench-") as temporary:
        folder = Path(temporary)
        case = Case(
            folder=folder, model=subject.name if subject.module else None, quantized=quantized
        )
        artifact = compile(program, plan.target, folder / COMPILED, name=name, **plan.options)
        artifact.runner  # noqa: B018  # what this machine does not run is found out now
        case.save(subject.module, subject.inputs, samples or subject.random_samples())
        prepared, absent = prepare(case, plan.peers)
        tools = {OURS: Prepared(program.recipe or "float32"), **prepared}
        expected = subject.expected()
        times = [
            _times(case, tools, threads, plan.seconds, absent, expected, _batch(subject))
            for threads in plan.threads
        ]
        chosen = find_target(artifact.manifest.target)  # a placement has one of its own
        flag = chosen.profile_option if plan.layers else None
        layers, roofline = _layers(subject, program, plan, name, flag) if flag else ([], None)
        sizes = _sizes(artifact, subject)
    from fewbit.toolchain.machine import this_machine

    return Report(
        model=subject.name,
        recipe=program.recipe,
        target=plan.target,
        batch=_batch(subject),
        inputs=[f"{'x'.join(map(str, a.shape))} {a.dtype}" for a in subject.inputs],
        date=datetime.now(UTC).date().isoformat(),
        processor=this_machine().processor,
        versions=package_versions(plan.peers),
        sizes=sizes,
        times=times,
        layers=layers,
        layer_threads=plan.threads[0] if layers else None,
        roofline=roofline,
        options=dict(plan.options),
    )


def _times(
    case: Case,
    tools: dict[str, Prepared],
    threads: int,
    seconds: float,
    absent: dict[str, str],
    expected: list[Array] | None,
    batch: int,
) -> Times:
    times, failed = contest(case, tools, threads, seconds)
    if OURS in failed:
        raise RuntimeError(failed[OURS])
    absent = {**absent, **failed}
    rows: list[ToolTime] = []
    for tool, timing in times.items():
        quality = None if expected is None else _quality(expected, case.outputs(tool))
        floats = tools[tool].variant.startswith("float32")
        if floats and quality is not None and quality < CLOSE:
            absent[tool] = f"its outputs differ from PyTorch's: SQNR {quality:.0f} dB"
            continue
        rows.append(
            ToolTime(
                tool=tool,
                variant=tools[tool].variant,
                least=timing.least,
                median=timing.median,
                runs=timing.rounds,
                throughput=batch / timing.median,
                ratio=timing.least / times[OURS].least,
                sqnr_db=quality if quality is not None and isfinite(quality) else None,
                bytes=tools[tool].bytes,
            )
        )
    return Times(threads, rows, absent)


def _quality(expected: Sequence[Array], given: Sequence[Array]) -> float:
    """Return the worst of all outputs."""
    return min(
        (sqnr(a, b.reshape(a.shape)) for a, b in zip(expected, given, strict=True)), default=0.0
    )


def _layers(
    subject: Subject, program: Program, plan: Plan, name: str, flag: str
) -> tuple[list[LayerTime], Roofline]:
    from fewbit.targets.compile import compile

    counting: dict[str, Any] = {flag: True}
    artifact = compile(program, plan.target, name=name, **counting)
    threads = plan.threads[0]
    with progress("Measuring layers"):
        seconds = min(plan.seconds, PROFILE_SECONDS)
        calls, runs = profile_calls(artifact, subject.inputs, threads, seconds)
        roofline = measure_roofline(Isa.of(TargetName.parse(plan.target).detail or "host"))
    needed = artifact.manifest.weight_bytes + artifact.runner.arena_bytes(*subject.inputs)
    return times_of_layers(calls, runs, roofline, needed, threads), roofline


def _batch(subject: Subject) -> int:
    first = subject.inputs[0] if subject.inputs else None
    return first.shape[0] if first is not None and first.ndim else 1


def _sizes(artifact: Artifact, subject: Subject) -> Sizes:
    manifest = artifact.manifest
    return Sizes(
        weights=manifest.weight_bytes,
        library=sum((artifact.folder / name).stat().st_size for name in _runs(manifest)),
        float32=_float_bytes(subject),
    )


def _runs(manifest: Manifest) -> list[str]:
    """Return the files that a run loads."""
    return [name for name in manifest.files if Path(name).suffix in (".so", ".vmfb", ".irpa")]


def _float_bytes(subject: Subject) -> int:
    if subject.module is None:
        return subject.program.store.nbytes()
    return sum(4 * p.numel() for p in subject.module.parameters())


def package_versions(peers: Sequence[str]) -> dict[str, str]:
    """Return the versions of fewbit and of other tools, as far as they are installed."""
    from importlib.metadata import PackageNotFoundError, version

    packages = {
        "torch": ("torch",),
        "onnxruntime": ("onnxruntime",),
        "openvino": ("openvino", "nncf"),
        "iree": ("iree-base-compiler",),
        "llama.cpp": ("llama-cpp-python",),
    }
    versions: dict[str, str] = {}
    for package in ("fewbit", *(p for peer in peers for p in packages[peer])):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
