"""`fewbit tune MODEL --pass NAME`: what a pass can do to a model, each of it compiled and timed.

A pass has a name that `fewbit-opt` knows, of fewbit's or of a plug-in's, or is a class in a file,
`file.py:Class`. What it can do is for the pass to say: the search asks for its `schedule_space`.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from xdsl.passes import ModulePass

from fewbit.base.json_output import print_json
from fewbit.cli.insert_pass import load_file
from fewbit.errors import Place, UsageError
from fewbit.ir.context import multiverse
from fewbit.program.program import Program
from fewbit.tune.passes import Choice, tune_passes


def find_passes(names: Sequence[str]) -> list[type[ModulePass]]:
    return [_find(name) for name in names]


def _find(name: str) -> type[ModulePass]:
    file, colon, kind = name.rpartition(":")
    if colon and file.endswith(".py"):
        pass_class: Any = getattr(load_file(Path(file)), kind, None)
        if isinstance(pass_class, type) and issubclass(pass_class, ModulePass):
            return pass_class
        raise UsageError(f"there is no pass '{kind}' in the file", place=Place(file=file))
    known = multiverse().all_passes
    if name in known:
        return known[name]()
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "'fewbit-opt --list-passes' lists them"
    raise UsageError(f"there is no pass '{name}'", hint=hint)


def search_passes(
    program: Program, title: str, names: Sequence[str], target: str, *, as_json: bool
) -> None:
    """Time all that the passes can do, and print it, the fastest first."""
    choices = tune_passes(program, find_passes(names), target=target)
    if as_json:
        rows = [
            {"pass": c.name, "ratio": c.ratio, "faster": c.faster, "reason": c.reason}
            for c in choices
        ]
        print_json({"target": target, "choices": rows})
        return
    print_choices(choices, title, target)


def print_choices(found: Sequence[Choice], title: str, target: str) -> None:
    from rich.table import Table

    from fewbit.base.console import wide_console

    table = Table(title=f"{title}, {target}, one thread", title_justify="left")
    table.add_column("pass", overflow="fold")
    table.add_column("gain", justify="right")
    table.add_column("", overflow="fold")
    for choice in found:
        gain = "" if choice.ratio is None else f"{1 / choice.ratio:.2f}x"
        words = "faster" if choice.faster else "not faster beyond the noise"
        table.add_row(choice.name, gain, choice.reason or words)
    wide_console().print(table)
    best = next((choice for choice in found if choice.faster), None)
    if best is None:
        print("nothing that the passes can do makes the program faster")
    else:
        print(f"fewbit compile {title} -t {target} --insert-pass 'mico:{best.name}'")
