"""Lists of passes as text: `canonicalize,func.func(cse,affine-scalrep),tile{sizes=8,8}`."""

from __future__ import annotations

from fewbit.errors import UsageError

OPENING, CLOSING, QUOTES = "({[<", ")}]>", "\"'"


def split_specs(text: str) -> list[str]:
    """Return the passes of a list, cut at commas that stand in no brackets and no quotes."""
    pieces: list[str] = [""]
    depth, quote = 0, ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in QUOTES:
            quote = c
        elif c in OPENING:
            depth += 1
        elif c in CLOSING:
            depth -= 1
        elif c == "," and depth == 0:
            pieces.append("")
            continue
        pieces[-1] += c
    if depth or quote:
        what = "a bracket" if depth else "a quote"
        raise UsageError(
            f"the list of passes cannot be read: {what} has no counterpart",
            hint="write it as 'first-pass,second-pass{option=1 other-option=a,b}'",
        )
    return [piece.strip() for piece in pieces if piece.strip()]


def name_of(spec: str) -> str:
    """Return the name in `name{options}`."""
    return spec.partition("{")[0].strip()
