"""Source locations of ops, as the `Place` that errors show.

A location nests: a name (the module path `layers.0.mlp`) around a file position, several fused
after a rewrite, a call site. `place_of` takes the first file position and the first name in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    StringAttr,
)
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from fewbit.errors import Place


def file_location(file: str, line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


def named_location(name: str, inner: LocationAttr = UNKNOWN_LOC) -> NameLoc:
    """Wrap the position in a file in a location with a module path."""
    return NameLoc(StringAttr(name), inner)


def is_known(location: LocationAttr) -> bool:
    return location is not UNKNOWN_LOC and location != UNKNOWN_LOC


def forget_locations(root: Operation) -> None:
    """Drop the places of text that is no user's, so that what is inlined takes its call's place."""
    for op in root.walk():
        op.location = UNKNOWN_LOC


def place_of(op: Operation, stage: str | None = None) -> Place:
    """Return where `op` is, for an error message; in a file, at least the op around it."""
    name = next((p.desc.data for p in _flatten(op.location) if isinstance(p, NameLoc)), None)
    around: Operation | None = op
    file = None
    while around is not None and file is None:
        file = next((p for p in _flatten(around.location) if isinstance(p, FileLineColLoc)), None)
        around = around.parent_op()
    if file is None:
        return Place(op=op.name, layer=name, stage=stage)
    return Place(
        file=file.filename.data,
        line=file.line.data,
        column=file.column.data,
        op=op.name,
        layer=name,
        stage=stage,
    )


def _flatten(location: Attribute) -> Iterator[Attribute]:
    yield location
    if isinstance(location, NameLoc):
        yield from _flatten(location.location)
    elif isinstance(location, CallSiteLoc):
        yield from _flatten(location.callee)
        yield from _flatten(location.caller)
    elif isinstance(location, FusedLoc) and isa(location.locations, ArrayAttr[Attribute]):
        for inner in location.locations:
            yield from _flatten(inner)
