"""`fewbit bench model|text|...`: how fast a model is, beside other tools and the machine's bounds.

`fewbit bench MODEL` is `fewbit bench model MODEL`. Single ops can be measured on some targets: each
benchmark that a target has is a subcommand.

Each tool has a process of its own, and they take turns. What is missing or misspelt is found before
anything is measured; a tool that fails on the model is shown with its reason, without a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from fewbit.cli.bench_options import BenchCommand, Figures, parse_counts, write_figures
from fewbit.cli.bench_report import print_report
from fewbit.cli.bench_text import bench_text
from fewbit.cli.calibration import CalibrationOptions
from fewbit.cli.modes import ModeGroup
from fewbit.cli.options import (
    CalibrateData,
    InputShape,
    KeepBatchNorm,
    ModelName,
    OptionalMethod,
    OptionalRecipe,
    Place,
    Samples,
    Strict,
    TargetText,
    parse_shapes,
    place_option,
)
from fewbit.cli.target_options import make_command, target_options
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.targets.bench import Bench

DEFAULT_PEERS = "torch"


class BenchGroup(ModeGroup):
    """`fewbit bench`, whose subcommands also come from targets."""

    default = "model"

    def later(self) -> Sequence[str]:
        return list(_benches())

    def make(self, name: str) -> typer.core.TyperCommand:
        return _command(name)


bench = typer.Typer(
    cls=BenchGroup,
    help="Measure a model beside other tools ('bench MODEL'), or one op in every way.",
)
bench.command("text")(bench_text)


@bench.command("model", cls=BenchCommand)
def bench_model(
    context: typer.Context,
    model: ModelName,
    recipe: OptionalRecipe = None,
    target: TargetText = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="TOOLS",
            help="Tools to compare with: torch,onnxruntime,openvino,iree; available; none."
            " torch if not given.",
        ),
    ] = None,
    threads: Annotated[str, typer.Option(metavar="N,...", help="Numbers of threads.")] = "1",
    batch: Annotated[int | None, typer.Option(min=1, help="The first size of all inputs.")] = None,
    seconds: Annotated[
        float, typer.Option(min=0.01, help="How long to measure each tool, for each of --threads.")
    ] = 2.0,
    as_json: Figures = None,
    layers: Annotated[
        bool, typer.Option("--layers/--no-layers", help="Show where the time goes.")
    ] = True,
    input_shape: InputShape = None,
    calibrate: CalibrateData = None,
    calibration_method: OptionalMethod = None,
    samples: Samples = None,
    place: Place = None,
    keep_batch_norm: KeepBatchNorm = False,
    strict: Strict = False,
) -> None:
    """Measure a model beside other tools, and show the share of each layer."""
    from fewbit.bench.contest import check_threads
    from fewbit.bench.peers import NONE, parse_peers, refuse_missing
    from fewbit.targets.compile import check_target
    from fewbit.targets.registry import DEFAULT_TARGET

    target = target or DEFAULT_TARGET
    given = target_options(context) | place_option(place)
    check_target(target, **given)
    counts = parse_counts(threads)
    for count in counts:
        check_threads(count)
    peers = parse_peers(against or DEFAULT_PEERS, recipe is not None)

    from fewbit.base.progress import progress
    from fewbit.bench.report import Plan, measure
    from fewbit.bench.subject import OUR_SAMPLES, find_subject

    with progress(f"Importing {model}"):
        subject = find_subject(model, parse_shapes(input_shape), batch)
    if subject.module is None and peers:
        if against is not None and against != "available":
            raise UsageError(
                "other tools run PyTorch models, and this is a program",
                hint=f"leave out --against, or name {NONE}",
            )
        peers = []
    options = CalibrationOptions(calibrate, calibration_method, samples, keep_batch_norm, strict)
    program = options.quantize(subject.program, recipe, subject.random_samples(OUR_SAMPLES))
    if program.recipe is not None:
        refuse_missing(peers, True)
    plan = Plan(program.recipe, target, tuple(peers), counts, seconds, layers, given)
    inputs = options.inputs(subject.program) if options.has_samples else None
    report = measure(subject, program, plan, inputs)
    write_figures(report.plain(), as_json)
    if as_json != "-":
        print_report(report)


def _benches() -> dict[str, dict[str, Bench]]:
    """Return what can be measured by itself, and on which targets."""
    from fewbit.targets.registry import all_targets

    benches: dict[str, dict[str, Bench]] = {}
    for target in all_targets():
        for each in target.benches:
            benches.setdefault(each.name, {})[target.name] = each
    return benches


def _command(name: str) -> typer.core.TyperCommand:
    """Return a benchmark's subcommand, with the options of the first target that has it."""
    from fewbit.base.plugins import load_from
    from fewbit.targets.registry import find_target

    by_target = _benches()[name]
    first = next(iter(by_target))

    def run(target: TargetText = None, as_json: Figures = None, **given: Any) -> None:
        kind = find_target(target or first).name
        if kind not in by_target:
            hint = f"it is measured on {', '.join(by_target)}"
            raise UsageError(f"{name} is not measured on '{target}'", hint=hint)
        each = by_target[kind]
        options = each.options.check(given, name)
        load_from(each.place, "benchmark")(**vars(options), as_json=as_json)

    declared = ((option, None) for option in by_target[first].options.declared())
    return make_command(name, by_target[first].help, run, declared)
