"""`fewbit.compile`: from a program or a model to an artifact, for any target.

A target takes a program through stages. `lower` stops after one of them and gives its text;
`compile` goes to the end. Both run passes of the caller's own after the stages that they are
given for, and show the text of every stage to a watcher. Which targets there are, and what each of
them does, is in `targets/registry.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fewbit.base.files import PathLike
from fewbit.base.garbage import collect_rarely
from fewbit.base.progress import progress
from fewbit.errors import Error, PassError, Place, UsageError
from fewbit.program.program import Program
from fewbit.runtime import Artifact
from fewbit.targets import registry
from fewbit.targets.target import Inserted, Request, Target, Watcher

if TYPE_CHECKING:
    from fewbit.frontends import Model, Shapes
    from fewbit.language.config import Logits
    from fewbit.quant.cache_scheme import CacheScheme, CacheSchemeLike
    from fewbit.quant.calibration import Calibration
    from fewbit.quant.recipe import RecipeLike
    from fewbit.targets.placed.rules import Rules


@collect_rarely()
def compile(
    model: Model,
    target: str = registry.DEFAULT_TARGET,
    output: PathLike | None = None,
    *,
    name: str | None = None,
    recipe: RecipeLike | None = None,
    calibration: Calibration | None = None,
    example_inputs: Sequence[Any] = (),
    input_shapes: Shapes | None = None,
    dynamic_shapes: Any = None,
    context: int | None = None,
    cache: CacheSchemeLike | None = None,
    logits: Logits = "last",
    sequences: int = 1,
    passes: Inserted | None = None,
    watch: Watcher | None = None,
    integer_only: bool = False,
    strict: bool = False,
    place: Rules | None = None,
    **options: Any,
) -> Artifact:
    """Compile a program, a PyTorch module or what a text names; `art(x)` then runs it.

    `output` is the folder to write; without it, one that lasts as long as the artifact. A program
    is called after it. `passes` are run after the stages that they are given for: `{"linalg":
    ["my-pass"]}`. With a `recipe`, batch norms become part of layers before these are quantized;
    `integer_only` leaves no floats between layers of a static recipe. With `strict`, weights that
    stay float although the recipe does not ask for it are an error. `context` is how many tokens a
    language model can keep, and `cache` what their keys and values are kept as: what the recipe
    says, or f16 with one, and f32 without. It gives the `logits` of the last token or of all, and
    decodes so many `sequences` together; see docs/language-models.md.

    `place` puts modules of the model on other targets, by rules such as "layers.0=iree-cpu": each
    part is compiled by its own, and the artifact runs them by turns; see docs/placement.md. So it
    is for a program whose subgraphs are on devices that are targets.

    Other arguments are `options` of the target, which declares them (docs/compile.md lists all).
    One that it does not have, or of another kind, is refused before any work.
    """
    from fewbit.passes.quant.integer_only import integer_only as without_floats
    from fewbit.quant.recipe import Recipe
    from fewbit.quant.weights import float_weights, refuse_floats

    recipe = None if recipe is None else Recipe.of(recipe)
    name = name or (
        Path(output).name if isinstance(model, Program) and output is not None else name_of(model)
    )
    request = _make_request(target, place, options, name, passes, watch)
    chosen = registry.check(request)
    temporary = TemporaryDirectory(prefix="fewbit-") if output is None else None
    folder = Path(temporary.name) / name if temporary is not None else Path(output or "")
    if recipe is None and not strict and is_read_by(chosen, model):
        with progress(f"Compiling {name}"):
            return Artifact(chosen.compile_file(Path(str(model)), request, folder), temporary)
    with progress(f"Importing {name}"):
        program = _program(
            model,
            recipe,
            calibration,
            strict,
            example_inputs=example_inputs,
            input_shapes=input_shapes,
            dynamic_shapes=dynamic_shapes,
            context=context,
            cache=choose_cache(recipe, cache),
            logits=logits,
            sequences=sequences,
            steps=chosen.fixes_sizes,
        )
    if strict:
        refuse_floats(program)
    request, chosen = _follow_devices(program, request, options)
    request = replace(request, float_weights=float_weights(program), files=program.files)
    if integer_only:
        program = without_floats(program, strict=True, fixed_point=chosen.is_fixed_point(target))
    with progress(f"Compiling {name}"):
        return Artifact(chosen.compile(program, request, folder), temporary)


def lower(
    program: Program,
    stage: str,
    target: str = registry.DEFAULT_TARGET,
    *,
    name: str = "model",
    passes: Inserted | None = None,
    watch: Watcher | None = None,
    place: Rules | None = None,
    **options: Any,
) -> str:
    """Return a program's text after a stage of the target; after the last of `cpu`, assembly."""
    request = _make_request(target, place, options, name, passes, watch)
    registry.check(request).check_stage(stage)
    request, chosen = _follow_devices(program, request, options)
    with progress(f"Lowering {name}"):
        return chosen.lower(program, stage, request)


def is_read_by(target: Target, model: object) -> bool:
    """Return whether a model is a file that the target's own compiler takes as it is."""
    return isinstance(model, str | Path) and target.reads(Path(str(model)))


def check_target(target: str, *, place: Rules | None = None, **options: Any) -> Target:
    """Return the target of a name or placement, which takes these options."""
    return registry.check(_make_request(target, place, options))


def _make_request(
    target: str,
    place: Rules | None,
    options: Mapping[str, Any],
    name: str = "model",
    passes: Inserted | None = None,
    watch: Watcher | None = None,
) -> Request:
    request = Request(target, name, _name_passes(passes), watch)
    if place is None:
        return replace(request, options=registry.make_options(target, options))
    from fewbit.targets.placed.rules import parse_rules
    from fewbit.targets.placed.target import place_request

    return place_request(request, parse_rules(place), options)


def _follow_devices(
    program: Program, request: Request, options: Mapping[str, Any]
) -> tuple[Request, Target]:
    """Return the request and its target; both for a placement, if the text has other devices."""
    from fewbit.targets.placed.target import devices_in, place_request

    chosen = registry.find_target(request.target)
    if request.target == registry.COMPOSED or chosen.joins_host:
        return request, chosen
    devices = set(devices_in(program.module).values())
    if not devices or devices == {request.target} == {registry.DEFAULT_TARGET}:
        return request, chosen
    placed = place_request(request, (), options)
    return placed, registry.check(placed)


def name_of(model: Model) -> str:
    """Return what a model is called: the end of its path or class."""
    if isinstance(model, Program):
        return "model"
    if isinstance(model, str | Path):
        from fewbit.frontends.call_text import is_call, name_of_call

        text = str(model)
        if is_call(text):
            return name_of_call(text)
        return Path(text.rpartition(":")[2] if ":" in text else text).stem or "model"
    return type(model).__name__.lower()


def choose_cache(recipe: RecipeLike | None, asked: CacheSchemeLike | None) -> CacheScheme:
    """Return what a language model keeps keys and values as: f32, unless a recipe rounds anyway."""
    from fewbit.quant.cache_scheme import F16, F32, CacheScheme
    from fewbit.quant.recipe import Recipe

    said = None if recipe is None else Recipe.of(recipe).cache
    given = None if asked is None else CacheScheme.of(asked)
    if said is not None and given is not None and said != given:
        raise UsageError(
            f"the recipe keeps keys and values as {said}, and the option as {given}",
            hint="give one of them",
        )
    return given or said or (F32 if recipe is None else F16)


def _program(
    model: Model,
    recipe: RecipeLike | None,
    calibration: Calibration | None,
    strict: bool,
    **given: Any,
) -> Program:
    from fewbit.frontends import import_model

    program = import_model(model, **given)
    if recipe is None:
        return program
    from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
    from fewbit.quant.quantize import quantize

    return quantize(fold_batch_norm(program), recipe, calibration, strict=strict)


def _name_passes(passes: Inserted | None) -> Inserted:
    """Return passes of the caller's own, whose failures name them."""
    for stage, given in (passes or {}).items():
        if isinstance(given, str) or callable(given):
            raise UsageError(
                f"the passes after '{stage}' are one, not several",
                hint=f"put it into a list: {{'{stage}': [...]}}",
            )
    return {
        stage: [_with_report(each) if callable(each) else each for each in given]
        for stage, given in (passes or {}).items()
    }


def _with_report(function: Callable[[Any], None]) -> Callable[[Any], None]:
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
