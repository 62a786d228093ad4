"""What a search is about, known before anything is run: objective, space and limits.

Costs follow from shapes, so whether budgets can be met at all is known at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fewbit.errors import Error, UsageError
from fewbit.numerics import Width
from fewbit.numerics.widths import WidthLike
from fewbit.quant.scheme import LayerScheme, SchemeLike
from fewbit.search.budget import Budget, Limit, make_limits
from fewbit.search.costs import Cost
from fewbit.search.layer_costs import bops, cbops, size
from fewbit.search.load import Loaded
from fewbit.search.measured_costs import Measured
from fewbit.search.objective import Measure, Objective, find_objective
from fewbit.search.space import FEW_ACTS, WEIGHTS, Choices, Space, make_space
from fewbit.search.target_costs import cycles, energy, latency, memory, supported_widths
from fewbit.targets.registry import find_target

RULES = ("max", "mean", "mse")
ACT_SCALES = ("dynamic", "static")
COSTS_OF_ACTS = ("bops", "cbops", "cycles", "energy")
"""Costs that depend on the widths of activations."""
MANY = 10**7


@dataclass(frozen=True)
class SpaceOptions:
    """What layers may have, as it was asked for; what is None follows from target and budgets."""

    weights: tuple[WidthLike, ...] | None = None
    acts: tuple[WidthLike, ...] | None = None
    rules: tuple[str, ...] = ("max", "mse")
    groups: tuple[int, ...] = ()
    act_scales: tuple[str, ...] = ("dynamic",)
    schemes: tuple[SchemeLike, ...] = ()
    """What layers may have, one by one, in place of all the above."""
    tie: str = "none"
    keep: Mapping[str, SchemeLike] = field(default_factory=dict[str, SchemeLike])
    free_ends: bool = False

    def choices(self, target: str, budgets: Sequence[Budget]) -> Choices:
        """Return the widths that the target has, of those that are asked for."""
        device = supported_widths(find_target(target))
        if self.schemes:
            return Choices((), given=_read_schemes(self.schemes, device, target))
        depends = any(each.cost.partition(":")[0] in COSTS_OF_ACTS for each in budgets)
        weights = _supported(self.weights or WEIGHTS, device, target, self.weights is not None)
        few = self.acts or (FEW_ACTS if depends else ("8",))
        acts = _supported(few, device, target, self.acts is not None)
        _check_words(self.rules, RULES, "rule", "of scales of weights")
        _check_words(self.act_scales, ACT_SCALES, "kind", "of scales of activations")
        return Choices(weights, acts, self.rules, (None, *self.groups), self.act_scales)


def _read_schemes(
    texts: Sequence[SchemeLike], device: tuple[int, ...] | None, target: str
) -> tuple[LayerScheme, ...]:
    schemes = tuple(LayerScheme.of(each) for each in texts)
    widths = [width for each in schemes for width in (each.weight, each.act) if width is not None]
    _supported(tuple(widths), device, target, True)
    return schemes


def _check_words(given: tuple[str, ...], known: tuple[str, ...], what: str, of: str) -> None:
    """Refuse a list that is empty, or has what is not known."""
    wrong = next((each for each in given if each not in known), None)
    if wrong is not None or not given:
        said = "there is no" if wrong is None else f"there is no {what} '{wrong}'"
        said = f"{said} {what} {of}" if wrong is None else f"{said} {of}"
        raise UsageError(said, hint=f"{what}s are {', '.join(known)}")


def _supported(
    widths: tuple[WidthLike, ...], device: tuple[int, ...] | None, target: str, asked: bool
) -> tuple[Width, ...]:
    wanted = tuple(dict.fromkeys(Width.of(each) for each in widths))
    if device is None:
        return wanted
    known = tuple(each for each in wanted if each.bits in device)
    missing = [str(each) for each in wanted if each.bits not in device]
    if asked and missing:
        raise UsageError(
            f"{target} has no operands of {', '.join(missing)} bits",
            hint=f"it has {', '.join(map(str, device))}; others would be stored in the next wider",
        )
    return known


@dataclass(frozen=True)
class Plan:
    """What is chosen from, what it may cost, and what is good."""

    objective: Objective
    space: Space
    limits: list[Limit]

    @property
    def text(self) -> str:
        """What is chosen from, in a few words."""
        units, size = len(self.space.units), self.space.size
        shown = f"{size:,}" if size < MANY else f"{size:.1e}"
        return f"{shown} recipes of {units} layers"


def make_plan(
    loaded: Loaded,
    options: SpaceOptions,
    target: str,
    budgets: Sequence[Budget],
    objective: str | Measure | None,
    measured: Measured | None = None,
) -> Plan:
    """Return the plan of a search; refuse one that has nothing to choose, or cannot be met."""
    data = loaded.data
    chosen = find_objective(
        objective or data.usual, has_data=data.is_real, has_labels=data.has_labels
    )
    space = _space(loaded, options, target, budgets)
    if all(len(unit.choices) == 1 for unit in space.units):
        raise UsageError(
            f"there is nothing to choose: every layer has one scheme on {target}",
            hint="allow more widths, or choose a target with several",
        )
    costs = list(_costs(loaded, space, target, budgets, measured))
    limits = make_limits(costs, budgets, space)
    check_limits(limits, lambda: _free_limits(loaded, options, target, budgets, costs))
    return Plan(chosen, space, limits)


def _space(loaded: Loaded, options: SpaceOptions, target: str, budgets: Sequence[Budget]) -> Space:
    return make_space(
        [layer.searched for layer in loaded.layers.values()],
        options.choices(target, budgets),
        keep={**dict.fromkeys(loaded.unsearched, "fp"), **options.keep},
        tie=options.tie,
        free_ends=options.free_ends,
    )


def _costs(
    loaded: Loaded, space: Space, target: str, budgets: Sequence[Budget], measured: Measured | None
) -> Iterator[Cost]:
    """Yield the costs that have budgets, in their order; and the size always."""
    for name in dict.fromkeys([*(each.cost for each in budgets), "size"]):
        kind, _, machine = name.partition(":")
        match kind:
            case "size":
                yield size(loaded.program, loaded.layers)
            case "bops":
                yield bops(loaded.layers)
            case "cbops":
                yield cbops(loaded.layers)
            case "memory":
                constants = size(loaded.program, loaded.layers)
                yield memory(loaded.program, constants, find_target(target))
            case "cycles" | "latency" if measured is not None:
                yield measured.cost(kind, machine, space)
            case "cycles":
                yield cycles(loaded.program, loaded.inputs, find_target(target), machine)
            case "energy":
                yield energy(loaded.program, loaded.inputs, find_target(target), machine)
            case _:
                yield latency(loaded.program, loaded.inputs, find_target(target))


def _free_limits(
    loaded: Loaded,
    options: SpaceOptions,
    target: str,
    budgets: Sequence[Budget],
    costs: Sequence[Cost],
) -> list[Limit]:
    """Return the limits in a space whose first and last layer are free."""
    space = _space(loaded, replace(options, free_ends=True), target, budgets)
    return make_limits(costs, budgets, space)


def check_limits(limits: Sequence[Limit], free: Callable[[], list[Limit]]) -> None:
    """Refuse limits that no recipe meets, alone or together."""
    for number, limit in enumerate(limits):
        if limit.is_reachable:
            continue
        assert limit.limit is not None
        least = free()[number].table.least
        if least < limit.table.least:
            hint = f"with the first and last layer free (--free-ends) it is {limit.show(least)}"
        else:
            hint = "allow more, or fewer bits: --weights, --acts"
        raise Error(
            f"no recipe has {limit.name} of {limit.show(limit.limit)} or less: "
            f"the least is {limit.show(limit.table.least)}",
            hint=hint,
        )
    limited = [each for each in limits if each.limit is not None]
    cheapest = [each.table.cheapest() for each in limited]
    if len(limited) < 2 or any(all(x.is_met(c) for x in limited) for c in cheapest):
        return
    from fewbit.search.integer_program import solve

    if solve([[0.0] * len(row) for row in limited[0].table.rows], limited) is None:
        names = " and ".join(each.name for each in limited)
        raise Error(
            f"no recipe meets the budgets of {names} together", hint="allow more of one of them"
        )
