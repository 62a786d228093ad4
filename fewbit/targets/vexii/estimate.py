"""What the cores would take for a run: instructions of each class, times what these cost.

The programs are the same for all cores, so one run serves for all. A layer is bound by memory where
loads and stores, with lines that the data cache fetches for them, take more than everything else.
The dot unit could start one dot product a cycle; what it does of that is the utilization.
"""

from __future__ import annotations

from collections.abc import Mapping

from fewbit.codegen.bare_metal.processor import CORES
from fewbit.cost.cycles import instruction_cycles
from fewbit.riscv.instructions import Kind
from fewbit.targets.device import Estimate, Events, LayerCost
from fewbit.targets.vexii.simulate import MISSES, TAKEN

MEMORY = (Kind.LOAD, Kind.STORE, Kind.FLOAT_LOAD, Kind.FLOAT_STORE)
KINDS = {str(kind) for kind in Kind}


def estimates(events: Events) -> tuple[Estimate, ...]:
    """Return an estimate for each core."""
    return tuple(_estimate(core, events) for core in CORES)


def _estimate(core: str, events: Events) -> Estimate:
    counts = events.counts
    whole = instruction_cycles(core, _kinds(counts), counts.get(TAKEN, 0), _misses(counts))
    return Estimate(
        machine=core,
        cycles=whole.cycles,
        error=f"+-{100 * whole.error:.0f} % expected; {whole.source}",
        layers=tuple(_layer(core, layer.name, layer.counts) for layer in events.layers),
    )


def _layer(core: str, name: str, counts: Mapping[str, int]) -> LayerCost:
    kinds = _kinds(counts)
    cycles = instruction_cycles(core, kinds, counts.get(TAKEN, 0), _misses(counts)).cycles
    moving = {str(kind): kinds.get(kind, 0) for kind in MEMORY}
    memory = instruction_cycles(core, moving, misses=_misses(counts)).cycles
    dots = counts.get(Kind.DOT, 0)
    return LayerCost(
        name,
        cycles,
        bytes=counts.get("bytes"),
        utilization=dots / cycles if dots else None,
        bound="memory" if 2 * memory > cycles else "compute",
    )


def _misses(counts: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(counts[name] for name in MISSES if name in counts)


def _kinds(counts: Mapping[str, int]) -> dict[str, int]:
    return {kind: count for kind, count in counts.items() if kind in KINDS}
