"""The options of a target: a frozen dataclass whose fields are made by `option`.

The same declaration checks keyword arguments of `fewbit.compile`, makes options of the command line
(`fewbit/cli/target_options.py`) and the tables of the documentation (`tools/targets.py`). A target
gets its options as an object of its own class, so that a wrong name is found by the type checker.

A *kind* turns what was given, in Python or as text, into the value that the target reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fewbit.errors import UsageError

if TYPE_CHECKING:
    from typing import Self

    from fewbit.targets.target import Request

NO_TUNING = "none"
"""In the place of a tuning database: what searches found is not used."""
_KEY = "option"


@dataclass(frozen=True)
class Kind:
    """What values of an option look like."""

    words: str
    """For people: "true or false"."""
    convert: Callable[[Any], Any]
    """The value that was given, checked; raises `ValueError` where it is none of the kind."""
    is_flag: bool = False
    is_repeatable: bool = False


@dataclass(frozen=True)
class Option:
    """One option, as command line and documentation need it."""

    name: str
    """In Python."""
    kind: Kind
    help: str
    flag: str
    """On the command line."""
    metavar: str | None
    default: Any
    verbs: tuple[str, ...]
    """The verbs of the command line that have it."""
    see: str
    """A link to more, in Markdown."""


def option(
    kind: Kind,
    help: str,
    *,
    default: Any = None,
    flag: str | None = None,
    metavar: str | None = None,
    also: Iterable[str] = (),
    see: str = "",
) -> Any:
    """Return a field of a class of options; `also` are verbs that have it beside `compile`."""
    default = False if kind.is_flag else () if kind.is_repeatable else default
    declared = Option("", kind, help, flag or "", metavar, default, ("compile", *also), see)
    return field(default=default, metadata={_KEY: declared})


@dataclass(frozen=True)
class Options:
    """What is asked of a target beyond its name; this one has none."""

    @classmethod
    def declared(cls) -> tuple[Option, ...]:
        """Return all options, in their order."""
        return tuple(
            _with_name(each.metadata[_KEY], each.name)
            for each in fields(cls)
            if _KEY in each.metadata
        )

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(each.name for each in cls.declared())

    @classmethod
    def check(cls, given: Mapping[str, Any], owner: str) -> Self:
        """Check options by name, each of its kind; what is None or False was not given."""
        known = {each.name: each for each in cls.declared()}
        values: dict[str, Any] = {}
        for name, value in given.items():
            if value is None or value is False:
                continue
            if name not in known:
                raise UsageError(
                    f"the target '{owner}' has no option '{name}'",
                    hint=f"it has {', '.join(sorted(known))}" if known else None,
                )
            values[name] = _convert(known[name], value, owner)
        return cls(**values)

    @classmethod
    def of(cls, request: Request) -> Self:
        """Return those of a request; where it has none, all are as if not given."""
        given = request.options
        if isinstance(given, cls):
            return given
        if type(given) is not Options:
            raise TypeError(f"{type(given).__name__} are options of another target")
        return cls()


def _with_name(said: Option, name: str) -> Option:
    return replace(said, name=name, flag=said.flag or f"--{name.replace('_', '-')}")


def _convert(option: Option, value: Any, owner: str) -> Any:
    try:
        return option.kind.convert(value)
    except ValueError as e:
        raise UsageError(
            f"the option '{option.name}' of '{owner}' cannot be {value!r}",
            hint=f"it is {option.kind.words}",
        ) from e


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError
    return tuple(map(_text, cast(Iterable[Any], value)))


def _names(value: Any) -> str | tuple[str, ...]:
    return value if isinstance(value, str) else _texts(value)


def _shape(value: Any) -> tuple[int, ...]:
    sizes = value.split("x") if isinstance(value, str) else value
    if not isinstance(sizes, Iterable):
        raise ValueError
    shape = tuple(map(int, cast(Iterable[Any], sizes)))
    if not all(size > 0 for size in shape):
        raise ValueError
    return shape


def _shapes(value: Any) -> tuple[tuple[int, ...], ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError
    return tuple(map(_shape, cast(Iterable[Any], value)))


def _path(value: Any) -> Path:
    if not isinstance(value, str | Path):
        raise ValueError
    return Path(value)


FLAG = Kind("true or false", _flag, is_flag=True)
TEXT = Kind("a text", _text)
PATH = Kind("a path", _path)
TEXTS = Kind("a list of texts", _texts, is_repeatable=True)
NAMES = Kind("a list of names, or a text with commas between them", _names)
SHAPES = Kind("a list of shapes such as 32x3x224x224", _shapes, is_repeatable=True)


def one_of(*choices: str) -> Kind:
    """Return one of some words."""

    def convert(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return value

    return Kind(f"one of {', '.join(choices)}", convert)


@dataclass(frozen=True)
class TunedOptions(Options):
    """Options of a target that searches are made for."""

    tuning_db: str | None = option(
        TEXT,
        "What 'fewbit tune' found, if not in the usual place; or none.",
        metavar="FILE",
        see="[tuning](tuning.md)",
    )


@dataclass(frozen=True)
class BootOptions(Options):
    """Options of a target whose programs can boot."""

    bare_metal: bool = option(
        FLAG,
        "Also a program that boots, has an input inside and checks itself.",
        see="[microcontrollers](mcu.md#a-program-that-boots), [cores](cores.md)",
    )
