"""Costs that are measured on the target, for budgets of cycles and latency.

One program for each scheme, which has it in all layers that can, says what the layers take with it,
and what is between them. So a candidate's cost is a sum that the integer program can use, and no
candidate need be compiled to know it. What is chosen in the end is measured as a whole, since a
layer also depends on those beside it: the one in front rounds its activations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fewbit.base.progress import progress
from fewbit.errors import UsageError
from fewbit.program.program import Program
from fewbit.quant.calibration import Calibration
from fewbit.quant.scheme import LayerScheme
from fewbit.search.costs import Cost
from fewbit.search.evaluation import versions
from fewbit.search.layer_costs import FloatLayer
from fewbit.search.meters import WHOLE, Amounts, Meter
from fewbit.search.program_subject import quantize_program
from fewbit.search.space import WIDE, Space, allows
from fewbit.search.store import Key, Row, Store
from fewbit.search.target_costs import USUAL


@dataclass(frozen=True)
class Measured:
    """What schemes take on a target."""

    program: Program
    """Any weights will do: times do not depend on their values."""
    model: str
    """The hash of what it computes, but for its weights."""
    layers: Mapping[str, FloatLayer]
    meter: Meter
    store: Store
    prefixes: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """What stands before layers in amounts, by the name of each cost that was made."""

    def cost(self, kind: str, machine: str, space: Space) -> Cost:
        """Return the cost of a kind on a machine, with all that the space asks for measured."""
        self._measure([WIDE, *sorted(space.all_schemes, key=str)])
        wide = self._amounts(WIDE)
        prefix = self._prefix(machine, wide)
        shares = self._shares(prefix, wide)

        def rest(amounts: Amounts) -> float:
            named = sum(amounts.get(prefix + name, 0.0) for name in self.layers)
            return amounts[prefix + WHOLE] - named

        def rule(name: str, scheme: LayerScheme) -> float:
            amounts = self._amounts(scheme)
            between = (rest(amounts) - rest(wide)) * shares.get(name, 0.0)
            return amounts.get(prefix + name, 0.0) + between

        several = len(_machines(wide)) > 1
        name = f"{kind}:{prefix[:-1]}" if several else kind
        self.prefixes[name] = prefix
        return Cost(name, self.meter.unit, rule, tuple(self.layers), rest(wide))

    def _shares(self, prefix: str, amounts: Amounts) -> dict[str, float]:
        """Return which part of what changes between layers is put down to each of them.

        Code that no layer is named in is that of layers without a name, if there are any.
        """
        unnamed = [name for name in self.layers if prefix + name not in amounts]
        macs = {name: self.layers[name].searched.macs for name in unnamed or self.layers}
        total = sum(macs.values()) or 1
        return {name: each / total for name, each in macs.items()}

    def compare(
        self, schemes: Mapping[str, LayerScheme], baseline: Mapping[str, LayerScheme]
    ) -> dict[str, float]:
        """Return what a whole candidate takes, in parts of another one.

        They are by cost.
        """
        key = self._key(schemes, "whole")
        with self.store.claim(key) as row:
            if row is None:
                first, second = self.meter.compare(
                    self._quantize(schemes), self._quantize(baseline)
                )
                parts = {name: first[name] / second[name] for name in filter(_is_whole, first)}
                row = Row(key, parts, 0, 0.0)
                self.store.put(row)
        return {name: row.metrics[prefix + WHOLE] for name, prefix in self.prefixes.items()}

    def _prefix(self, machine: str, amounts: Amounts) -> str:
        machines = _machines(amounts)
        if not machines:
            return ""
        name = machine or (USUAL if USUAL in machines else machines[0])
        if name not in machines:
            raise UsageError(
                f"there is no machine '{machine}' of this target",
                hint=f"machines: {', '.join(machines)}",
            )
        return f"{name}:"

    def _measure(self, schemes: Iterable[LayerScheme]) -> None:
        """Measure all that is not known yet."""
        plain = list(dict.fromkeys(map(_plain, schemes)))
        new = [each for each in plain if self.store.get(self._uniform_key(each)) is None]
        with progress("Measuring layers on the target", len(new)) as step:
            for each in new:
                self._amounts(each)
                step()

    def _amounts(self, scheme: LayerScheme) -> Amounts:
        plain = _plain(scheme)
        key = self._uniform_key(plain)
        with self.store.claim(key) as row:
            if row is None:
                row = Row(key, self.meter.layers(self._quantize(self._uniform(plain))), 0, 0.0)
                self.store.put(row)
        return row.metrics

    def _uniform(self, scheme: LayerScheme) -> dict[str, LayerScheme]:
        """Return this scheme for all layers that can have it, and 8 bits for others."""
        return {
            name: scheme if scheme.is_float or allows(each.searched, scheme) else WIDE
            for name, each in self.layers.items()
        }

    def _uniform_key(self, scheme: LayerScheme) -> Key:
        return self._key(self._uniform(scheme), "layers")

    def _key(self, schemes: Mapping[str, LayerScheme], what: str) -> Key:
        return Key.of(schemes, self.model, "none", f"{what}: {self.meter.how}", versions())

    def _quantize(self, schemes: Mapping[str, LayerScheme]) -> Program:
        static = {name: 1.0 for name, scheme in schemes.items() if scheme.static}
        return quantize_program(self.program, schemes, Calibration(static))


def _machines(amounts: Amounts) -> list[str]:
    return [name.removesuffix(":") for name in filter(_is_whole, amounts) if name != WHOLE]


def _is_whole(name: str) -> bool:
    return name == WHOLE or name.endswith(f":{WHOLE}")


def _plain(scheme: LayerScheme) -> LayerScheme:
    """Return a scheme without what no time depends on: where scales come from."""
    if scheme.weight is None or scheme.mode == "offset":
        return scheme
    return scheme.model_copy(update={"mode": "max"})
