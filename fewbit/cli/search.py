"""`fewbit search run|sensitivity|show`: a budget in, the best recipe out.

`fewbit search MODEL` is `fewbit search run MODEL`, and `--sensitivity` may stand for the
subcommand. A search begins with what can be reached of every cost that has a budget, goes on where
it was stopped, and leaves recipes, table and plot in its folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from fewbit.base.json_output import print_json
from fewbit.cli.completion import complete_data, complete_models, complete_searchers
from fewbit.cli.modes import ModeGroup, OldFlag
from fewbit.cli.options import AsJson, InputShape, TargetText, parse_shapes
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.search.load import Asked
    from fewbit.search.plan import SpaceOptions
    from fewbit.search.run import Search

SPACE = "What layers may have"
"""The panel of the help with options of the space."""
RUNS = Path("runs")
QAT_EPOCHS = 2
ARTIFACT = "artifact"
"""The folder of what `--compile` makes, in that of the run."""

SearchModel = Annotated[
    str,
    typer.Argument(
        help="The float model: zoo:NAME, file.py:factory, model.onnx, model.gguf, ...",
        autocompletion=complete_models,
    ),
]
Data = Annotated[
    str,
    typer.Option(
        "--data",
        metavar="DATA",
        help="mnist, fashion-mnist, file.py:loader, text:FILE (language models), or none.",
        autocompletion=complete_data,
    ),
]
ObjectiveName = Annotated[
    str | None,
    typer.Option(
        "--objective",
        help="accuracy, loss, kl, agreement, top5, perplexity, sqnr, or file.py:function; what the "
        "data allows if not given.",
    ),
]
Samples = Annotated[
    int | None,
    typer.Option("--samples", min=1, help="Examples to choose by; up to 800, or 16 of a text."),
]
Train = Annotated[
    int, typer.Option("--train", min=0, metavar="EPOCHS", help="Train the model on the data first.")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="The folder of the run; runs/NAME if not given."),
]
Seed = Annotated[int, typer.Option("--seed", help="What all that is random follows from.")]
Workers = Annotated[
    str,
    typer.Option(
        "--workers",
        metavar="N|ray://...",
        help="Candidates that are evaluated at a time; or the Ray cluster that evaluates them: "
        "ray://local (started here), ray://auto, ray://HOST:10001.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="WIDTHS",
        help="Widths of weights, 2,3,4,8; 1.58 is ternary.",
        rich_help_panel=SPACE,
    ),
]
Acts = Annotated[
    str | None,
    typer.Option(
        "--acts",
        metavar="WIDTHS",
        help="Widths of activations; 8 if no budget depends on them.",
        rich_help_panel=SPACE,
    ),
]
Rules = Annotated[
    str,
    typer.Option(
        "--rules", help="What scales are taken from: max, mean, mse.", rich_help_panel=SPACE
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="SIZES",
        help="Also scales for groups of so many weights: 32,128.",
        rich_help_panel=SPACE,
    ),
]
ActScales = Annotated[
    str,
    typer.Option(
        "--act-scales",
        help="When scales of activations are taken: dynamic, static (from the data), or both.",
        metavar="dynamic|static|dynamic,static",
        rich_help_panel=SPACE,
    ),
]
Schemes = Annotated[
    str | None,
    typer.Option(
        "--schemes",
        metavar="SCHEMES",
        help="These and no others, in place of the above: w4a8g32-f16,w6a8g32-f16,w8a8h64.",
        rich_help_panel=SPACE,
    ),
]
Tie = Annotated[
    str,
    typer.Option(
        "--tie",
        metavar="none|block|PATTERNS",
        help="Layers that get the same scheme: those of a block, or of a pattern.",
        rich_help_panel=SPACE,
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="NAME=SCHEME",
        help="A scheme that layers keep: head=w8a8, re:.*attn=fp. Repeatable.",
        rich_help_panel=SPACE,
    ),
]
FreeEnds = Annotated[
    bool,
    typer.Option(
        "--free-ends",
        help="Search the first and last layer, too; they keep 8 bits otherwise.",
        rich_help_panel=SPACE,
    ),
]


class SearchGroup(ModeGroup):
    """`fewbit search`."""

    default = "run"
    old_flags: ClassVar[Mapping[str, OldFlag]] = {"--sensitivity": OldFlag("sensitivity")}


search = typer.Typer(
    cls=SearchGroup,
    help="Search for the best bits of every layer within a budget; 'search MODEL' does it.",
)


@search.command("run")
def run(
    model: SearchModel,
    data: Data = "none",
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget",
            "-b",
            metavar="COST=LIMIT",
            help="size=0.25x (of 8 bits), size=20kB, size=w3a8, cycles=0.6x, memory, energy, bops, "
            "cbops, latency. Repeatable.",
        ),
    ] = None,
    target: TargetText = None,
    objective: ObjectiveName = None,
    searcher: Annotated[
        str,
        typer.Option(
            "--searcher",
            help="auto, random, evolution, mico, gp, tpe, nsga2, gradient-lp or kl-lp.",
            autocompletion=complete_searchers,
        ),
    ] = "auto",
    trials: Annotated[int, typer.Option("--trials", min=1, help="Candidates to evaluate.")] = 60,
    seed: Seed = 0,
    workers: Workers = "1",
    qat: Annotated[
        bool, typer.Option("--qat", help="Train each candidate shortly before it is measured.")
    ] = False,
    train: Train = 0,
    measured: Annotated[
        bool,
        typer.Option(
            "--measured",
            help="Measure cycles (on the target's simulator) or latency (on this CPU), and do not "
            "model them.",
        ),
    ] = False,
    samples: Samples = None,
    output: Output = None,
    compile: Annotated[
        bool, typer.Option("--compile", help="Compile the best one, into the folder of the run.")
    ] = False,
    input_shape: InputShape = None,
    as_json: AsJson = False,
    weights: Weights = None,
    acts: Acts = None,
    rules: Rules = "max,mse",
    groups: Groups = None,
    act_scales: ActScales = "dynamic",
    schemes: Schemes = None,
    tie: Tie = "none",
    keep: Keep = None,
    free_ends: FreeEnds = False,
) -> None:
    """Search for the best scheme of every layer within a budget; Ctrl-C ends with what is found."""
    from fewbit.cli.search_report import print_ranges, print_result
    from fewbit.search.budget import read_budgets
    from fewbit.search.result import plain
    from fewbit.search.run import Settings, open_search
    from fewbit.targets.registry import DEFAULT_TARGET

    settings = Settings(
        name=model,
        target=target or DEFAULT_TARGET,
        budgets=tuple(read_budgets(budget or [])),
        objective=objective,
        searcher=searcher,
        trials=trials,
        seed=seed,
        workers=workers,
        qat=QAT_EPOCHS if qat else 0,
        measured=measured,
        space=_space(weights, acts, rules, groups, act_scales, schemes, tie, keep, free_ends),
    )
    folder = output or RUNS / _folder_name(model)
    asked = _asked(model, data, input_shape, samples, train, folder)
    with open_search(asked, settings, folder) as made:
        if not as_json:
            print_ranges(made)
        result = made.run()
        compiled = _compile(made, model) if compile and result.best is not None else None
    if as_json:
        print_json({**plain(result), "folder": str(folder), "artifact": compiled})
        return
    print_result(result, folder, model, compiled)
    if made.interrupted:
        raise typer.Exit(130)


@search.command("sensitivity")
def sensitivity(
    model: SearchModel,
    data: Data = "none",
    target: TargetText = None,
    objective: ObjectiveName = None,
    workers: Workers = "1",
    train: Train = 0,
    samples: Samples = None,
    output: Output = None,
    input_shape: InputShape = None,
    as_json: AsJson = False,
    weights: Weights = None,
    acts: Acts = None,
    rules: Rules = "max,mse",
    groups: Groups = None,
    act_scales: ActScales = "dynamic",
    schemes: Schemes = None,
    tie: Tie = "none",
    keep: Keep = None,
) -> None:
    """Measure what each layer loses at each width, alone: which layer broke the accuracy?"""
    from fewbit.cli.search_report import plain_sensitivity, print_sensitivity
    from fewbit.search.run import Settings, open_search
    from fewbit.search.sensitivity import measure_sensitivity
    from fewbit.targets.registry import DEFAULT_TARGET

    settings = Settings(
        name=model,
        target=target or DEFAULT_TARGET,
        objective=objective,
        workers=workers,
        space=_space(weights, acts, rules, groups, act_scales, schemes, tie, keep, free_ends=True),
    )
    folder = output or RUNS / _folder_name(model)
    asked = _asked(model, data, input_shape, samples, train, folder)
    with open_search(asked, settings, folder) as made:
        found = measure_sensitivity(made.space, made.probe)
        if as_json:
            print_json(plain_sensitivity(found, model))
        else:
            print_sensitivity(found, made, folder)


@search.command("show")
def show(
    folder: Annotated[Path, typer.Argument(help="What a search wrote.")], as_json: AsJson = False
) -> None:
    """Show what a search found, also one that was stopped or is still running."""
    from fewbit.cli.search_report import print_found
    from fewbit.search.result import Result, plain

    result = Result.load(folder)
    print_json(plain(result)) if as_json else print_found(result, folder)


def _asked(
    model: str,
    data: str,
    input_shape: list[str] | None,
    samples: int | None,
    train: int,
    folder: Path,
) -> Asked:
    from fewbit.search.load import Asked

    return Asked(
        model,
        data,
        input_shapes=parse_shapes(input_shape),
        samples=samples,
        train=train,
        folder=folder,
    )


def _space(
    weights: str | None,
    acts: str | None,
    rules: str,
    groups: str | None,
    act_scales: str,
    schemes: str | None,
    tie: str,
    keep: list[str] | None,
    free_ends: bool,
) -> SpaceOptions:
    from fewbit.search.plan import SpaceOptions

    return SpaceOptions(
        weights=None if weights is None else tuple(_words(weights)),
        acts=None if acts is None else tuple(_words(acts)),
        rules=tuple(_words(rules)),
        groups=tuple(_whole(word) for word in _words(groups or "")),
        act_scales=tuple(_words(act_scales)),
        schemes=tuple(_words(schemes or "")),
        tie=tie,
        keep=dict(_read_kept(text) for text in keep or []),
        free_ends=free_ends,
    )


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _whole(word: str) -> int:
    if not word.isdigit() or not int(word):
        raise UsageError(f"'{word}' is no size of a group", hint="write --groups 32,128")
    return int(word)


def _read_kept(text: str) -> tuple[str, Any]:
    name, equals, scheme = text.rpartition("=")
    if not equals or not name:
        raise UsageError(f"'{text}' is not NAME=SCHEME", hint="write --keep head=w8a8")
    return name, scheme


def _folder_name(model: str) -> str:
    from fewbit.targets.compile import name_of

    return name_of(model)


def _compile(made: Search, model: str) -> str:
    from fewbit.targets.compile import compile

    folder = made.folder / ARTIFACT
    compile(made.best_program(), made.settings.target, folder, name=_folder_name(model))
    return str(folder)
