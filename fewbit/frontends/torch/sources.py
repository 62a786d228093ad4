"""Where in the user's code a node of the graph comes from."""

from __future__ import annotations

import os
import re

import torch
from torch.fx import Node
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr

from fewbit.frontends.torch.hierarchy import layer_of
from fewbit.ir.locations import file_location, named_location

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_HERE = os.path.dirname(os.path.dirname(__file__)) + os.sep
"""All front ends: what they run is not the user's code."""
_TORCH = os.path.dirname(torch.__file__) + os.sep


def location_of(node: Node) -> LocationAttr:
    """The module path around the line of the user's code."""
    line = _user_line(node)
    inner: LocationAttr = UNKNOWN_LOC if line is None else file_location(*line, 1)
    layer = layer_of(node)
    return named_location(layer, inner) if layer else inner


def source_of(node: Node) -> str:
    """The same for a message."""
    line, layer = _user_line(node), layer_of(node)
    place = f"{line[0]}:{line[1]}" if line else "an unknown line"
    return f"{place}, in {layer}" if layer else place


def _user_line(node: Node) -> tuple[str, int] | None:
    """The innermost line of the trace outside of torch; a torch module's line if there is none."""
    frames = [
        (m["file"], int(m["line"])) for m in _FRAME.finditer(node.meta.get("stack_trace") or "")
    ]
    ours = [frame for frame in frames if not frame[0].startswith((_TORCH, "torch/", _HERE))]
    theirs = [frame for frame in frames if not frame[0].startswith(_HERE)]
    chosen = (ours or theirs or [None])[-1]
    if chosen is None:
        return None
    file, line = chosen
    shown = os.path.relpath(file) if file.startswith(os.getcwd() + os.sep) else file
    return shown, line
