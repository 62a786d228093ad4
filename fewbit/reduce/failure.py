"""How a model fails, and whether another one fails in the same way.

Messages name tensors and sizes, which differ between a model and a part of it. So two failures are
alike if their kinds are, and their messages but for names in quotes and numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["refused", "internal error", "wrong", "crash", "timeout"]

_NAMES = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|%?[\w./\[\]-]*\d[\w./\[\]-]*")
_LONGEST_PATTERN = 160


@dataclass(frozen=True)
class Failure:
    kind: Kind
    what: str
    """The message; of a wrong result, which of them is wrong, beside which."""

    def is_like(self, other: Failure | None) -> bool:
        """Return whether the other failure is one of the same kind, for the same reason."""
        if other is None or self.kind != other.kind:
            return False
        return _pattern(self.what) == _pattern(other.what)

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def _pattern(message: str) -> str:
    """Return the first line without names and numbers."""
    lines = message.strip().splitlines() or [""]
    return _NAMES.sub("_", lines[0])[:_LONGEST_PATTERN]
