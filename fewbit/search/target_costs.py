"""Costs on a target: cycles where it has a model of its layers, seconds on this machine's CPU.

Both are sums over layers; what is between layers is not in them, nor are layers that a device
leaves to its host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from fewbit.cost.cycles.layers import IntegerLayer, integer_layers
from fewbit.errors import UsageError
from fewbit.program.program import Program
from fewbit.quant.quantize import quantize
from fewbit.quant.scheme import LayerScheme
from fewbit.search.costs import Cost
from fewbit.search.space import WIDE
from fewbit.targets.target import Target

USUAL = "high"
"""The core that is meant where a target models several and none is named."""


def cycles(program: Program, inputs: Sequence[Any], target: Target, machine: str = "") -> Cost:
    """Return the cycles of layers on a machine of the target."""
    layers = integer_layers(quantize(program, WIDE), inputs)
    machines = _machines(target, layers)
    name = machine or (USUAL if USUAL in machines else machines[0])
    if name not in machines:
        raise UsageError(
            f"{target.name} models no '{machine}'",
            hint=f"machines: {', '.join(f'cycles:{each}' for each in machines)}",
        )

    @cache
    def modelled(weight: int, act: int) -> dict[str, float]:
        asked = [replace(each, weight_bits=weight, act_bits=act) for each in layers]
        model = target.model_layers(asked)
        assert model is not None
        totals: dict[str, float] = {}
        for layer, number in zip(asked, model.cycles[name], strict=True):
            totals[layer.name] = totals.get(layer.name, 0.0) + number
        return totals

    def rule(layer: str, scheme: LayerScheme) -> float:
        weight = 8 if scheme.weight is None else scheme.weight.bits
        act = 8 if scheme.act is None else scheme.act.bits
        return modelled(weight, act)[layer]

    names = tuple(dict.fromkeys(each.name for each in layers))
    return Cost(f"cycles:{name}" if len(machines) > 1 else "cycles", "cycles", rule, names)


def _machines(target: Target, layers: Sequence[IntegerLayer]) -> list[str]:
    model = target.model_layers(layers)
    if model is None:
        raise UsageError(
            f"there is no model of cycles on {target.name}",
            hint="choose -t vexii or bitfusion, or a budget of latency, size or bops",
        )
    return list(model.cycles)


def latency(program: Program, inputs: Sequence[Any], target: Target) -> Cost:
    """Return the seconds that this machine's kernels take, as the cost model says."""
    from fewbit.cost.cpu.layers import layer_times

    if target.name != "cpu":
        raise UsageError(
            f"latency is modelled for cpu, and not for {target.name}",
            hint="a budget of cycles is for hardware that is simulated",
        )
    narrow: dict[str, dict[int, float]] = {}
    floats: dict[str, float] = {}
    for time in layer_times(program, inputs):
        widths = narrow.setdefault(time.name, dict.fromkeys(time.by_width, 0.0))
        for bits, seconds in time.by_width.items():
            widths[bits] += seconds
        floats[time.name] = floats.get(time.name, 0.0) + time.seconds

    def rule(layer: str, scheme: LayerScheme) -> float:
        if scheme.weight is None or scheme.act is None:
            return floats[layer]
        return narrow[layer][scheme.weight.bits]

    return Cost("latency", "s", rule, tuple(narrow))


def supported_widths(target: Target) -> tuple[int, ...] | None:
    """Return the bits that a device has operands of; None where there is no such limit."""
    from fewbit.targets.device import Device

    return target.widths if isinstance(target, Device) else None
