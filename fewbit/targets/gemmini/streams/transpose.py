"""A matrix of bytes transposed: the array multiplies its transpose by the identity."""

from __future__ import annotations

from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import ACCUMULATOR, GARBAGE, Command, Pointer
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.targets.gemmini.streams.output import Output, X, Y
from fewbit.targets.gemmini.tiler import parts

IDENTITY = Pointer("identity")
"""A matrix of the array's size with ones on its diagonal."""


def transpose(rows: int, cols: int, hardware: Hardware | None = None) -> list[Command]:
    """Return the commands of y = x transposed, of rows x cols."""
    hardware = hardware or Hardware()
    dim = hardware.dim
    held, transposed = 0, dim
    commands: list[Command] = [
        c.ConfigExecute(a_transpose=1),
        Output(1.0).config(rows),
        c.ConfigLoad(id=0, stride=cols),
        c.ConfigLoad(id=1, stride=dim),
        c.Mvin2(IDENTITY, held),
    ]
    for row, height in parts(rows, dim):
        for col, width in parts(cols, dim):
            first = row == 0 and col == 0
            compute = c.ComputePreloaded if first else c.ComputeAccumulated
            commands += [
                c.Mvin(X + row * cols + col, transposed, width, height),
                c.Preload(held if first else GARBAGE, dim, dim, ACCUMULATOR, height, width),
                compute(transposed, height, width),
                c.Mvout(Y + col * rows + row, ACCUMULATOR, height, width),
            ]
    return commands
