"""What all benchmarks of the command line share: options of the target, counts, and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fewbit.base.json_output import json_text
from fewbit.cli.target_options import TargetCommand
from fewbit.errors import UsageError

Figures = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write figures; - prints them only.")
]


class BenchCommand(TargetCommand):
    """A benchmark that takes the options of its target."""

    verb = "bench"


def parse_counts(text: str, of: str = "threads") -> tuple[int, ...]:
    """Return the numbers in `1,2`, each once."""
    try:
        counts = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1:
        raise UsageError(f"'{text}' is no list of numbers of {of}", hint="write 1 or 1,2")
    return counts


def write_figures(figures: dict[str, Any], to: str | None) -> None:
    """Write figures into a file, or print them; nothing where neither is asked for."""
    if to is None:
        return
    text = json_text(figures, indent=2) + "\n"
    if to == "-":
        print(text, end="")
        return
    from fewbit.base.files import replacing_file

    with replacing_file(Path(to)) as file:
        file.write(text.encode())
