"""The layers of a program for `cuda`: which kernel, and with which settings, for each of them.

Layers are convolutions, matmuls, and attention. Attention is measured with its heads one after
another, wherever they lie in the program: a setting is known by sizes alone.

What is found is put before the table of the package when a program is compiled; nothing is tuned
when it is loaded. A layer is known by its sizes and its type, and so are the table's entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fewbit import __version__
from fewbit.kernels.cuda import table
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.attention import Attention
from fewbit.kernels.cuda.conv2d import LADDER
from fewbit.kernels.cuda.convolution import Convolution
from fewbit.kernels.cuda.family import Family
from fewbit.kernels.cuda.plan import Buffer
from fewbit.program.program import Program
from fewbit.targets.cuda.attention import FAMILIES as ATTENTION
from fewbit.targets.cuda.attention import families_for
from fewbit.tune.cuda.search import Space
from fewbit.tune.database import Database, Key, versions_of
from fewbit.tune.prepared import Candidate, Region
from fewbit.tune.schedule import Schedule

TARGET = "cuda"
Problem = Convolution | Attention
TOLERANCE = {"f32": 1e-4, "f16": 4e-3, "bf16": 3e-2}
TF32_TOLERANCE = 4e-3
KERNEL = "kernel"
"""Under which a schedule has the family's name; its other words are settings."""


def layer_key(problem: Problem, arch: Arch) -> Key:
    kind = "attention" if isinstance(problem, Attention) else "conv2d"
    return Key(TARGET, f"{kind} {table_key(problem)}", f"sm_{arch.compute}", _versions())


def _versions() -> str:
    """Return kernels are fewbit's own, wherever they are compiled."""
    return f"{versions_of()} fewbit={__version__}"


def table_key(problem: Problem) -> str:
    if isinstance(problem, Attention):
        return f"{problem}|{problem.dtype}"
    return f"{problem}|{problem.dtype}|{problem.layout}"


def families_of(problem: Problem, arch: Arch) -> dict[str, Family[Any]]:
    """Return families of kernels that may compute a layer."""
    if isinstance(problem, Attention):
        return {**families_for(problem, arch)}
    from fewbit.targets.cuda.layers import FAMILIES

    return {name: LADDER[name] for name in FAMILIES if LADDER[name].refuse(problem, arch) is None}


def known_settings(database: Database, arch: Arch) -> table.Table:
    """Return what searches found for a generation, as a table of kernels' settings."""
    settings: table.Table = {}
    hardware, versions = f"sm_{arch.compute}", _versions()
    for result in database.results(TARGET):
        if (result.key.hardware, result.key.versions) != (hardware, versions):
            continue
        if result.schedule is None:
            continue
        kind, _, problem = result.key.signature.partition(" ")
        family, config = settings_of(result.schedule)
        entry = table.Entry(family, config, result.seconds * result.ratio * 1e6)
        settings.setdefault(kind, {})[problem] = [entry]
    return settings


def settings_of(schedule: Schedule) -> tuple[str, dict[str, int]]:
    """Return the family and its settings that a schedule stands for."""
    how = dict(schedule.how)
    family = str(how.pop(KERNEL))
    return family, {name: int(value) for name, value in how.items()}


@dataclass(frozen=True)
class Layer:
    """A layer, and the kernels that may compute it."""

    name: str
    problem: Problem
    family: str
    config: Any
    """As the program has it now."""
    arch: Arch
    calls: int = 1

    def space(self) -> Space:
        problem = self.problem
        tolerance = {**TOLERANCE, **({"f32": TF32_TOLERANCE} if problem.dtype == "tf32" else {})}
        return Space(
            layer_key(problem, self.arch),
            f"{self.name} {problem} {problem.dtype}",
            self.calls,
            problem.operations // 2,
            self.regions,
            tolerance,
            self.default,
            self.candidate,
            self.rank,
            "measured",
        )

    @property
    def regions(self) -> tuple[Region, ...]:
        return tuple(_region(n, b) for n, b in self.problem.buffers().items())

    def default(self) -> Candidate:
        return replace(self._compile(self.family, self.config), schedule=None)

    def candidate(self, schedule: Schedule) -> Candidate:
        return replace(self._compile(*settings_of(schedule)), schedule=schedule)

    def rank(self) -> list[tuple[float, Schedule]]:
        """Rank settings as their family lists them, the first of which is a good guess."""
        schedules: list[tuple[float, Schedule]] = []
        for name, family in families_of(self.problem, self.arch).items():
            for place, config in enumerate(family.configs(self.problem, self.arch)):
                how = ((KERNEL, name), *config.items())
                if (name, dict(config)) != (self.family, dict(self.config)):
                    schedules.append((1.0 + place / 1000, Schedule((), (), how=how)))
        return sorted(schedules, key=lambda pair: pair[0])

    def _compile(self, family: str, config: Any) -> Candidate:
        families: dict[str, Family[Any]] = {**LADDER}
        if isinstance(self.problem, Attention):
            families = {**ATTENTION}
        plan = families[family].build(self.problem, config, self.arch)
        changed = ()
        if family.startswith("depthwise"):
            changed = tuple(
                replace(r, order="depthwise") if r.buffer == "w" else r for r in self.regions
            )
        return Candidate(None, plan, changed)


def _region(name: str, buffer: Buffer) -> Region:
    element = {"tf32": "f32", "u8": "i8"}.get(buffer.dtype, buffer.dtype)
    return Region(name, 0, buffer.shape, element, -1.0, buffer.role == "out")


def spaces_of(
    program: Program, arch: Arch, **options: Any
) -> tuple[list[Space], dict[str, tuple[int, str]]]:
    """Return what can be tuned, the most MACs first; and what cannot, with the reason."""
    tunable, left = layers_of(program, arch, **options)
    spaces = [layer.space() for layer in tunable]
    return sorted(spaces, key=lambda s: -s.calls * s.macs), left


def layers_of(
    program: Program, arch: Arch, **options: Any
) -> tuple[list[Layer], dict[str, tuple[int, str]]]:
    """Return the layers of a program that have settings to choose; loops have none."""
    from fewbit.targets.cuda.fused import Fused
    from fewbit.targets.cuda.nest import Nest
    from fewbit.targets.cuda.target import compile_cuda

    compilation = compile_cuda(program, arch, **options)
    layers: dict[str, Layer] = {}
    left: dict[str, tuple[int, str]] = {}
    for step in compilation.module.planner.steps:
        if isinstance(step, Nest):
            continue
        call = step.call if isinstance(step, Fused) else step
        problem: Any = call.problem
        if isinstance(problem, Attention):
            problem = replace(problem, strides=())
        elif not isinstance(problem, Convolution) or call.family not in LADDER:
            calls = left.get(call.layer, (0, ""))[0]
            left[call.layer] = (calls + 1, f"its kernel is as the table has it ({call.family})")
            continue
        key = table_key(problem)
        same = layers.get(key)
        layer = Layer(call.layer, problem, call.family, call.config, arch)
        layers[key] = replace(same or layer, calls=1 + (same.calls if same else 0))
    return list(layers.values()), left
