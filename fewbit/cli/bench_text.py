"""`fewbit bench text MODEL`: how fast a language model reads and decodes, beside llama.cpp.

MODEL is a checkpoint, or a program that was saved, quantized by GPTQ for example; llama.cpp then
needs a file of its own. Both read the same random tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewbit.cli.bench_options import Figures, parse_counts, write_figures
from fewbit.cli.bench_report import print_text_report
from fewbit.cli.calibration import CalibrationOptions
from fewbit.cli.options import Cache, Context, ModelName, OptionalRecipe, TargetText
from fewbit.errors import UsageError
from fewbit.language.export.weight_type import WeightType

if TYPE_CHECKING:
    from fewbit.bench.text_report import TextPlan
    from fewbit.language.checkpoint import Checkpoint
    from fewbit.program.program import Program

STEPS, PROMPTS = "32,512", "128"
NOTHING = "none"


def bench_text(
    model: ModelName,
    recipe: OptionalRecipe = None,
    target: TargetText = None,
    against: Annotated[
        str,
        typer.Option(metavar="TOOLS", help="Tools to compare with: llama.cpp; available; none."),
    ] = "available",
    steps: Annotated[
        str, typer.Option(metavar="N,...", help="Measure steps behind so many tokens; none.")
    ] = STEPS,
    prompts: Annotated[
        str, typer.Option(metavar="N,...", help="Measure prompts of so many tokens; none.")
    ] = PROMPTS,
    gguf: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What llama.cpp runs; MODEL, written for it, if not given."
        ),
    ] = None,
    type: Annotated[
        WeightType | None,
        typer.Option("--type", help="What is written for it; the nearest in bytes if not given."),
    ] = None,
    threads: Annotated[str, typer.Option(metavar="N,...", help="Numbers of threads.")] = "1",
    seconds: Annotated[
        float, typer.Option(min=0.01, help="How long to measure each tool, for each of its times.")
    ] = 2.0,
    context_length: Context = None,
    cache: Cache = None,
    as_json: Figures = None,
) -> None:
    """Measure steps and prompts of a language model beside llama.cpp."""
    from fewbit.bench.contest import check_threads
    from fewbit.bench.peers import parse_text_peers
    from fewbit.bench.text_report import TextPlan, measure_text
    from fewbit.targets.compile import check_target
    from fewbit.targets.registry import DEFAULT_TARGET

    target = target or DEFAULT_TARGET
    check_target(target, profile=True)  # counts the bytes that a step reads
    counts = parse_counts(threads)
    for count in counts:
        check_threads(count)
    plan = TextPlan(
        steps=_lengths(steps),
        prompts=_lengths(prompts),
        peers=tuple(parse_text_peers(against)),
        gguf=gguf,
        type=type,
        target=target,
        threads=counts,
        seconds=seconds,
    )
    if gguf is not None and not gguf.is_file():
        raise UsageError(f"there is no file '{gguf}'")
    checkpoint = _checkpoint(model)
    if checkpoint is None and gguf is None and plan.peers:
        raise UsageError(
            f"{model} is no checkpoint, so there is nothing to write for llama.cpp",
            hint="name its file by --gguf, or add --against none",
        )
    program = _import(model, recipe, cache, context_length, plan)
    report = measure_text(model, program, plan, checkpoint)
    write_figures(report.plain(), as_json)
    if as_json != "-":
        print_text_report(report)


def _lengths(text: str) -> tuple[int, ...]:
    return () if text == NOTHING else parse_counts(text, of="tokens")


def _checkpoint(model: str) -> Checkpoint | None:
    from fewbit.frontends.language import open_checkpoint
    from fewbit.frontends.language.frontend import Language

    path = Path(model)
    return open_checkpoint(path) if path.exists() and Language().reads(path) else None


def _import(
    model: str, recipe: str | None, cache: str | None, context: int | None, plan: TextPlan
) -> Program:
    from fewbit.base.progress import progress
    from fewbit.frontends import import_model
    from fewbit.language.text_files import SETTINGS, GenerationSettings
    from fewbit.targets.compile import choose_cache

    with progress(f"Importing {model}"):
        program = import_model(model, context=context, cache=choose_cache(recipe, cache))
    if SETTINGS not in program.files:
        raise UsageError(
            f"{model} is no language model that decodes", hint=f"fewbit bench model {model}"
        )
    kept = GenerationSettings.model_validate_json(program.files[SETTINGS]).context
    longest = max((*(length + 1 for length in plan.steps), *plan.prompts), default=1)
    if longest > kept:
        raise UsageError(
            f"{longest} tokens do not fit into the context, which holds {kept}",
            hint=f"add --context {longest}, or measure less: --steps, --prompts",
        )
    return CalibrationOptions().quantize(program, recipe)
