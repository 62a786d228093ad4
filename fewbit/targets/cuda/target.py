"""The target `cuda`: machine code for an NVIDIA GPU, and a plan by which its driver runs it."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast, get_args

from fewbit import __version__
from fewbit.artifact import Folder, Manifest, Tensor, write_folder
from fewbit.errors import UsageError
from fewbit.kernels.cuda import table
from fewbit.kernels.cuda.arch import HOPPER, Arch, find_arch
from fewbit.program import Program
from fewbit.runtime.cuda import PLAN
from fewbit.signature import TensorSpec
from fewbit.targets.cpu.described import described_weight
from fewbit.targets.cuda.compilation import OURS, STAGES, Compilation, Shape
from fewbit.targets.cuda.layer import Precision
from fewbit.targets.target import Request, Target


class Cuda(Target):
    """A plan of launches, cubins, and weights."""

    stages = STAGES
    ours = OURS
    upstream = ("memref",)
    suffixes = MappingProxyType({"cuda": ".cu"})
    options = frozenset({"precision", "sizes", "tuning_db"})

    def check(self, request: Request) -> None:
        arch_of(request)
        _precision(request)

    def compile(self, program: Program, request: Request, output: Path) -> Folder:
        made = _compilation(program, request)
        _run(made, STAGES[-1], request)
        return write(made, request, output)

    def lower(self, program: Program, stage: str, request: Request) -> str:
        return _run(_compilation(program, request), stage, request)

    def load(self, folder: Folder) -> Any:
        from fewbit.runtime.cuda import load_cuda

        return load_cuda(folder)


def arch_of(request: Request) -> Arch:
    """The generation behind the colon; Hopper if there is none."""
    return find_arch(request.detail) if request.detail else HOPPER


def _run(made: Compilation, stage: str, request: Request) -> str:
    """The text after a stage, on the way with what searches found."""
    with table.preferring(_tuned(request)):
        return made.run(stage)


def _tuned(request: Request) -> table.Table:
    """Settings that searches found for this generation."""
    from fewbit.tune.cuda_layers import known_settings
    from fewbit.tune.database import find_database

    database = find_database(request.options.get("tuning_db"))
    return {} if database is None else known_settings(database, arch_of(request))


def _precision(request: Request) -> Precision:
    given = request.options.get("precision", "f32")
    if given not in get_args(Precision):
        raise UsageError(
            f"floats are multiplied in no '{given}'", hint=f"in {', '.join(get_args(Precision))}"
        )
    precision = cast(Precision, given)
    if precision == "tf32" and not arch_of(request).has_bf16:
        raise UsageError("GPUs before Ampere have no tf32", hint="give f16 or f32")
    return precision


def _compilation(program: Program, request: Request) -> Compilation:
    return Compilation(
        program,
        request.name,
        arch_of(request),
        _precision(request),
        request.options.get("sizes"),
        request.passes,
        request.watch,
    )


def write(made: Compilation, request: Request, output: Path) -> Folder:
    """The artifact: the plan as JSON, an image of machine code for each kernel, and weights."""
    plan = made.assembly.plan(request.name)
    plain = plan.plain()
    del plain["images"]
    name = request.name
    files: dict[str, bytes | Path] = {
        PLAN: json.dumps({**plain, "steps": made.assembly.described}, indent=1).encode(),
        f"{name}.cu": made.assembly.source().encode(),
        f"{name}.weights": made.assembly.weights.tobytes(),
    }
    files |= {f"{i}.cubin": image for i, image in enumerate(plan.images)}
    signature = made.signature
    manifest = Manifest(
        name=name,
        target=request.target,
        compiler=__version__,
        inputs=tuple(map(_tensor, signature.inputs, made.inputs)),
        outputs=tuple(map(_tensor, signature.outputs, made.outputs)),
        recipe=made.program.recipe,
        arena_bytes=plan.buffers["arena"].bytes,
        weight_bytes=made.assembly.weights.nbytes,
        weights=tuple(map(described_weight, made.assembly.weights.entries)),
        float_weights=request.float_weights,
        options={"arch": plan.arch, "precision": made.precision},
        files={},
    )
    return write_folder(output, manifest, files)


def _tensor(spec: TensorSpec, shape: Shape) -> Tensor:
    element = "i8" if spec.element.startswith("!mico") else spec.element
    return Tensor(name=spec.name, shape=shape, element=element, updates=spec.updates)
