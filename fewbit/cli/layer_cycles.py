"""The table of `fewbit inspect layers --cycles`: each layer on hardware that is modelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewbit.cost.cycles.layers import integer_layers
from fewbit.program.program import Program
from fewbit.targets.registry import all_targets

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Row:
    """A layer, with its cycles by machine."""

    name: str
    widths: str
    cycles: dict[str, float]
    errors: dict[str, float]
    """How far off these are on average, of machines where that is known."""

    def cell(self, machine: str) -> str:
        error = self.errors.get(machine)
        known = "" if error is None else f" ±{100 * error:.0f} %"
        return f"{self.cycles[machine]:,.0f}{known}"


@dataclass(frozen=True)
class CycleTable:
    """The cycles of all layers, on all machines."""

    title: str
    machines: tuple[str, ...]
    rows: list[Row]


def estimate(program: Program, inputs: Sequence[Any]) -> CycleTable:
    """Return all layers of integers, on the machines of all targets."""
    layers = integer_layers(program, inputs)
    models = [counts for each in all_targets() if (counts := each.model_layers(layers)) is not None]
    cycles = {machine: counts for model in models for machine, counts in model.cycles.items()}
    errors = {machine: parts for model in models for machine, parts in model.errors.items()}
    rows = [
        Row(
            layer.name,
            f"w{layer.weight_bits}a{layer.act_bits}",
            {machine: counts[number] for machine, counts in cycles.items()},
            {machine: parts[number] for machine, parts in errors.items()},
        )
        for number, layer in enumerate(layers)
    ]
    return CycleTable("; ".join(model.title for model in models), tuple(cycles), rows)


def plain(table: CycleTable) -> list[dict[str, object]]:
    """Return the table as JSON has it."""
    return [
        {"name": row.name, "widths": row.widths, **row.cycles, "errors": row.errors}
        for row in table.rows
    ]


def show(found: CycleTable, console: Console) -> None:
    from rich.table import Table

    table = Table(title=f"Estimated cycles of layers: {found.title}", title_justify="left")
    table.add_column("layer", overflow="fold")
    for name in ("bits", *found.machines):
        table.add_column(name, justify="right")
    for row in found.rows:
        table.add_row(row.name, row.widths, *(row.cell(m) for m in found.machines))
    table.add_section()
    totals = (sum(row.cycles[name] for row in found.rows) for name in found.machines)
    table.add_row(f"{len(found.rows)} layers", "", *(f"{total:,.0f}" for total in totals))
    console.print(table)
