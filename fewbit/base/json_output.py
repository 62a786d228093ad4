"""One JSON object on standard output, for every verb with `--json`.

JSON has no infinities: a float that is none of its numbers is null, so that every parser reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, cast


def print_json(value: Mapping[str, Any]) -> None:
    print(json_text(value))


def json_text(value: Mapping[str, Any], indent: int | None = None) -> str:
    return json.dumps(_strict(value), indent=indent, allow_nan=False)


def _strict(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        items = cast(Mapping[str, Any], value).items()
        return {name: _strict(each) for name, each in items}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_strict(each) for each in cast(Sequence[Any], value)]
    return value
