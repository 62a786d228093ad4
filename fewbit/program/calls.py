"""Calls by name: arguments in the order of a program's inputs, and results that have names.

An argument that is no array is taken apart by the rule that names inputs at import: the keys,
attributes and positions on the way to an array, joined by underscores. So the cache that a model
of transformers takes is given as it is, `past_key_values=cache`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from fewbit.errors import UsageError
from fewbit.program.output_names import NEW


class Outputs(tuple[Any, ...]):
    """The results of a call, in order, and each by its name: `out.logits` or `out["logits"]`.

    A result that is called `new_cache`, after the input `cache`, is found by that name too.
    """

    _names: tuple[str, ...]

    def __new__(cls, values: Iterable[Any], names: Iterable[str]) -> Outputs:
        outputs = super().__new__(cls, values)
        outputs._names = tuple(names)
        return outputs

    def keys(self) -> tuple[str, ...]:
        return self._names

    def items(self) -> Iterator[tuple[str, Any]]:
        return zip(self._names, self, strict=False)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for name in (key, f"{NEW}{key}"):
            if name in self._names:
                return super().__getitem__(self._names.index(name))
        raise UsageError(f"there is no result '{key}'", hint=_listing("it has", self._names))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except UsageError as e:
            raise AttributeError(str(e)) from None

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self), self._names


def order_inputs(
    names: Sequence[str],
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    optional: Iterable[str] = (),
) -> list[Any]:
    """Return arguments in the order of inputs, by name and position; refuse what does not fit.

    Inputs that are `optional`, such as state, are given all or not at all.
    """
    if not named:
        return list(arguments)
    if len(arguments) > len(names):
        listing = ", ".join(names)
        raise UsageError(f"the program takes {len(names)} inputs ({listing}); more are given")
    values = dict(zip(names, arguments, strict=False))
    for name, value in _spread(named, names):
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean '{near[0]}'?" if near else _listing("inputs are", names)
            raise UsageError(f"there is no input '{name}'", hint=hint)
        if name in values:
            raise UsageError(f"the input '{name}' is given twice")
        values[name] = value
    left_out = set(optional) if values.keys().isdisjoint(optional) else set[str]()
    missing = [name for name in names if name not in values and name not in left_out]
    if missing:
        listing = ", ".join(f"'{name}'" for name in missing)
        what = f"the input {listing} is" if len(missing) == 1 else f"the inputs {listing} are"
        raise UsageError(f"{what} missing", hint=_listing("inputs are", names))
    return [values[name] for name in names if name not in left_out]


def _spread(named: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for name, value in named.items():
        if name in names or _is_array(value):
            yield name, value
            continue
        parts = [(key, part) for key, part in _parts(value, name, ()) if key in names]
        yield from parts or [(name, value)]


def _parts(value: Any, path: str, around: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the arrays in a structure by their names."""
    if _is_array(value):
        yield path, value
        return
    if (mark := id(value)) in around:
        return
    if isinstance(value, Mapping):
        children = list(cast("Mapping[Any, Any]", value).items())
    elif isinstance(value, list | tuple):
        children = list(enumerate(cast("Sequence[Any]", value)))
    else:
        children = list(getattr(value, "__dict__", {}).items())
    for key, child in children:
        yield from _parts(child, f"{path}_{key}", (*around, mark))


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") or isinstance(value, bool | int | float)


def _listing(what: str, names: Iterable[str]) -> str:
    return f"{what} {', '.join(names) or 'none'}"
