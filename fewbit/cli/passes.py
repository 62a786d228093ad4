"""Passes by name, as `fewbit-opt` is asked for them: `canonicalize,place-devices{...}`.

The passes are those of the `xdsl.universe` (fewbit's, plug-ins' and xDSL's own) and the syntax is
xDSL's. What is added is the answer to a mistake: which name was probably meant, and which options
a pass has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import TypeAlias

from xdsl.passes import ModulePass, get_pass_option_infos
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from fewbit.errors import Error, UsageError

_QUOTES = "'"
"""xDSL quotes the types of fields whose annotations are not evaluated."""

_PLAIN_TYPES: Mapping[str, tuple[type, str]] = {
    "bool": (bool, "true or false"),
    "int": (int, "a whole number"),
    "str": (str, "one text (a number stands in quotes)"),
    "tuple[int, ...]": (int, "whole numbers"),
    "tuple[str, ...]": (str, "texts (a number stands in quotes)"),
}
"""What an option of a type is called, and holds."""

PassFactory: TypeAlias = Callable[[], type[ModulePass]]
PassTable: TypeAlias = Mapping[str, PassFactory]


def available_passes() -> PassTable:
    try:
        return Universe.get_multiverse().all_passes
    except Exception as e:
        raise Error(
            f"the plug-ins cannot be loaded: {type(e).__name__}: {e}",
            hint="a package that registers an 'xdsl.universe' is broken or clashes with another;"
            " update or uninstall it",
        ) from e


def parse_passes(text: str, available: PassTable) -> list[ModulePass]:
    try:
        specs = list(parse_pipeline(text))
    except ArgSpecParseError as e:
        raise UsageError(
            "the list of passes cannot be read",
            excerpt=_excerpt(e),
            hint="write it as 'first-pass,second-pass{option=1 other-option=a,b}'",
        ) from e
    return [_make_pass(spec, available) for spec in specs]


def suggest_pass(name: str, available: PassTable) -> str:
    """What to do about a name that no pass has."""
    similar = get_close_matches(name, available, n=3)
    if not similar:
        return "'fewbit-opt --list-passes' lists them all"
    return f"did you mean {' or '.join(repr(other) for other in similar)}?"


def describe_passes() -> str:
    """Every pass with its options, in groups by where it comes from, fewbit's first."""
    available = available_passes()
    groups = sorted(entry_points(group="xdsl.universe"), key=lambda e: (e.name != "fewbit", e.name))
    lines: list[str] = []
    for group in groups:
        universe: Universe = group.load()
        lines.append(f"passes of {group.name}:")
        for name in sorted(universe.all_passes):
            lines.extend(_describe_pass(name, _load(name, available[name])))
        lines.append("")
    return "\n".join(lines)


def _describe_pass(name: str, kind: type[ModulePass]) -> list[str]:
    summary = (kind.__dict__.get("__doc__") or "").strip().partition("\n")[0]
    # A dataclass without a docstring gets its signature as one.
    is_signature = summary.startswith(f"{kind.__name__}(")
    options = [f"      {option}" for option in _options(kind)]
    return [f"  {name}" + (f"  {summary}" if summary and not is_signature else ""), *options]


def _options(kind: type[ModulePass]) -> list[str]:
    return [
        info.name.replace("_", "-")
        + f": {info.expected_type.strip(_QUOTES)}"
        + (f" = {info.default_value}" if info.default_value is not None else "")
        for info in get_pass_option_infos(kind)
    ]


def _make_pass(spec: ArgSpec, available: PassTable) -> ModulePass:
    if spec.name not in available:
        raise UsageError(f"there is no pass '{spec.name}'", hint=suggest_pass(spec.name, available))
    kind = _load(spec.name, available[spec.name])
    options = _options(kind)
    hint = f"its options are: {', '.join(options)}" if options else "it takes no options"
    known = {option.partition(":")[0] for option in options}
    for name in spec.parameters:
        if name.replace("_", "-") not in known:
            raise UsageError(f"pass '{spec.name}' has no option '{name}'", hint=hint)
    try:
        return kind.from_spec(spec)
    except (ValueError, TypeError) as e:
        what = _wrong_value(spec, kind) or f"pass '{spec.name}' cannot be set up: {e}"
        raise UsageError(what, hint=hint) from e


def _wrong_value(spec: ArgSpec, kind: type[ModulePass]) -> str | None:
    """The first option whose value is not of its type, where the type is a plain one."""
    types = {info.name: info.expected_type.strip(_QUOTES) for info in get_pass_option_infos(kind)}
    for name, values in spec.parameters.items():
        expected = types[name.replace("-", "_")]
        if expected not in _PLAIN_TYPES:
            continue
        python_type, words = _PLAIN_TYPES[expected]
        is_list = expected.startswith("tuple")
        if (is_list or len(values) == 1) and all(isinstance(v, python_type) for v in values):
            continue
        given = ",".join(map(_spelled, values)) or "nothing"
        shown = name.replace("_", "-")
        return f"the option '{shown}' of pass '{spec.name}' takes {words}, not {given}"
    return None


def _spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _load(name: str, factory: PassFactory) -> type[ModulePass]:
    try:
        return factory()
    except Exception as e:
        raise Error(
            f"pass '{name}' cannot be loaded: {type(e).__name__}: {e}",
            hint="the package it comes from is broken; update or uninstall it",
        ) from e


def _excerpt(e: ArgSpecParseError) -> str:
    """The list with carets under the fault, out of xDSL's message (two lines of heading first)."""
    return "\n".join(str(e).splitlines()[2:])
