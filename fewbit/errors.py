"""Every error a user can cause, in one family.

An error answers three questions: *what* went wrong, *where* (a `Place`: file and line, op,
layer, pass), and *what to do* (a hint). The command line prints exactly that and no traceback;
library users catch `Error`, or one of its kinds, and read the same three fields.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Place:
    """Where an error is, in the user's terms. Every part is optional; what is known is shown."""

    file: str | None = None
    line: int | None = None
    column: int | None = None
    op: str | None = None
    layer: str | None = None
    stage: str | None = None

    def __str__(self) -> str:
        parts: list[str] = []
        if self.file is not None:
            numbers = [str(n) for n in (self.line, self.column) if n is not None]
            parts.append(":".join([self.file, *numbers]))
        if self.layer is not None:
            parts.append(f"layer '{self.layer}'")
        if self.op is not None:
            parts.append(f"op '{self.op}'")
        if self.stage is not None:
            parts.append(f"in {self.stage}")
        return ", ".join(parts)

    def __bool__(self) -> bool:
        return bool(str(self))


class Error(Exception):
    """The base of the family: `what` happened, the `place`, and a `hint` on what to do."""

    kind = "error"
    status = 1
    """What a command that ends with it exits with; `docs/cli.md` has the table."""

    def __init__(
        self,
        what: str,
        *,
        place: Place | None = None,
        hint: str | None = None,
        excerpt: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.place = place if place is not None else Place()
        self.hint = hint
        self.excerpt = excerpt
        """Source lines with a caret, when the place is in a text that we have."""

    def at(self, **parts: str | int | None) -> Error:
        """Fill in parts of the place that are still unknown (an outer stage knows more)."""
        missing = {
            name: value for name, value in parts.items() if getattr(self.place, name) is None
        }
        self.place = replace(self.place, **missing)  # pyright: ignore[reportArgumentType]
        return self

    def __str__(self) -> str:
        lines = [f"{self.place}: {self.what}" if self.place else self.what]
        if self.excerpt:
            lines.append(self.excerpt.rstrip("\n"))
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class UsageError(Error):
    """The command or call itself is wrong: an unknown option, pass or name, a missing file."""

    kind = "usage error"
    status = 2


class ParseError(Error):
    """Text that is not a program."""

    kind = "parse error"


class VerifyError(Error):
    """A program that breaks a rule of its dialect."""

    kind = "verify error"


class SymbolError(VerifyError):
    """A symbol that is missing, defined twice, or used against its signature."""


class WidthError(Error):
    """A bit width that does not exist, or that a value does not fit."""


class ShapeError(Error):
    """Shapes, groups or packed lengths that do not go together."""


class StoreError(Error):
    """A weight store that is damaged, incomplete, or not the one the program was made with."""


class PassError(Error):
    """A pass that could not do its work, or left the program invalid."""


class InterpretError(Error):
    """A program that cannot be run as it stands, or inputs that do not fit it."""


class UnsupportedError(Error):
    """Something valid that this part of fewbit cannot do."""

    status = 3


class FloatWeightsError(Error):
    """Weights stay float that no recipe reaches, and strictness was asked for."""

    kind = "float weights error"
    status = 4


class MissingToolError(Error):
    """An optional package or tool that is not installed."""


class FewbitWarning(UserWarning):
    """What a user should know, and no error; the command line says it as a note."""


class FloatWeightsWarning(FewbitWarning):
    """Weights stay float although the recipe has few bits for others."""


class OpenSizesWarning(FewbitWarning):
    """Sizes that a model leaves open were fixed, because the front end holds static ones only."""
