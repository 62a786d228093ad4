"""The table of estimated cycles."""

from __future__ import annotations

import numpy as np
from rich.console import Console

from fewbit.cli.layer_cycles import estimate, plain, show
from fewbit.cost.cycles import CACHES, Linear, cycles
from fewbit.models import lenet_text
from fewbit.program.program import Program
from fewbit.targets.bitfusion.layer import Layer
from fewbit.targets.bitfusion.schedule import cost


def test_every_layer_on_every_machine() -> None:
    program = Program.parse(lenet_text())
    (given,) = program.signature.inputs
    table = estimate(program, [np.zeros([size or 1 for size in given.shape or ()], np.float32)])
    rows = table.rows
    assert len(rows) == 5
    assert table.machines == (*CACHES, "bitfusion")
    assert all(row.cycles[name] > 0 for row in rows for name in table.machines)
    last = Layer(1, 84, 10, act_bits=8, weight_bits=4)
    assert rows[-1].cycles["bitfusion"] == cost(last).cycles
    assert plain(table)[0]["widths"] == "w8a8"
    assert set(rows[0].errors) == set(CACHES)
    assert rows[0].cell("bitfusion") == f"{rows[0].cycles['bitfusion']:,.0f}"
    last_error = cycles("high", Linear(1, 10, 84)).error
    assert rows[-1].cell("high").endswith(f" ±{100 * last_error:.0f} %")
    console = Console(width=120, record=True)
    show(table, console)
    shown = console.export_text()
    assert "small, high, cacheless with MiCo's library; BitFusion" in " ".join(shown.split())
    assert "5 layers" in shown
