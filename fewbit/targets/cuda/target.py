"""The target `cuda`: machine code for an NVIDIA GPU, and a plan by which its driver runs it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from fewbit import __version__
from fewbit.codegen.manifest import manifest_weight
from fewbit.errors import Error, UsageError
from fewbit.kernels.cuda.arch import HOPPER, Arch, find_arch
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.context import make_compile_context
from fewbit.pipeline.stage import Pipeline
from fewbit.program.artifact import Folder, Manifest, Tensor, write_folder
from fewbit.program.program import Program
from fewbit.program.signature import TensorSpec, signature_of
from fewbit.program.state import initial_state, write_initial_state
from fewbit.program.weight_image import WeightImage
from fewbit.runtime.cuda import PLAN
from fewbit.targets.bench import Bench
from fewbit.targets.cuda.find_output_shapes import OutputShapes
from fewbit.targets.cuda.layer import Precision
from fewbit.targets.cuda.pipeline import PIPELINE
from fewbit.targets.cuda.planner import Assembly
from fewbit.targets.cuda.settings import GpuSettings, Shape
from fewbit.targets.options import FLAG, PATH, SHAPES, TEXT, Options, TunedOptions, one_of, option
from fewbit.targets.target import Request, Target

if TYPE_CHECKING:
    from fewbit.targets.probe import Found


@dataclass(frozen=True)
class CudaOptions(TunedOptions):
    """The options of `cuda`."""

    precision: Precision = option(
        one_of(*get_args(Precision)),
        "How floats are multiplied: f32, if not given, tf32 or f16.",
        default="f32",
        metavar="P",
        also=("tune",),
    )
    sizes: tuple[Shape, ...] = option(
        SHAPES,
        "The shape of an input whose sizes the model leaves open. Repeatable.",
        metavar="32x3x224x224",
    )


@dataclass(frozen=True)
class ConvolutionOptions(Options):
    """The options of `fewbit bench conv2d`."""

    shape: str | None = option(
        TEXT, "Which: n32,56x56,64,64,k3[,s2][,p0][,d2][,g4].", metavar="SHAPE"
    )
    variants: str = option(
        TEXT, "all, if not given, or naive,mma,...", default="all", metavar="NAMES"
    )
    dtype: str = option(
        TEXT, "f16, if not given, f32, tf32, bf16 or i8.", default="f16", metavar="T"
    )
    layout: str = option(TEXT, "nhwc, if not given, or nchw.", default="nhwc", metavar="L")
    modules: Path | None = option(PATH, "Keep IREE's compiled modules there.", metavar="DIR")


@dataclass(frozen=True)
class AttentionOptions(Options):
    """The options of `fewbit bench attention`."""

    shape: str | None = option(TEXT, "Which: 32x12x197x64[,causal].", metavar="SHAPE")
    dtype: str = option(TEXT, "f16, if not given, or bf16.", default="f16", metavar="T")
    projections: bool = option(FLAG, "With the projections before and behind it.")


class Cuda(Target):
    """A plan of launches, cubins, and weights."""

    about = "machine code and a plan for an NVIDIA GPU"
    see = "[GPUs](gpu.md)"
    detail = "sm_XX"
    fixes_sizes = True
    options = CudaOptions
    tuner = "fewbit.tune.cuda.tuner:CudaTuner"
    benches = (
        Bench(
            "conv2d",
            "Measure one convolution in every way, beside cuDNN.",
            ConvolutionOptions,
            "fewbit.bench.gpu.ladder:bench_conv2d",
        ),
        Bench(
            "attention",
            "Measure attention, alone or with its projections, beside PyTorch.",
            AttentionOptions,
            "fewbit.bench.gpu.attention_ladder:bench_attention",
        ),
    )

    def pipeline(self, request: Request) -> Pipeline:
        return PIPELINE

    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        if program is None:
            return (WeightImage(),)
        settings = GpuSettings(
            signature_of(program.module),
            arch_of(request),
            _precision(request),
            CudaOptions.of(request).sizes or None,
            self.known(program, request) or {},
        )
        return settings, WeightImage()

    def check(self, request: Request) -> None:
        arch_of(request)
        _precision(request)

    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        return write(made, program, request, output)

    def probe(self, name: str) -> Found:
        from fewbit.targets.cuda.probe import probe_cuda

        return probe_cuda()

    def find_obstacle(self, name: str) -> str | None:
        from fewbit.kernels.cuda.driver import device

        try:
            device()
        except Error as e:
            return e.what
        return None

    def load(self, folder: Folder) -> Any:
        from fewbit.runtime.cuda import load_cuda

        return load_cuda(folder)


def compile_cuda(
    program: Program,
    arch: Arch,
    precision: Precision = "f32",
    sizes: Sequence[Shape] | None = None,
) -> Compilation:
    """Take a program through all stages, as the package's own table has it."""
    settings = GpuSettings(signature_of(program.module), arch, precision, sizes)
    ctx = make_compile_context(program.store, program.recipe, (settings, WeightImage()))
    return Compilation(PIPELINE, ctx, program.module.clone()).run()


def arch_of(request: Request) -> Arch:
    """Return the generation behind the colon; Hopper if there is none."""
    return find_arch(request.detail) if request.detail else HOPPER


def _precision(request: Request) -> Precision:
    precision = CudaOptions.of(request).precision
    if precision == "tf32" and not arch_of(request).has_bf16:
        raise UsageError("GPUs before Ampere have no tf32", hint="give f16 or f32")
    return precision


def write(made: Compilation, program: Program, request: Request, output: Path) -> Folder:
    """Write the artifact: the plan as JSON, a cubin for each kernel, weights, and first state."""
    assembly, settings = cast(Assembly, made.module), made.ctx.get(GpuSettings)
    plan = assembly.plan(request.name)
    plain = plan.plain()
    del plain["images"]
    name = request.name
    files: dict[str, bytes | Path] = {
        PLAN: json.dumps({**plain, "steps": assembly.described}, indent=1).encode(),
        f"{name}.cu": assembly.source().encode(),
        f"{name}.weights": assembly.weights.tobytes(),
    }
    files |= {f"{i}.cubin": image for i, image in enumerate(plan.images)}
    signature = settings.signature
    start = initial_state(program.module, program.store)
    files |= write_initial_state({signature.inputs[i].name: each for i, each in start.items()})
    manifest = Manifest(
        name=name,
        target=request.target,
        compiler=__version__,
        inputs=tuple(map(_tensor, signature.inputs, settings.inputs)),
        outputs=tuple(map(_tensor, signature.outputs, made.ctx.get(OutputShapes).shapes)),
        recipe=made.ctx.recipe,
        arena_bytes=plan.buffers["arena"].bytes,
        weight_bytes=assembly.weights.nbytes,
        weights=tuple(map(manifest_weight, assembly.weights.entries)),
        float_weights=request.float_weights,
        options={"arch": plan.arch, "precision": settings.precision},
        files={},
    )
    return write_folder(output, manifest, {**files, **request.files})


def _tensor(spec: TensorSpec, shape: Shape) -> Tensor:
    element = "i8" if spec.element.startswith("!mico") else spec.element
    return Tensor(name=spec.name, shape=shape, element=element, updates=spec.updates)
