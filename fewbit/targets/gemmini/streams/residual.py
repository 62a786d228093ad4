"""The sum of two tensors of bytes, each with a scale: round(a · a_scale) + round(b · b_scale).

Each term is rounded to a whole number as it is read, so this is exact only where scales are whole;
a float sum of layers is left to the host.
"""

from __future__ import annotations

from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import Command, Pointer
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.targets.gemmini.streams.output import I32, Output, Y
from fewbit.targets.gemmini.tiler import parts

A, B = Pointer("a"), Pointer("b")


def residual_add(
    rows: int,
    cols: int,
    *,
    a_scale: float = 1.0,
    b_scale: float = 1.0,
    output: Output = I32,
    hardware: Hardware | None = None,
) -> list[Command]:
    """Return the commands of y = a + b, of rows x cols."""
    hardware = hardware or Hardware()
    dim = hardware.dim
    most = hardware.half_accumulator // dim
    across = min(hardware.blocks(cols), most)
    down = min(hardware.blocks(rows), most // across)
    commands: list[Command] = [
        c.ConfigExecute(),
        output.config(cols),
        c.ConfigLoad(id=0, stride=cols, scale=a_scale, shrunk=1),
        c.ConfigLoad(id=1, stride=cols, scale=b_scale, shrunk=1),
    ]
    for row, height in parts(rows, down * dim):
        for col, width in parts(cols, across * dim):
            i, j = hardware.blocks(height), hardware.blocks(width)
            at = row * cols + col
            commands += [
                c.LoopBounds(i * dim - height, j * dim - width, 0, i, j, 0),
                c.LoopAddressesAB(A + at, B + at),
                c.LoopAddressesDC(0, Y + at * output.size),
                c.LoopStridesAB(cols, cols),
                c.LoopStridesDC(0, cols),
                c.LoopWs(full_c=output.full, activation=output.activation, resadd=1),
            ]
    return commands
