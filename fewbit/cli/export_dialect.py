"""`fewbit export-dialect NAME`: a dialect's definition for MLIR's own tools.

IRDL is loaded by `mlir-opt --irdl-file`; TableGen is for those who build MLIR in C++.
"""

from __future__ import annotations

from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewbit.errors import UsageError

if TYPE_CHECKING:
    from xdsl.ir import Dialect


class Format(Enum):
    """The languages in which a dialect can be defined."""

    IRDL = "irdl"
    TABLEGEN = "tablegen"


def export_dialect(
    name: Annotated[str, typer.Argument(help="The dialect: mico, graph, or one of a plug-in.")],
    format: Annotated[
        Format, typer.Option("--format", "-f", help="What the reader understands.")
    ] = Format.IRDL,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here, not on standard output.")
    ] = None,
) -> None:
    """Print the definition of a dialect as IRDL or TableGen."""
    from fewbit.base.files import replacing_file

    text = export(_find(name), format)
    if output is None:
        print(text, end="")
        return
    with replacing_file(output) as file:
        file.write(text.encode())


def export(dialect: Dialect, format: Format) -> str:
    if format is Format.IRDL:
        from fewbit.dialects.export.irdl import export_irdl

        return export_irdl(dialect)
    from fewbit.dialects.export.tablegen import export_tablegen

    return export_tablegen(dialect)


def _find(name: str) -> Dialect:
    from fewbit.ir.context import multiverse

    dialects = multiverse().all_dialects
    if name in dialects:
        return dialects[name]()
    close = get_close_matches(name, dialects, 1)
    hint = f"did you mean '{close[0]}'?" if close else f"known dialects: {', '.join(dialects)}"
    raise UsageError(f"there is no dialect '{name}'", hint=hint)
