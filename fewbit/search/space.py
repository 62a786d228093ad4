"""What a search chooses from: units of layers, and the schemes that each may have.

A unit is one layer, or several that get the same scheme: those that share a weight always, and
others where blocks are tied. Its choices are in rising order of what they cost. A candidate is one
choice for each unit, as indices; `Space.schemes` says what these are for every layer, so a recipe,
the key of an evaluation and a feature of a surrogate model all come from the same tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from math import prod
from typing import TypeAlias

from fewbit.errors import Error, UsageError
from fewbit.numerics import Width
from fewbit.passes.graph.names import NamePattern
from fewbit.quant.recipe import Recipe
from fewbit.quant.scheme import LayerScheme, SchemeLike

Candidate: TypeAlias = tuple[int, ...]
"""The number of a choice, for each unit."""

WIDE = LayerScheme.of("w8a8")
"""The scheme that others are compared with, and that the first and last layer keep."""
WEIGHTS = ("1", "1.58", "2", "3", "4", "5", "6", "8")
"""Widths of weights that are tried, if not said otherwise."""
FEW_ACTS = ("1", "2", "3", "4", "6", "8")
"""Widths of activations, where a budget can tell them apart."""
FEWEST_FITTED = 3
MOST_FITTED = 4
"""The widths whose scales are also fitted by least squares; wider ones gain nothing by it."""


@dataclass(frozen=True)
class SearchedLayer:
    """A layer of a model, as far as a search has to know it."""

    name: str
    shape: tuple[int, ...]
    """That of its weight."""
    weight: str
    """What the weight is called; layers that share one are one unit."""
    macs: int
    is_table: bool = False


@dataclass(frozen=True)
class Choices:
    """What layers may have, before it is known which of it each can have."""

    weights: tuple[Width, ...]
    acts: tuple[Width, ...] = (Width.of(8),)
    rules: tuple[str, ...] = ("max", "mse")
    """Where scales come from: max, mean, mse."""
    groups: tuple[int | None, ...] = (None,)
    """Elements that share a scale; None for a whole output channel."""
    act_scales: tuple[str, ...] = ("dynamic",)
    """When scales of activations are taken: dynamic, as the program runs, or static."""
    given: tuple[LayerScheme, ...] = ()
    """These schemes and no others, in place of all the above."""

    def schemes(self) -> list[LayerScheme]:
        """Return every combination that means something, from the fewest bits on."""
        return sorted(set(self.given or self._combinations()), key=_by_bits)

    def _combinations(self) -> Iterable[LayerScheme]:
        for weight, act in product(self.weights, self.acts):
            rules, scales = self._rules_of(weight), self.act_scales
            for rule, group, scale in product(rules, self.groups, scales):
                text = f"w{weight}a{act}" + (f"g{group}" if group else "")
                words = [word for word in (rule, scale) if word not in ("max", "dynamic")]
                yield LayerScheme.of("-".join([text, *words]))

    def _rules_of(self, weight: Width) -> tuple[str, ...]:
        """Return rules that differ at a width: narrow scales are always taken from mean|w|."""
        if FEWEST_FITTED <= weight.bits <= MOST_FITTED:
            return self.rules
        plain = tuple(rule for rule in self.rules if rule != "mse" and weight.bits > 2)
        return plain or ("max",)


def _by_bits(scheme: LayerScheme) -> tuple[float, ...]:
    weight = 32.0 if scheme.weight is None else scheme.weight.precision
    act = 32.0 if scheme.act is None else scheme.act.precision
    return weight, act, -(scheme.group or 1 << 30), len(str(scheme))


@dataclass(frozen=True)
class Unit:
    """Layers that get the same scheme, and which schemes these may be."""

    layers: tuple[SearchedLayer, ...]
    choices: tuple[LayerScheme, ...]

    @property
    def name(self) -> str:
        first = self.layers[0].name
        return first if len(self.layers) == 1 else f"{first} (+{len(self.layers) - 1})"

    @property
    def widest(self) -> int:
        """The number of the choice with the most bits; of equal ones, the plainest."""
        bits = [_by_bits(each)[:2] for each in self.choices]
        return bits.index(max(bits))


@dataclass(frozen=True)
class Space:
    """All candidates."""

    units: tuple[Unit, ...]
    fixed: Mapping[str, LayerScheme] = field(default_factory=dict[str, LayerScheme])
    """Layers that are not searched."""

    @property
    def size(self) -> int:
        return prod(len(unit.choices) for unit in self.units)

    @property
    def widest(self) -> Candidate:
        return tuple(unit.widest for unit in self.units)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The layers of all units."""
        return tuple(layer.name for unit in self.units for layer in unit.layers)

    @property
    def all_schemes(self) -> set[LayerScheme]:
        """Every scheme that some layer may have."""
        return set(chain(self.fixed.values(), *(unit.choices for unit in self.units)))

    def schemes(self, candidate: Candidate) -> dict[str, LayerScheme]:
        """Return the scheme of every layer."""
        chosen = {
            layer.name: unit.choices[choice]
            for unit, choice in zip(self.units, candidate, strict=True)
            for layer in unit.layers
        }
        return {**self.fixed, **chosen}

    def recipe(self, candidate: Candidate) -> Recipe:
        return Recipe.with_exceptions(self.schemes(candidate))

    def neighbours(self, candidate: Candidate) -> Iterable[Candidate]:
        """Yield candidates in which one unit differs."""
        for number, unit in enumerate(self.units):
            for choice in range(len(unit.choices)):
                if choice != candidate[number]:
                    yield replace_choice(candidate, number, choice)


def replace_choice(candidate: Candidate, unit: int, choice: int) -> Candidate:
    return (*candidate[:unit], choice, *candidate[unit + 1 :])


def make_space(
    layers: Sequence[SearchedLayer],
    choices: Choices,
    *,
    keep: Mapping[str, SchemeLike] | None = None,
    tie: str = "none",
    free_ends: bool = False,
) -> Space:
    """Make units of layers, each with the choices that its weight's shape allows.

    `keep` gives layers, by name, module or `re:` pattern, a scheme that stays. `tie` is "none",
    "block", or patterns with commas between: the layers that one selects are a unit. The first and
    the last layer keep 8 bits, unless `free_ends` says otherwise.
    """
    if not layers:
        raise UsageError(
            "the model has no layer whose weight could be quantized",
            hint="linear layers, convolutions and tables of embeddings can be",
        )
    fixed = _fix(layers, keep or {})
    units: list[Unit] = []
    has_ends = len(layers) > 2 and not free_ends
    ends = {layers[0].name, layers[-1].name} if has_ends else set[str]()
    for group in _groups(layers, tie):
        free = [layer for layer in group if layer.name not in fixed]
        if not free:
            continue
        allowed = tuple(s for s in choices.schemes() if all(allows(each, s) for each in free))
        if ends & {layer.name for layer in free}:
            wide = tuple(s for s in allowed if s.weight is not None and s.weight.bits == 8)
            allowed = tuple(s for s in wide if s.act == Width.of(8))[:1] or wide or allowed[-1:]
        if not allowed:
            raise UsageError(
                f"layer '{free[0].name}' can have none of the schemes that are asked for",
                hint="allow more widths or groups, or keep the layer as it is",
            )
        units.append(Unit(tuple(free), allowed))
    return Space(tuple(units), fixed)


def _fix(layers: Sequence[SearchedLayer], keep: Mapping[str, SchemeLike]) -> dict[str, LayerScheme]:
    names = [layer.name for layer in layers]
    fixed: dict[str, LayerScheme] = {}
    for text, scheme in keep.items():
        pattern = NamePattern.parse(text)
        pattern.require_match(names, "the search")
        for name in names:
            if pattern.selects(name):
                fixed.setdefault(name, LayerScheme.of(scheme))
    return fixed


def _groups(layers: Sequence[SearchedLayer], tie: str) -> list[list[SearchedLayer]]:
    """Return layers by what ties them, in the order of each group's first layer."""
    patterns = [] if tie in ("none", "block") else [NamePattern.parse(p) for p in tie.split(",")]
    for pattern in patterns:
        pattern.require_match([layer.name for layer in layers], "the search")
    label: dict[str, str] = {}
    groups: dict[str, list[SearchedLayer]] = {}
    for layer in layers:
        own = _tied_to(layer, tie, patterns)
        # A weight that two layers share has one width, whatever else is tied.
        key = label.setdefault(layer.weight, own)
        groups.setdefault(key, []).append(layer)
    return list(groups.values())


def _tied_to(layer: SearchedLayer, tie: str, patterns: Sequence[NamePattern]) -> str:
    if tie == "block":
        return block_of(layer.name)
    found = next((each.text for each in patterns if each.selects(layer.name)), None)
    return layer.name if found is None else f"pattern {found}"


def block_of(name: str) -> str:
    """Return the block that a layer belongs to: `layers.3` of `layers.3.attn.q`.

    A number within the name ends the block's own; without one it is the outermost module. What is
    numbered itself, such as `features.3`, is a block.
    """
    parts = name.split(".")
    for number, part in enumerate(parts[:-1]):
        if part.isdigit():
            return ".".join(parts[: number + 1])
    if len(parts) > 2 or (len(parts) == 2 and not parts[1].isdigit()):
        return parts[0]
    return name


def allows(layer: SearchedLayer, scheme: LayerScheme) -> bool:
    """Return whether a weight of this shape can be quantized so."""
    from fewbit.numerics import check_accumulator, weight_scale_shape
    from fewbit.quant.scheme import check_offsets

    try:
        scales = weight_scale_shape(layer.shape, scheme.granularity, scheme.group)
        check_offsets(scheme, layer.shape)
        if scheme.act is not None and scheme.weight is not None and not layer.is_table:
            groups = scales[1] if len(scales) == 2 else 1
            check_accumulator(prod(layer.shape[1:]) // groups, scheme.act, scheme.weight, False)
    except Error:
        return False
    return not (scheme.group is not None and len(layer.shape) != 2)
