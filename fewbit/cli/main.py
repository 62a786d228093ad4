"""`fewbit VERB ...`: the table of verbs, and the options that all of them share.

Each verb is a function in a file of its own, or a group of subcommands, listed in `VERBS`. Its file
imports nothing heavy at the top (a test checks), so that `fewbit --help` answers at once. `-v`,
`-q`, `--debug` and `--version` are understood before and after the verb: the same option objects
are attached to both.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer
import typer.core
import typer.main
from typer.exceptions import TyperException

import fewbit
from fewbit.base import progress
from fewbit.base.garbage import THRESHOLDS
from fewbit.cli import (
    bench,
    compile,
    demo,
    doctor,
    export_dialect,
    inspect,
    quantize,
    reduce,
    search,
    tune,
)
from fewbit.cli import eval as eval_verb
from fewbit.cli import export as export_verb
from fewbit.cli import run as run_verb
from fewbit.cli.completion import WORDS, complete_in_bash, is_asked_by_bash
from fewbit.cli.guard import guarded
from fewbit.cli.modes import ModeGroup
from fewbit.errors import FewbitWarning, UsageError

VERBS: dict[str, Callable[..., object] | typer.Typer] = {
    "compile": compile.compile_model,
    "run": run_verb.run_program,
    "eval": eval_verb.evaluate,
    "bench": bench.bench,
    "quantize": quantize.quantize,
    "export": export_verb.export,
    "inspect": inspect.inspect,
    "search": search.search,
    "tune": tune.tune,
    "reduce": reduce.reduce,
    "demo": demo.demo,
    "doctor": doctor.doctor,
    "export-dialect": export_dialect.export_dialect,
}
"""Functions, or applications of typer where a verb has subcommands."""
COMMANDS: dict[str, type[typer.core.TyperCommand]] = {"compile": compile.CompileCommand}
"""Verbs whose command is of a class of its own."""

_SHARED = ("verbose", "quiet", "debug", "version")


def main() -> None:
    gc.set_threshold(*THRESHOLDS)
    sys.exit(guarded(run, sys.argv[1:]))


def run(argv: list[str]) -> int | None:
    progress.set_verbosity(progress.NORMAL)
    with warnings.catch_warnings():
        _say_warnings()
        return _run(argv)


def _say_warnings() -> None:
    """Show our own warnings as notes, each time; those of others stay as they are."""
    show = warnings.showwarning

    def say_ours(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
        if issubclass(category, FewbitWarning):
            progress.say(f"warning: {message}")
        else:
            show(message, category, *rest, **named)

    warnings.showwarning = say_ours
    warnings.simplefilter("always", FewbitWarning)


def _run(argv: list[str]) -> int | None:
    if is_asked_by_bash() and WORDS in os.environ:
        complete_in_bash(lambda: build_app()([], prog_name="fewbit", standalone_mode=False))
        return None
    try:
        status = build_app()(argv or ["--help"], prog_name="fewbit", standalone_mode=False)
    except TyperException as e:
        raise _usage_error(e) from e
    return status if isinstance(status, int) else None


def build_app() -> typer.core.TyperGroup:
    app = typer.Typer(
        help="Neural networks as mixed-precision programs, 1 to 8 bits a layer.",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name, verb in VERBS.items():
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, name=name)
        else:
            app.command(name, cls=COMMANDS.get(name))(verb)
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    shared = [option for option in group.params if option.name in _SHARED]
    # typer lists groups last; the help has all verbs in our order.
    group.commands = {name: group.commands[name] for name in VERBS}
    for command in group.commands.values():
        _share(command, shared)
    return group


def _share(command: Any, options: list[Any]) -> None:
    command.params.extend(options)
    if isinstance(command, ModeGroup):
        command.shared = options
        for each in command.commands.values():
            _share(each, options)


def _louder(count: int) -> None:
    progress.set_verbosity(progress.verbosity() + count)


def _quieter(quiet: bool) -> None:
    if quiet:
        progress.set_verbosity(progress.QUIET)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"fewbit {fewbit.__version__}")
        raise typer.Exit


def _options(
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            expose_value=False,
            callback=_louder,
            show_default=False,
            help="Say more; repeat for still more.",
        ),
    ] = 0,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            expose_value=False,
            callback=_quieter,
            help="Say nothing but results and errors.",
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", expose_value=False, help="Show the traceback of an error.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            expose_value=False,
            callback=_show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Declare the program's own options; their callbacks do the work (`guard` does --debug)."""


def _usage_error(e: TyperException) -> UsageError:
    context = getattr(e, "ctx", None)
    command: str = context.command_path if context is not None else "fewbit"
    return UsageError(e.format_message().rstrip("."), hint=f"see '{command} --help'")
