"""Recipes: which scheme each layer of a model gets.

A recipe names layers by their dotted module path, by a module above them, or by `re:` patterns;
or it lists schemes in the order of the model's layers, as MiCo does. What it says is checked
against the layers it meets: a name that selects nothing and a list of the wrong length are errors.
Two recipes are equal exactly when they are written the same, `Recipe.of(str(recipe)) == recipe`,
and they are safe as keys of a cache.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from fewbit.base.files import PathLike, replacing_file
from fewbit.errors import Error, Place, UsageError
from fewbit.numerics import WidthLike
from fewbit.passes.graph.names import REGEX_PREFIX, NamePattern
from fewbit.quant.attention_scheme import AttentionScheme
from fewbit.quant.cache_scheme import CacheScheme
from fewbit.quant.recipe_text import (
    SUFFIXES,
    Source,
    quote,
    read_file,
    read_json,
    write_json,
    write_toml,
)
from fewbit.quant.scheme import LayerScheme, SchemeLike, read_width

__all__ = ["LayerScheme", "Recipe", "RecipeLike", "SchemeLike"]

_FLOAT = LayerScheme()
_FIELDS = ("version", "default", "layers", "order", "cache", "attention")
_CACHE, _ATTENTION = "cache", "attention"
_BESIDE: dict[str, tuple[type[CacheScheme] | type[AttentionScheme], str]] = {
    _CACHE: (CacheScheme, "q8"),
    _ATTENTION: (AttentionScheme, "q8k8"),
}
"""Schemes of what is no layer, with an example of each."""
_MICO_TERNARY = 1.5


def _read_cache(value: object) -> object:
    return CacheScheme.of(value) if isinstance(value, str) else value


def _read_attention(value: object) -> object:
    return AttentionScheme.of(value) if isinstance(value, str) else value


_Cache: TypeAlias = Annotated[CacheScheme | None, BeforeValidator(_read_cache)]
_Attention: TypeAlias = Annotated[AttentionScheme | None, BeforeValidator(_read_attention)]


class Recipe(BaseModel):
    """Schemes by layer: a default with exceptions by name, or a list in the order of layers.

    For a layer the exact name wins, then the nearest module above it that is named, then the
    first `re:` pattern that matches, then the default. `cache` is what a language model keeps keys
    and values as, `attention` how queries, keys, values and scores are rounded; None leaves that
    open.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    default: LayerScheme = _FLOAT
    layers: dict[str, LayerScheme] = {}
    order: tuple[LayerScheme, ...] | None = None
    cache: _Cache = None
    attention: _Attention = None

    @staticmethod
    def of(value: RecipeLike) -> Recipe:
        """A recipe from a text, a mapping, a .json or .toml file, MiCo's two lists, or itself."""
        if isinstance(value, Recipe):
            return value
        if isinstance(value, LayerScheme):
            return Recipe(default=value)
        if isinstance(value, os.PathLike):
            return _from_data(*read_file(cast(PathLike, value)))
        if not isinstance(value, str):
            return _from_data(value, Source())
        text = value.strip()
        if text.startswith(("{", "[")):
            return _from_data(read_json(text), Source())
        if text.endswith(SUFFIXES):
            return _from_data(*read_file(text))
        return _from_text(text)

    @staticmethod
    def in_order(
        weights: Sequence[WidthLike],
        acts: Sequence[WidthLike],
        granularity: Literal["tensor", "channel"] = "channel",
    ) -> Recipe:
        """MiCo's scheme: the widths of every layer, in the order of `named_modules`."""
        if len(weights) != len(acts):
            raise UsageError(
                f"{len(weights)} widths of weights with {len(acts)} of activations",
                hint="a scheme has one of each for every layer: [[w, …], [a, …]]",
            )
        pairs = enumerate(zip(weights, acts, strict=True))
        return Recipe(order=tuple(_pair(i, w, a, granularity) for i, (w, a) in pairs))

    @staticmethod
    def by_name(schemes: Mapping[str, LayerScheme]) -> Recipe:
        """The recipe that gives these layers, by their exact names, these schemes."""
        return Recipe(layers=dict(schemes))

    @staticmethod
    def with_exceptions(schemes: Mapping[str, LayerScheme]) -> Recipe:
        """The same, shorter: the most common scheme is the default, and others are exceptions."""
        ((common, _),) = Counter(schemes.values()).most_common(1)
        others = {name: scheme for name, scheme in schemes.items() if scheme != common}
        short = Recipe(default=common, layers=others)
        # What is below an exception would follow it.
        is_same = all(short.layer(name) == scheme for name, scheme in schemes.items())
        return short if is_same else Recipe.by_name(schemes)

    def with_layers(self, **fields: Any) -> Recipe:
        """The recipe with other schemes of layers, and the same of what is no layer."""
        return self.model_copy(update=fields)

    def layer(self, name: str) -> LayerScheme:
        """The scheme of one layer."""
        if self.order is not None:
            raise UsageError(
                "a recipe in the order of layers knows no names",
                place=Place(layer=name),
                hint="use recipe.resolve(names), which counts them",
            )
        chosen = _nearest(name, self.layers) or _first_match(name, self.layers)
        return self.default if chosen is None else self.layers[chosen]

    def resolve(self, layer_names: Sequence[str]) -> dict[str, LayerScheme]:
        """The scheme of every layer of a model; the recipe must fit these layers."""
        if self.order is not None:
            _check_length(self.order, layer_names)
            return dict(zip(layer_names, self.order, strict=True))
        for pattern in self.layers:
            _check_matches(pattern, layer_names)
        return {name: self.layer(name) for name in layer_names}

    def save(self, path: PathLike) -> None:
        """Write a .json or .toml file, whole or not at all."""
        suffix = Path(path).suffix
        if suffix not in SUFFIXES:
            raise UsageError(
                f"a recipe file ends in .json or .toml, not '{suffix}'",
                place=Place(file=str(path)),
            )
        write = write_json if suffix == ".json" else write_toml
        with replacing_file(path) as file:
            file.write(write(self.model_dump()).encode())

    def __str__(self) -> str:
        if self.order is not None or not all(_in_text(name) for name in self.layers):
            return self.model_dump_json()
        exceptions = [f"{name}={scheme}" for name, scheme in self.layers.items()]
        exceptions += [f"{name}={scheme}" for name, scheme in self._others.items()]
        return ",".join([str(self.default), *exceptions])

    @property
    def _others(self) -> dict[str, str]:
        """The schemes of what is no layer."""
        given = {_CACHE: self.cache, _ATTENTION: self.attention}
        return {name: str(scheme) for name, scheme in given.items() if scheme is not None}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    @model_serializer
    def _serialize(self) -> dict[str, Any]:
        data: dict[str, Any] = {"version": self.version}
        data |= self._others
        if self.order is not None:
            return data | {"order": [str(scheme) for scheme in self.order]}
        data["default"] = str(self.default)
        if self.layers:
            data["layers"] = {name: str(scheme) for name, scheme in self.layers.items()}
        return data

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, data: Any, handler: ModelWrapValidatorHandler[Recipe]) -> Recipe:
        try:
            return handler(data)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UsageError(f"a recipe's '{where}': {first['msg']}") from None

    @model_validator(mode="after")
    def _check(self) -> Recipe:
        for name in self.layers:
            NamePattern.parse(name)
        if self.order is not None and (self.layers or self.default != _FLOAT):
            raise UsageError(
                "a recipe in the order of layers has no default and no names",
                hint="give either 'order', or 'default' and 'layers'",
            )
        return self


RecipeLike: TypeAlias = (
    Recipe
    | LayerScheme
    | str
    | os.PathLike[str]
    | Mapping[str, Any]
    | Sequence[Sequence[WidthLike]]
)
"""What `Recipe.of` accepts."""


def _from_text(text: str) -> Recipe:
    """`w8a8`, or `w8a8,fc1=w4a8,re:conv.*=w6a8`: the default, then exceptions."""
    default, *exceptions = text.split(",")
    layers: dict[str, LayerScheme] = {}
    beside: dict[str, Any] = {}
    for exception in exceptions:
        name, equals, scheme = exception.rpartition("=")
        name = name.strip()
        if name in _BESIDE and name not in beside and _BESIDE[name][0].is_one(scheme):
            beside[name] = _BESIDE[name][0].of(scheme)
            continue
        if not equals or name in layers:
            problem = "is given twice" if equals else "is not 'name=scheme'"
            raise UsageError(
                f"'{name or exception.strip()}' {problem}",
                hint="write the default and then the exceptions: 'w8a8,fc1=w4a8'",
            )
        layers[name] = _scheme(scheme, Place(layer=name))
    return Recipe(default=LayerScheme.of(default), layers=layers, **beside)


def _in_text(name: str) -> bool:
    return "," not in name and name == name.strip()


def _from_data(data: Any, source: Source) -> Recipe:
    if isinstance(data, Mapping):
        return _from_mapping(cast(Mapping[str, Any], data), source)
    if isinstance(data, Sequence):
        weights, acts = _two_lists(cast(Sequence[Any], data), source)
        return Recipe.in_order(weights, acts)
    raise UsageError(
        f"a {type(data).__name__} is not a recipe",
        place=source.place(),
        hint="a recipe is a text, a mapping, a file, or [[w, …], [a, …]]",
    )


def _from_mapping(data: Mapping[str, Any], source: Source) -> Recipe:
    for key in data:
        if key not in _FIELDS:
            close = get_close_matches(key, _FIELDS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(_FIELDS)}"
            raise UsageError(f"a recipe has no field '{key}'", place=source.place(key), hint=hint)
    version = data.get("version", 1)
    if type(version) is not int or version != 1:
        raise UsageError(
            f"recipe version {version!r} is not known",
            place=source.place("version"),
            hint="this fewbit reads version 1",
        )
    layers, order = data.get("layers", {}), data.get("order")
    if not isinstance(layers, Mapping):
        raise UsageError("'layers' maps names to schemes", place=source.place("layers"))
    fields: dict[str, Any] = {
        "default": _scheme(data.get("default", _FLOAT), source.place("default")),
        "layers": {
            name: _scheme(scheme, source.place(layer=name))
            for name, scheme in cast(Mapping[str, Any], layers).items()
        },
    }
    if order is not None:
        fields["order"] = _schemes(order, source.place("order"))
    given = {name: data.get(name) for name in _BESIDE}
    fields |= {
        name: _beside(name, value, source.place(name))
        for name, value in given.items()
        if value is not None
    }
    try:
        return Recipe(**fields)
    except Error as error:
        raise error.at(file=source.file) from None


def _beside(name: str, value: Any, place: Place) -> CacheScheme | AttentionScheme:
    """Return the scheme of what is no layer."""
    kind, example = _BESIDE[name]
    if not isinstance(value, str | kind):
        raise UsageError(f"'{name}' is a text, such as '{example}'", place=place)
    try:
        return kind.of(cast(Any, value))
    except Error as error:
        raise error.at(**vars(place)) from None


def _schemes(order: Any, place: Place) -> tuple[LayerScheme, ...]:
    if isinstance(order, str) or not isinstance(order, Sequence):
        raise UsageError("'order' lists one scheme for every layer", place=place)
    return tuple(_scheme(scheme, place) for scheme in cast(Sequence[Any], order))


def _scheme(value: Any, place: Place) -> LayerScheme:
    """A scheme with its place in errors; dotted TOML keys are recognized by what they become."""
    try:
        return LayerScheme.of(value)
    except Error as error:
        if isinstance(value, Mapping):
            inner = cast(Mapping[str, Any], value)
            if place.layer is not None and not set(inner) & set(LayerScheme.model_fields):
                dotted = f"{place.layer}.{next(iter(inner), '…')}"
                error.hint = f'in TOML a name with dots is quoted: {quote(dotted)} = "w4a8"'
        raise error.at(**vars(place)) from None


def _two_lists(data: Sequence[Any], source: Source) -> tuple[Sequence[Any], Sequence[Any]]:
    lists = [cast(Sequence[Any], x) for x in data if isinstance(x, list | tuple)]
    if len(data) != 2 or len(lists) != 2:
        raise UsageError(
            "a list is not a recipe",
            place=source.place(),
            hint="MiCo's scheme is two lists, [[w, …], [a, …]], one width for every layer",
        )
    return lists[0], lists[1]


def _pair(
    index: int, weight: Any, act: Any, granularity: Literal["tensor", "channel"]
) -> LayerScheme:
    try:
        width, act_width = (read_width(1.58 if x == _MICO_TERNARY else x) for x in (weight, act))
    except Error as error:
        raise error.at(layer=f"number {index + 1}") from None
    if width is None:
        granularity = "channel"
    return LayerScheme(weight=width, act=act_width, granularity=granularity)


def _nearest(name: str, layers: Mapping[str, LayerScheme]) -> str | None:
    """The longest plain name that is this layer, or a module around it."""
    while name not in layers:
        name, dot, _ = name.rpartition(".")
        if not dot:
            return None
    return name


def _first_match(name: str, layers: Mapping[str, LayerScheme]) -> str | None:
    patterns = (text for text in layers if text.startswith(REGEX_PREFIX))
    return next((text for text in patterns if NamePattern.parse(text).selects(name)), None)


def _check_length(order: Sequence[LayerScheme], names: Sequence[str]) -> None:
    if len(order) == len(names):
        return
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    raise UsageError(
        f"the recipe has schemes for {len(order)} layers, the model has {len(names)}",
        hint=f"the layers are, in order: {shown}" if names else "no layer can be quantized",
    )


def _check_matches(pattern: str, names: Sequence[str]) -> None:
    if any(NamePattern.parse(pattern).selects(name) for name in names):
        return
    close = get_close_matches(pattern.removeprefix(REGEX_PREFIX), names, n=3)
    shown = [f"'{name}'" for name in close or names[:3]]
    hint = (
        f"did you mean {' or '.join(shown)}?"
        if close
        else f"layers are, for example: {', '.join(shown)}"
    )
    raise UsageError(
        f"the recipe's '{pattern}' matches no layer",
        hint=hint if names else "no layer of the model can be quantized",
    )
