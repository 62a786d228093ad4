"""What a simulated run counted and would take, as text: the same for all devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fewbit.targets.device import Estimate, Events, LayerEvents

COLUMNS = 6
"""Counts of a layer that are shown; those of the most in all layers."""
TOTAL = "instructions"


def stats_text(events: Events, estimates: Sequence[Estimate]) -> str:
    """Return counts of the run, counts of its layers, and what each machine would take."""
    parts = [_counts(events), _layers(events.layers), *map(_estimate, estimates)]
    return "\n\n".join(part for part in parts if part)


def _counts(events: Events) -> str:
    total = events.counts.get(TOTAL)
    rows = [
        (
            name,
            f"{count:,}",
            f"{100 * count / total:.1f} %" if total and name not in (TOTAL, "bytes") else "",
        )
        for name, count in _by_size(events.counts)
    ]
    return table(("counted in the run", "", ""), rows)


def _layers(layers: Sequence[LayerEvents]) -> str:
    if not layers:
        return ""
    sums: dict[str, int] = {}
    for layer in layers:
        for name, count in layer.counts.items():
            sums[name] = sums.get(name, 0) + count
    shown = [name for name, _ in _by_size(sums)][:COLUMNS]
    if "dot" in sums and "dot" not in shown:
        shown[-1] = "dot"
    rows = [(each.name, *(f"{each.counts.get(name, 0):,}" for name in shown)) for each in layers]
    return table(("layer", *shown), rows)


def _by_size(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: -pair[1])


def _estimate(estimate: Estimate) -> str:
    energy = "" if estimate.energy is None else f", {estimate.energy / 1e6:,.2f} uJ"
    head = f"{estimate.machine}: {estimate.cycles:,.0f} cycles{energy} ({estimate.error})"
    if not estimate.layers:
        return head
    rows = [
        (
            layer.name,
            f"{layer.cycles:,.0f}",
            "" if layer.bytes is None else f"{layer.bytes:,}",
            "" if layer.utilization is None else f"{100 * layer.utilization:.1f} %",
            layer.bound or "",
        )
        for layer in estimate.layers
    ]
    return head + "\n" + table(("layer", "cycles", "bytes", "utilization", "bound by"), rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return columns side by side; all but the first are right-aligned."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines: list[str] = []
    for row in (head, *rows):
        first, *others = (
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join([first, *others]).rstrip())
    return "\n".join(lines)
