"""The dispatches of a program for `iree-cuda`, as ops whose tiles can be searched for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.base.target_name import TargetName
from fewbit.errors import Error, PassError, UnsupportedError
from fewbit.kernels.cuda.arch import Arch
from fewbit.toolchain.iree_devices import CUDA_DEFAULT
from fewbit.tune.cuda.measure import KINDS
from fewbit.tune.cuda.model import GpuAnalytic
from fewbit.tune.cuda.search import Space
from fewbit.tune.cuda.space import gpu_hardware, gpu_schedules
from fewbit.tune.database import Database, Key, versions_of
from fewbit.tune.iree.bindings import Arguments, read_arguments
from fewbit.tune.iree.build import Build
from fewbit.tune.iree.gpu_dispatch import GpuDispatch
from fewbit.tune.iree.gpu_kernel import GpuKernel, assemble, compile_kernel
from fewbit.tune.iree.tuning import PACKAGES, calls_of, leading_schedules
from fewbit.tune.prepared import Candidate, Region
from fewbit.tune.schedule import Schedule

TARGET = "iree-cuda"
TOLERANCE = {"f64": 1e-9, "f32": 1e-4, "f16": 4e-3, "bf16": 3e-2}
"""The tolerance, relative to the largest result: sums are taken in another order."""


def gpu_key(dispatch: GpuDispatch, hardware: str) -> Key:
    return Key(TARGET, dispatch.signature, hardware, versions_of(*PACKAGES))


def gpu_hardware_of(target: str) -> str:
    """Return what results for a target are kept under: the generation of its GPU."""
    return (TargetName.parse(target).detail or CUDA_DEFAULT).rstrip("a")


def gpu_dispatches(build: Build) -> tuple[GpuDispatch, ...]:
    return tuple(GpuDispatch(each.text, each.name) for each in build.dispatches)


def find_gpu_schedules(build: Build, database: Database, hardware: str) -> dict[str, Schedule]:
    """Return those that the database has for a program's dispatches, by their names."""
    schedules: dict[str, Schedule] = {}
    leading = leading_schedules(database, TARGET, hardware)
    for dispatch in gpu_dispatches(build):
        if "_initializer_" in dispatch.name or "arith.mul" not in dispatch.text:
            continue
        if dispatch.reason is not None:
            continue
        result = database.get(gpu_key(dispatch, hardware))
        schedule = result.schedule if result else leading.get(dispatch.nest.signature)
        if schedule is not None:
            schedules[dispatch.name] = schedule
    return schedules


@dataclass
class Kernels:
    """The kernels that IREE makes of one dispatch."""

    dispatch: GpuDispatch
    arch: Arch
    flags: Sequence[str] = ()
    _folder: TemporaryDirectory[str] = field(
        default_factory=lambda: TemporaryDirectory(prefix="fewbit-gpu-")
    )
    _count: int = 0

    @cached_property
    def arguments(self) -> Arguments:
        return read_arguments(self.dispatch.module)

    @property
    def regions(self) -> tuple[Region, ...]:
        odd = {span.element for span in self.arguments.spans} - set(KINDS)
        if odd:
            raise UnsupportedError(f"its elements are {', '.join(sorted(odd))}")
        return tuple(
            Region(f"b{span.binding}", span.offset, span.shape, span.element, written=span.written)
            for span in self.arguments.spans
        )

    @cached_property
    def default(self) -> GpuKernel:
        return self._compile(self.dispatch.text)

    def default_candidate(self) -> Candidate:
        return self._candidate(None, self.default)

    def candidate(self, schedule: Schedule) -> Candidate:
        kernel = self._compile(self.dispatch.with_schedule(schedule))
        if kernel.instructions == self.default.instructions:
            raise PassError("IREE makes the same instructions of it")
        return self._candidate(schedule, kernel)

    def rank(self) -> list[tuple[float, Schedule]]:
        nest, _ = self.dispatch.nest.without_units()
        hardware = gpu_hardware(self.arch)
        model = GpuAnalytic(hardware)
        every = gpu_schedules(nest, hardware, self.arch, self.dispatch.has_mma)
        return sorted(((model.seconds(nest, s), s) for s in every), key=lambda pair: pair[0])

    def _candidate(self, schedule: Schedule | None, kernel: GpuKernel) -> Candidate:
        self._count += 1
        folder = Path(self._folder.name) / f"assembled{self._count}"
        folder.mkdir()
        assembled = assemble(kernel, self.arch, folder)
        plan = kernel.plan(self.arguments, self.arch, assembled[0] if assembled else None)
        if assembled is None:
            return Candidate(schedule, plan)
        _, used = assembled
        return Candidate(schedule, plan, registers=used.registers, spilled=used.spilled)

    def _compile(self, text: str) -> GpuKernel:
        self._count += 1
        return compile_kernel(text, self.flags, Path(self._folder.name), f"kernel{self._count}")


def spaces_of(build: Build, arch: Arch) -> tuple[list[Space], dict[str, tuple[int, str]]]:
    """Return what can be tuned, the most MACs first; and what cannot, with the reason."""
    calls = calls_of(build)
    spaces: dict[str, Space] = {}
    left: dict[str, tuple[int, str]] = {}
    for configured in build.dispatches:
        count = calls.get(configured.name, 0)
        if not count:
            continue
        dispatch = GpuDispatch(configured.text, configured.name)
        space = space_of(dispatch, arch, count)
        if isinstance(space, str):
            left[dispatch.name] = (count, space)
            continue
        same = spaces.get(dispatch.signature)
        spaces[dispatch.signature] = replace(space, calls=count + (same.calls if same else 0))
    return sorted(spaces.values(), key=lambda s: -s.calls * s.macs), left


def space_of(dispatch: GpuDispatch, arch: Arch, calls: int) -> Space | str:
    """Return what may be tried for a dispatch, or why nothing is."""
    if dispatch.reason is not None:
        return dispatch.reason
    kernels = Kernels(dispatch, arch)
    try:
        regions = kernels.regions
        _ = kernels.default
    except Error as e:
        return e.what
    return Space(
        gpu_key(dispatch, f"sm_{arch.compute}"),
        dispatch.name,
        calls,
        dispatch.nest.macs,
        regions,
        TOLERANCE,
        kernels.default_candidate,
        kernels.candidate,
        kernels.rank,
    )
