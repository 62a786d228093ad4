"""Costs on a target: cycles and joules where it has a model of its layers, seconds on this CPU.

They are sums over layers; what is between layers is not in them, nor are layers that a device
leaves to its host. Memory is what a compiled program plans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
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
    return _modelled("cycles", "cycles", program, inputs, target, machine)


def energy(program: Program, inputs: Sequence[Any], target: Target, machine: str = "") -> Cost:
    """Return the joules of layers on a machine of the target."""
    return _modelled("energy", "J", program, inputs, target, machine)


def _modelled(
    what: str, unit: str, program: Program, inputs: Sequence[Any], target: Target, machine: str
) -> Cost:
    layers = integer_layers(quantize(program, WIDE), inputs)
    machines = list(_figures(what, target, layers))
    name = machine or (USUAL if USUAL in machines else machines[0])
    if name not in machines:
        raise UsageError(
            f"{target.name} models no '{machine}'",
            hint=f"machines: {', '.join(f'{what}:{each}' for each in machines)}",
        )

    @cache
    def modelled(weight: int, act: int) -> dict[str, float]:
        asked = [replace(each, weight_bits=weight, act_bits=act) for each in layers]
        totals: dict[str, float] = {}
        for layer, number in zip(asked, _figures(what, target, asked)[name], strict=True):
            totals[layer.name] = totals.get(layer.name, 0.0) + number
        return totals

    def rule(layer: str, scheme: LayerScheme) -> float:
        weight = 8 if scheme.weight is None else scheme.weight.bits
        act = 8 if scheme.act is None else scheme.act.bits
        return modelled(weight, act)[layer]

    names = tuple(dict.fromkeys(each.name for each in layers))
    return Cost(f"{what}:{name}" if len(machines) > 1 else what, unit, rule, names)


def _figures(
    what: str, target: Target, layers: Sequence[IntegerLayer]
) -> Mapping[str, Sequence[float]]:
    """Return what the target's model says of layers, by machine."""
    model = target.model_layers(layers)
    figures = None
    if model is not None:
        figures = {"cycles": model.cycles, "energy": model.energy}[what]
    if not figures:
        known = "-t vexii or bitfusion" if what == "cycles" else "-t bitfusion"
        raise UsageError(
            f"there is no model of {what} on {target.name}",
            hint=f"choose {known}, or a budget of latency, size or bops",
        )
    return figures


def memory(program: Program, size: Cost, target: Target) -> Cost:
    """Return the bytes of all constants and of the arena, in which everything else is.

    What lies in the arena between layers has the same size at all widths, so it is that of 8 bits.
    """
    from fewbit.targets.compile import compile

    with TemporaryDirectory(prefix="fewbit-search-") as folder:
        compiled = compile(quantize(program, WIDE), target.name, Path(folder) / "net", name="net")
        arena = compiled.manifest.arena_bytes
    if arena is None:
        raise UsageError(
            f"how much memory is planned on {target.name} is not known for this model",
            hint="choose -t cpu and fixed sizes of inputs, or a budget of size",
        )
    return replace(size, name="memory", fixed=size.fixed + arena)


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
