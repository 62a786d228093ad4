"""Passes by name: xDSL's universe (ours, plug-ins', xDSL's own), ours on bindings, upstream's.

The same name may be xDSL's and upstream's (`canonicalize`, `cse`); which is meant follows from what
holds the program at that point. The name of a pass of ours is the name of its file and its class:
`outline-loops` is `OutlineLoops` in `outline_loops.py`. Listing passes imports none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeAlias

from xdsl.passes import ModulePass, get_pass_option_infos
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from fewbit.base.plugins import load_from
from fewbit.errors import Error, UsageError
from fewbit.ir.context import multiverse
from fewbit.pipeline.passes import (
    BindingsPass,
    Conversion,
    Form,
    Pass,
    UpstreamPass,
    output_form,
)
from fewbit.pipeline.spec import name_of, split_specs

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

OwnPass: TypeAlias = type[ModulePass] | type[BindingsPass] | type[Conversion]
PassFactory: TypeAlias = Callable[[], OwnPass]
PassTable: TypeAlias = Mapping[str, PassFactory]


GROUP = "fewbit.passes"
"""Entry points to tables of passes on bindings, and of conversions."""


def bindings_passes() -> PassTable:
    """Return passes on upstream's bindings and conversions, ours and those of other packages."""
    return _bindings_passes(tuple(sys.path))


@cache
def _bindings_passes(path: tuple[str, ...]) -> PassTable:
    passes: dict[str, PassFactory] = {}
    for point in entry_points(group=GROUP):
        table: PassTable = load_from(point.value, "table of passes")
        for name in passes.keys() & table.keys():
            raise Error(
                f"two packages have a pass '{name}'",
                hint=f"the one at {point.value} was found second; uninstall one of them",
            )
        passes |= table
    return passes


def available_passes() -> PassTable:
    """Return passes of ours, of plug-ins and of xDSL, by name; upstream's are not listed."""
    try:
        return {**multiverse().all_passes, **bindings_passes()}
    except Exception as e:
        raise Error(
            f"the plug-ins cannot be loaded: {type(e).__name__}: {e}",
            hint="a package that registers an 'xdsl.universe' is broken or clashes with another;"
            " update or uninstall it",
        ) from e


def parse_passes(text: str, form: Form = "xdsl", known: PassTable | None = None) -> list[Pass]:
    """Parse a list of passes; `form` holds the program before the first of them."""
    known = available_passes() if known is None else known
    passes: list[Pass] = []
    for spec in split_specs(text):
        passes.append(resolve(spec, form, known))
        form = output_form(passes[-1]) or form
    return passes


def resolve(spec: str, form: Form, known: PassTable | None = None) -> Pass:
    """Return the pass that a text names, for a program that is held by `form`."""
    known = available_passes() if known is None else known
    name = name_of(spec)
    if name in known and (form != "upstream" or name in bindings_passes()):
        return _make_pass(_parse(spec), known)
    if form == "upstream" or is_upstream(spec):
        return UpstreamPass(spec)
    if " " in name:
        _parse(spec)
    raise UsageError(f"there is no pass '{name}'", hint=suggest_pass(name, known))


def is_upstream(spec: str) -> bool:
    """Return whether upstream's MLIR has such a pass."""
    from fewbit.errors import PassError
    from fewbit.ir.bindings import check_upstream

    try:
        check_upstream(spec)
    except PassError:
        return False
    return True


def suggest_pass(name: str, known: PassTable) -> str:
    """Return a hint for a name that no pass has."""
    similar = get_close_matches(name, known, n=3)
    if not similar:
        return "'fewbit-opt --list-passes' lists them all"
    return f"did you mean {' or '.join(repr(other) for other in similar)}?"


def load_pass(name: str, factory: PassFactory) -> OwnPass:
    try:
        return factory()
    except Exception as e:
        raise Error(
            f"pass '{name}' cannot be loaded: {type(e).__name__}: {e}",
            hint="the package it comes from is broken; update or uninstall it",
        ) from e


@cache
def options_of(kind: OwnPass) -> list[str]:
    """Return the options of a pass, with their types and defaults, as text."""
    return [
        info.name.replace("_", "-")
        + f": {info.expected_type.strip(_QUOTES)}"
        + (f" = {info.default_value}" if info.default_value is not None else "")
        for info in get_pass_option_infos(kind)  # pyright: ignore[reportArgumentType]
    ]


def _parse(spec: str) -> ArgSpec:
    try:
        return next(iter(parse_pipeline(spec)))
    except ArgSpecParseError as e:
        raise UsageError(
            "the list of passes cannot be read",
            excerpt=_excerpt(e),
            hint="write it as 'first-pass,second-pass{option=1 other-option=a,b}'",
        ) from e


def _make_pass(spec: ArgSpec, available: PassTable) -> Any:
    kind = load_pass(spec.name, available[spec.name])
    options = options_of(kind)
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


def _wrong_value(spec: ArgSpec, kind: OwnPass) -> str | None:
    """Return the first option whose value is not of its type, where the type is a plain one."""
    types = {
        info.name: info.expected_type.strip(_QUOTES)
        for info in get_pass_option_infos(kind)  # pyright: ignore[reportArgumentType]
    }
    for name, values in spec.parameters.items():
        expected = types[name.replace("-", "_")]
        if expected not in _PLAIN_TYPES:
            continue
        python_type, words = _PLAIN_TYPES[expected]
        is_list = expected.startswith("tuple")
        if (is_list or len(values) == 1) and all(isinstance(v, python_type) for v in values):
            continue
        given = ",".join(map(_quote, values)) or "nothing"
        shown = name.replace("_", "-")
        return f"the option '{shown}' of pass '{spec.name}' takes {words}, not {given}"
    return None


def _quote(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _excerpt(e: ArgSpecParseError) -> str:
    """Return the list with carets under the fault: what follows two lines in xDSL's message."""
    return "\n".join(str(e).splitlines()[2:])
