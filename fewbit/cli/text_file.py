"""A text that a user names, in UTF-8."""

from __future__ import annotations

from pathlib import Path

from fewbit.errors import Place, UsageError


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"there is no file '{path}'") from None
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not UTF-8"
        raise UsageError(f"cannot read the text: {reason}", place=Place(str(path))) from e
