"""The layer that an op of upstream's bindings came from, by the names in its location."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_mlir.ir import Location, OpView


def layer_of(op: OpView) -> str | None:
    """Return the first name in a location that is a module's path."""
    names = _names(op.operation.location)
    return next((name for name in names if re.fullmatch(r"[\w.]+", name)), None)


def layer_suffix(op: OpView) -> str:
    """Return an ending for the name of a function that an op becomes: that of its layer."""
    layer = layer_of(op)
    return "" if layer is None else "_" + re.sub(r"\W+", "_", layer)


def _names(location: Location) -> Iterator[str]:
    from torch_mlir import ir

    if isinstance(location, ir.NameLoc):
        yield location.name_str
        yield from _names(location.child_loc)
    elif isinstance(location, ir.CallSiteLoc):
        yield from _names(location.callee)
        yield from _names(location.caller)
    elif isinstance(location, ir.FusedLoc):
        for inner in location.locations:
            yield from _names(inner)
