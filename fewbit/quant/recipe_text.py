"""Recipes as they stand in files: JSON or TOML in, plain data out, and back.

An error has to say where in the file it is, but the parsers give no positions for what they read.
`Source` keeps the text and finds a key's line in it again, which is enough for files this small.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fewbit.base.files import PathLike
from fewbit.errors import Place, UsageError

SUFFIXES = (".json", ".toml")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Source:
    """Where a recipe was read from: a file, or nothing in particular."""

    file: str | None = None
    text: str = ""

    def place(self, key: str | None = None, *, layer: str | None = None) -> Place:
        """The place of a top-level key, or of a layer."""
        key = layer if key is None else key
        line = None if key is None else self._line_of(key)
        return Place(file=self.file, line=line, layer=layer)

    def _line_of(self, key: str) -> int | None:
        spellings = "|".join(re.escape(s) for s in (quote(key), json.dumps(key), f"'{key}'", key))
        match = re.search(rf"(?<![\w.])({spellings})\s*[:=\].]", self.text)
        return self.text.count("\n", 0, match.start(1)) + 1 if match else None


def read_file(path: PathLike) -> tuple[Any, Source]:
    """Return what a recipe file says, and the source to place errors in."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise UsageError(
            f"a recipe file ends in .json or .toml, not '{path.suffix}'", place=Place(str(path))
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"cannot read the recipe: {reason}", place=Place(str(path))) from error
    read = read_json if path.suffix == ".json" else read_toml
    return read(text, str(path)), Source(str(path), text)


def read_json(text: str, file: str | None = None) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        place = Place(file, error.lineno, error.colno)
        raise UsageError(f"the recipe is not JSON: {error.msg}", place=place) from None
    except RecursionError:
        raise UsageError("the recipe is nested too deeply", place=Place(file)) from None
    except UsageError as error:
        raise error.at(file=file) from None


def read_toml(text: str, file: str | None = None) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, line, column = _toml_position(str(error))
        raise UsageError(
            f"the recipe is not TOML: {message}", place=Place(file, line, column)
        ) from None
    except RecursionError:
        raise UsageError("the recipe is nested too deeply", place=Place(file)) from None


def write_json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def write_toml(data: Mapping[str, Any]) -> str:
    """Numbers, texts, lists of texts, and one level of tables: all that a recipe has."""
    lines: list[str] = []
    for key, value in data.items():
        if isinstance(value, Mapping):
            table = cast(Mapping[str, str], value)
            lines += ["", f"[{key}]", *(f"{_key(k)} = {quote(v)}" for k, v in table.items())]
        elif isinstance(value, list):
            items = "".join(f"  {quote(item)},\n" for item in cast(list[str], value))
            lines.append(f"{key} = [\n{items}]")
        else:
            lines.append(f"{key} = {quote(value) if isinstance(value, str) else value}")
    return "\n".join(lines) + "\n"


def quote(text: str) -> str:
    """A string as both TOML and JSON read it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else quote(name)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    known = dict(pairs)
    if len(known) == len(pairs):
        return known
    names = [name for name, _ in pairs]
    twice = next(name for name in names if names.count(name) > 1)
    raise UsageError(f"'{twice}' is given twice", hint="keep one of them")


def _toml_position(message: str) -> tuple[str, int | None, int | None]:
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if match is None:
        return message, None, None
    return match[1], int(match[2]), int(match[3])
