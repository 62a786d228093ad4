"""What IREE's compiler says, as errors of ours.

It may print an error and still end with status 0, having left something out: a pipeline of passes
that it cannot read, for instance. So all that it prints is read, whatever the status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fewbit.errors import Error, ParseError, PassError, Place
from fewbit.targets.iree.source import FILE, Source

_LINE = re.compile(
    r"^(?:(?P<file>[^\n]*?):(?P<line>\d+)(?::(?P<column>\d+))?: |[\w.-]*lld: )?"
    r"(?:(?P<kind>error|warning): |(?P<shout>ERROR|iree-compile): )(?P<what>.*)$",
    re.MULTILINE,
)
_WHOLE_OP = re.compile(r"'([\w.]+)' op ")
ISSUES = "give the file that --dump-ir writes to the developers of IREE"


@dataclass(frozen=True)
class Message:
    kind: str
    what: str
    file: str | None
    line: int | None
    column: int | None
    excerpt: str | None
    """The line of the file and a caret below it, where IREE had the file."""


def read_messages(stderr: str) -> list[Message]:
    """Errors and warnings, without the notes on them."""
    lines = stderr.splitlines()
    found: list[Message] = []
    for number, text in enumerate(lines):
        match = _LINE.match(text)
        if match is None:
            continue
        caret = lines[number + 1 : number + 3]
        shown = len(caret) == 2 and caret[1].strip() == "^"
        found.append(
            Message(
                kind=match["kind"] or "error",
                what=match["what"].strip(),
                file=match["file"],
                line=int(match["line"]) if match["line"] else None,
                column=int(match["column"]) if match["column"] else None,
                excerpt="\n".join(caret) if shown else None,
            )
        )
    return found


def error_of(status: int, stderr: str, source: Source | None = None) -> Error | None:
    """The first error that the compiler printed, or that it ended without one; else None."""
    errors = [message for message in read_messages(stderr) if message.kind == "error"]
    if errors:
        return _as_error(errors[0], source)
    if status < 0 or "crash backtrace" in stderr or "Assertion" in stderr:
        return PassError("IREE's compiler crashed", place=Place(stage="iree-compile"), hint=ISSUES)
    if status:
        last = stderr.strip().splitlines()
        what = last[-1] if last else f"status {status}"
        return PassError(f"IREE's compiler failed: {what}", place=Place(stage="iree-compile"))
    return None


def _as_error(message: Message, source: Source | None) -> Error:
    op = _WHOLE_OP.search(message.what)
    if source is not None and message.file == FILE and message.line is not None:
        known = source.place(message.line)
        place = Place(
            file=known.file,
            line=known.line,
            column=known.column,
            layer=known.layer,
            op=op[1] if op else None,
            stage="iree-compile",
        )
        return PassError(f"IREE cannot compile this: {message.what}", place=place)
    if message.file in (None, "<unknown>", "MLIR Textual PassPipeline Parser", "-") or (
        not message.line
    ):
        return PassError(f"IREE reports: {message.what}", place=Place(stage="iree-compile"))
    place = Place(file=message.file, line=message.line, column=message.column)
    return ParseError(message.what, place=place, excerpt=message.excerpt)
