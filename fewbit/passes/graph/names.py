"""Patterns that select parts of a model by their dotted names.

A plain name selects that module and everything below it: `model.layers.1` selects
`model.layers.1.mlp` too, and not `model.layers.10`. After `re:` stands a regular expression that
must match such a module's whole name. A pattern that selects nothing is a mistake, never a no-op.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from fewbit.errors import Place, UsageError

REGEX_PREFIX = "re:"


@dataclass(frozen=True)
class NamePattern:
    text: str
    regex: re.Pattern[str]

    @staticmethod
    def parse(text: str) -> NamePattern:
        source = text.removeprefix(REGEX_PREFIX)
        if not source:
            raise UsageError("an empty name pattern selects nothing")
        if source is text:
            return NamePattern(text, re.compile(re.escape(text)))
        try:
            return NamePattern(text, re.compile(source))
        except re.error as e:
            raise UsageError(f"'{source}' is not a regular expression: {e}") from e

    def scope(self, name: str) -> str | None:
        """Return the outermost module around or at `name` that this selects."""
        return next((p for p in _prefixes(name) if self.regex.fullmatch(p)), None)

    def selects(self, name: str) -> bool:
        return self.scope(name) is not None

    def require_match(self, names: Iterable[str], stage: str) -> None:
        """Raise `UsageError` unless this selects one of `names`."""
        names = list(names)
        if any(self.selects(name) for name in names):
            return
        similar = get_close_matches(self.text.removeprefix(REGEX_PREFIX), names, n=3)
        shown = similar or names[:3]
        raise UsageError(
            f"'{self.text}' matches no name in the module",
            place=Place(stage=stage),
            hint=f"names are, for example: {', '.join(shown)}" if shown else "there are no names",
        )


def _prefixes(name: str) -> Iterator[str]:
    """Yield `a`, `a.b` and `a.b.c` for `a.b.c`."""
    end = name.find(".")
    while end >= 0:
        yield name[:end]
        end = name.find(".", end + 1)
    yield name
