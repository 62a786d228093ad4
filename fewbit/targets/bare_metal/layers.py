"""The layers that functions of a program are of, by their names."""

from __future__ import annotations

import re


def layer_of(function: str) -> str:
    """Return the layer that a function is of: `program.entry_003_conv1`, `kernel.000_conv1`."""
    return re.sub(r"^(kernel\.|program\.entry_)\d+_?", "", function) or "other"
