"""What IREE's compiler says, as errors of ours.

It may print an error and still end with status 0, having left something out: a pipeline of passes
that it cannot read, for instance. So all that it prints is read, whatever the status.

The text of a program is in a temporary file, which is gone when the error is read. So a place in it
becomes that of the op which stands there, and a symbol that the linker misses that of the op which
calls it. Only of a file of the user's own are lines shown as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from fewbit.errors import Error, ParseError, PassError, Place, UnsupportedError
from fewbit.targets.iree.source import FILE, FUNCTIONS, Source

_LINE = re.compile(
    r"^(?:(?P<file>[^\n]*?):(?P<line>\d+)(?::(?P<column>\d+))?: |[\w.-]*lld: )?"
    r"(?:(?P<kind>error|warning): |(?P<shout>ERROR|iree-compile): )(?P<what>.*)$",
    re.MULTILINE,
)
_OP = re.compile(r"'(\w+\.[\w.]+)' op |operation '(\w+\.[\w.]+)'")
_PRINTED = re.compile(
    r'(?:%[\w#:]+ = )?"[\w.]+"\(.*\)(?: <\{.*\}>)? : (\(.*\) -> .+?)(?: loc\(.*\))?$'
)
"""An op that IREE prints at the end of a message; its types say what the op does not."""
_MISSING = re.compile(r"undefined symbol: (\w+)")
WIDE_MATH = "IREE has few functions of f64: compute it in f32, or compile for the target cpu"
ISSUES = "give the file that --dump-ir writes to the developers of IREE"


@dataclass(frozen=True)
class Message:
    """A diagnostic of IREE's compiler."""

    kind: str
    what: str
    file: str | None
    line: int | None
    column: int | None
    excerpt: str | None
    """The line of the file and a caret below it, where IREE had the file."""


def read_messages(stderr: str) -> list[Message]:
    """Return errors and warnings, without the notes on them."""
    lines = stderr.splitlines()
    messages: list[Message] = []
    for number, text in enumerate(lines):
        match = _LINE.match(text)
        if match is None:
            continue
        caret = lines[number + 1 : number + 3]
        shown = len(caret) == 2 and caret[1].strip() == "^"
        messages.append(
            Message(
                kind=match["kind"] or "error",
                what=match["what"].strip(),
                file=match["file"],
                line=int(match["line"]) if match["line"] else None,
                column=int(match["column"]) if match["column"] else None,
                excerpt="\n".join(caret) if shown else None,
            )
        )
    return messages


def error_of(status: int, stderr: str, source: Source | None = None) -> Error | None:
    """Return the first error that the compiler printed, or that it ended without one; else None."""
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
    what, name = _PRINTED.sub(r"\1", message.what), _OP.search(message.what)
    op = (name[1] or name[2]) if name else None
    if source is not None and message.file == FILE and message.line is not None:
        return _in_program(f"IREE cannot compile this: {what}", source.place(message.line), op)
    missing = _MISSING.search(what)
    if source is not None and missing:
        caller = source.place_of_function(missing[1])
        return _in_program(f"IREE cannot link this: {what}", caller, caller.op)
    if source is not None and message.line is not None:
        known = source.place_at(message.line)
        return _in_program(f"IREE cannot read this: {what}", known, op or known.op)
    if message.file in (None, "<unknown>", "MLIR Textual PassPipeline Parser", "-") or (
        not message.line
    ):
        return PassError(f"IREE reports: {what}", place=Place(stage="iree-compile"))
    place = Place(file=message.file, line=message.line, column=message.column)
    return ParseError(message.what, place=place, excerpt=message.excerpt)


def _in_program(what: str, known: Place, op: str | None) -> Error:
    place = replace(known, op=op, stage="iree-compile")
    if op is not None and op.startswith(FUNCTIONS):
        return UnsupportedError(what, place=place, hint=WIDE_MATH)
    return PassError(what, place=place)
