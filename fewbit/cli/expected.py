"""`--verify-diagnostics`: the errors a file says it should cause, against those it did.

A comment `// expected-error {{some words}}` stands on the line of the error, or points elsewhere:
`@+2` and `@-1` count lines, `@below` and `@above` are the nearest lines without such a comment,
and `@unknown` is an error without a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fewbit.errors import Error, Place, UsageError

_COMMENT = re.compile(
    r"expected-(?P<kind>\w+(?:-re)?) *(?:@(?P<where>[+-]\d+|above|below|unknown))? *"
    r"\{\{(?P<words>.*?)\}\}"
)


@dataclass(frozen=True)
class Expectation:
    """An error that a comment in the file announces."""

    words: str
    line: int | None
    """The line on which the error is due; None for an error without one."""
    written: int
    """The line of the comment itself."""

    def meets(self, error: Error) -> bool:
        return error.place.line == self.line and self.words in error.what


def read_expectations(text: str, file: str, first_line: int = 1) -> list[Expectation]:
    lines = text.split("\n")
    return [
        Expectation(match["words"], _target(match, index, lines, first_line), index + first_line)
        for index, line in enumerate(lines)
        for match in _COMMENT.finditer(line)
        if _is_error(match, Place(file=file, line=index + first_line))
    ]


def _is_error(match: re.Match[str], place: Place) -> bool:
    if match["kind"] != "error":
        raise UsageError(
            f"expected-{match['kind']} is not understood",
            place=place,
            hint="write expected-error: fewbit reports nothing but errors",
        )
    return True


def _target(match: re.Match[str], index: int, lines: list[str], first_line: int) -> int | None:
    where = match["where"]
    if where == "unknown":
        return None
    if where in ("above", "below"):
        step = -1 if where == "above" else 1
        index += step
        while 0 <= index < len(lines) and _COMMENT.search(lines[index]):
            index += step
    elif where:
        index += int(where)
    return index + first_line


def find_unmet(expectations: list[Expectation], errors: list[Error], file: str) -> list[Error]:
    """Return complaints: expected errors that did not come, and others that did."""
    complaints: list[Error] = []
    open_ones = list(expectations)
    for error in errors:
        met = next((each for each in open_ones if each.meets(error)), None)
        if met is None:
            complaints.append(_unexpected(error))
        else:
            open_ones.remove(met)
    complaints.extend(
        Error(
            f"expected an error with '{each.words}' {_on(each.line)}, but there was none",
            place=Place(file=file, line=each.written),
        )
        for each in open_ones
    )
    return complaints


def _on(line: int | None) -> str:
    return "without a line" if line is None else f"on line {line}"


def _unexpected(error: Error) -> Error:
    return Error(
        f"unexpected {error.kind}: {error.what}",
        place=error.place,
        excerpt=error.excerpt,
        hint=error.hint,
    )
