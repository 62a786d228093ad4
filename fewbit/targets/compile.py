"""`fewbit.compile`: from a program or a model to an artifact, for any target.

A target takes a program through stages. `lower` stops after one of them and gives its text;
`compile` goes to the end. Both run passes of the caller's own after the stages that they are
given for, and show the text of every stage to a watcher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fewbit.errors import Error, PassError, Place, UsageError
from fewbit.files import PathLike
from fewbit.program import Program
from fewbit.progress import progress
from fewbit.runtime import Artifact

if TYPE_CHECKING:
    from fewbit.frontends import Model, Shapes
    from fewbit.quant.calibration import Calibration
    from fewbit.quant.recipe import RecipeLike
    from fewbit.targets.cpu.compilation import Inserted, Watcher
    from fewbit.targets.cpu.variants import CpuVariants

TARGETS = ("cpu",)


def compile(
    model: Model,
    target: str = "cpu",
    output: PathLike | None = None,
    *,
    name: str | None = None,
    recipe: RecipeLike | None = None,
    calibration: Calibration | None = None,
    example_inputs: Sequence[Any] = (),
    input_shapes: Shapes | None = None,
    dynamic_shapes: Any = None,
    passes: Inserted | None = None,
    watch: Watcher | None = None,
    blas: str | None = None,
    integer_only: bool = False,
    profile: bool = False,
    cpu_variants: CpuVariants | None = None,
) -> Artifact:
    """Compile a program, a PyTorch module or what a text names; `art(x)` then runs it.

    `output` is the folder to write; without it, one that lasts as long as the artifact. A program
    is called after it. `passes` are run after the stages that they are given for: `{"linalg":
    ["my-pass"]}`. `blas` names a library that multiplies matrices in place of our own kernels, such
    as "openblas". With a `recipe`, batch norms become part of layers before these are quantized;
    `integer_only` leaves no floats between layers of a static recipe. With `profile`, the library
    counts where its time goes, and `art.profile()` tells. `cpu_variants` are processors of the
    target's family, by name, or "auto" or "all": the library has code for each of them.
    """
    from fewbit.targets.cpu.cblas import find_blas
    from fewbit.targets.cpu.target import compile_cpu, isa_of
    from fewbit.targets.cpu.variants import variants_of
    from fewbit.transforms.integer_only import integer_only as without_floats

    check_target(target)
    variants = () if cpu_variants is None else variants_of(cpu_variants, isa_of(target))
    library = find_blas(blas)
    name = name or (
        Path(output).name if isinstance(model, Program) and output is not None else name_of(model)
    )
    with progress(f"Importing {name}"):
        program = _program(model, recipe, calibration, example_inputs, input_shapes, dynamic_shapes)
    if integer_only:
        program = without_floats(program, strict=True)
    temporary = TemporaryDirectory(prefix="fewbit-") if output is None else None
    folder = Path(temporary.name) / name if temporary is not None else Path(output or "")
    with progress(f"Compiling {name}"):
        made = compile_cpu(
            program, name, target, folder, inserted=_named(passes), watch=watch, blas=library,
            profile=profile,
            variants=variants,
        )  # fmt: skip
    return Artifact(made, temporary)


def lower(
    program: Program,
    stage: str,
    target: str = "cpu",
    *,
    name: str = "model",
    passes: Inserted | None = None,
    watch: Watcher | None = None,
    blas: str | None = None,
) -> str:
    """The text of a program after a stage of the target; after the last one, assembly."""
    from fewbit.targets.cpu.cblas import find_blas
    from fewbit.targets.cpu.compilation import STAGES, Compilation
    from fewbit.targets.cpu.target import isa_of

    check_target(target)
    if stage not in STAGES:
        raise UsageError(f"there is no stage '{stage}'", hint=f"stages are {', '.join(STAGES)}")
    compilation = Compilation(program, name, isa_of(target), _named(passes), watch, find_blas(blas))
    with progress(f"Lowering {name}"):
        compilation.run(stage)
        return compilation.text(stage)


def check_target(target: str) -> None:
    if target.partition(":")[0] not in TARGETS:
        raise UsageError(f"there is no target '{target}'", hint=f"targets: {', '.join(TARGETS)}")
    from fewbit.targets.cpu.target import isa_of

    isa_of(target)


def name_of(model: Model) -> str:
    """What a model is called: the end of its path or class."""
    if isinstance(model, Program):
        return "model"
    if isinstance(model, str | Path):
        text = str(model)
        return Path(text.rpartition(":")[2] if ":" in text else text).stem or "model"
    return type(model).__name__.lower()


def _program(
    model: Model,
    recipe: RecipeLike | None,
    calibration: Calibration | None,
    example_inputs: Sequence[Any],
    input_shapes: Shapes | None,
    dynamic_shapes: Any,
) -> Program:
    from fewbit.frontends import import_model

    program = import_model(model, example_inputs, dynamic_shapes, input_shapes=input_shapes)
    if recipe is None:
        return program
    from fewbit.quant.quantize import quantize
    from fewbit.transforms.fold_batch_norm import fold_batch_norm

    return quantize(fold_batch_norm(program), recipe, calibration)


def _named(passes: Inserted | None) -> Inserted:
    """Passes of the caller's own, whose failures name them."""
    for stage, given in (passes or {}).items():
        if isinstance(given, str) or callable(given):
            raise UsageError(
                f"the passes after '{stage}' are one, not several",
                hint=f"put it into a list: {{'{stage}': [...]}}",
            )
    return {
        stage: [_reported(each) if callable(each) else each for each in given]
        for stage, given in (passes or {}).items()
    }


def _reported(function: Callable[[Any], None]) -> Callable[[Any], None]:
    name = getattr(function, "__name__", type(function).__name__)

    def run(module: Any) -> None:
        try:
            function(module)
        except Error as e:
            raise e.at(stage=name) from e.__cause__
        except Exception as e:
            what = f"the pass failed: {type(e).__name__}: {e}"
            raise PassError(what, place=Place(stage=name)) from e

    return run
