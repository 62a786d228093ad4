"""The table of `fewbit inspect --cycles`: each layer on hardware that is modelled.

Cores are taken to run MiCo's library, with which they were measured; what programs take that fewbit
compiles for them is for `fewbit run --stats` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewbit.cost.cycles import CACHES, Conv2d
from fewbit.cost.cycles.layers import LayerCycles, program_cycles
from fewbit.program.program import Program
from fewbit.targets.bitfusion.layer import Layer
from fewbit.targets.bitfusion.schedule import cost

if TYPE_CHECKING:
    from rich.console import Console

BITFUSION = "bitfusion"
MACHINES = (*CACHES, BITFUSION)
TITLE = f"Estimated cycles of layers: {', '.join(CACHES)} with MiCo's library; BitFusion"


@dataclass(frozen=True)
class Row:
    """A layer, with its cycles by machine."""

    name: str
    widths: str
    cycles: dict[str, float]


def estimate(program: Program, inputs: Sequence[Any]) -> list[Row]:
    """All layers of integers."""
    by_core = {core: program_cycles(core, program, inputs) for core in CACHES}
    rows: list[Row] = []
    for number, layers in enumerate(zip(*by_core.values(), strict=True)):
        found = {core: layer.estimate.cycles for core, layer in zip(CACHES, layers, strict=True)}
        found[BITFUSION] = cost(_bitfusion_layer(layers[0], number == 0)).cycles
        widths = f"w{layers[0].weight_bits}a{layers[0].act_bits}"
        rows.append(Row(layers[0].name, widths, found))
    return rows


def plain(rows: list[Row]) -> list[dict[str, object]]:
    """The table as JSON has it."""
    return [{"name": row.name, "widths": row.widths, **row.cycles} for row in rows]


def show(rows: list[Row], console: Console) -> None:
    from rich.table import Table

    table = Table(title=TITLE, title_justify="left")
    table.add_column("layer", overflow="fold")
    for name in ("bits", *MACHINES):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row.name, row.widths, *(f"{row.cycles[name]:,.0f}" for name in MACHINES))
    table.add_section()
    totals = (sum(row.cycles[name] for row in rows) for name in MACHINES)
    table.add_row(f"{len(rows)} layers", "", *(f"{total:,.0f}" for total in totals))
    console.print(table)


def _bitfusion_layer(layer: LayerCycles, first: bool) -> Layer:
    shape = layer.shape
    if not isinstance(shape, Conv2d):
        return Layer(shape.rows, shape.inputs, shape.outputs, layer.act_bits, layer.weight_bits)
    return Layer(
        shape.batch,
        shape.inputs,
        shape.outputs,
        layer.act_bits,
        layer.weight_bits,
        shape.image,
        shape.kernel,
        shape.stride,
        shape.groups,
        im2col=first,
    )
