"""What a run might take. UNVALIDATED: no measured cycles of a Gemmini were at hand.

Three engines work at the same time, and the busiest decides. On the array, a matmul takes as many
cycles as rows enter it, but a full tile where weights change; loads and stores take the bus's bytes
a cycle and a few cycles for each command. The host's instructions count one cycle each, and run
while the accelerator waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import ACCUMULATOR, FULL, Command
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.simulators.gemmini.loop_conv import ConvLoop, conv_commands
from fewbit.simulators.gemmini.loop_matmul import matmul_commands
from fewbit.targets.device import Estimate, Events, LayerCost
from fewbit.targets.gemmini.call_streams import Stream

ERROR = "unvalidated: no measured cycles to compare with"
MOVE_CYCLES = 8
"""Cycles of a load or store beside its bytes."""


def estimate_cycles(streams: Sequence[Stream], hardware: Hardware, events: Events) -> Estimate:
    """Return layers on the accelerator, and the host's instructions."""
    sent = [layer.counts["commands"] for layer in events.layers] or [
        len(s.commands) for s in streams
    ]
    layers = tuple(
        layer_cost(stream, hardware, count // len(stream.commands))
        for stream, count in zip(streams, sent, strict=False)
    )
    host = events.counts.get("host instructions", 0)
    return Estimate(
        machine=f"gemmini {hardware.dim}x{hardware.dim}",
        cycles=sum(layer.cycles for layer in layers) + host,
        error=ERROR,
        layers=layers,
    )


def layer_cost(stream: Stream, hardware: Hardware, times: int = 1) -> LayerCost:
    """Return the cost of a stream that is sent so many times."""
    array = load = store = 0.0
    moved = 0
    wide = [False, False, False]
    store_config = c.ConfigStore()
    for command in expand_loops(stream.commands, hardware):
        match command:
            case c.ConfigLoad():
                wide[command.id] = not command.shrunk
            case c.ConfigStore():
                store_config = command
            case c.ComputePreloaded() | c.ComputeAccumulated():
                array += hardware.dim if isinstance(command, c.ComputePreloaded) else 0
                array += max(command.a_rows, 4)
            case c.Mvin() | c.Mvin2() | c.Mvin3():
                number = {c.Mvin: 0, c.Mvin2: 1, c.Mvin3: 2}[type(command)]
                size = 4 if command.local & ACCUMULATOR and wide[number] else 1
                count = command.rows * command.cols * size if command.dram else 0
                load += _transfer(count, hardware)
                moved += count
            case c.Mvout():
                size = 4 if command.local & FULL else 1
                pooled = store_config.porows * store_config.pocols
                rows = pooled if store_config.pool_stride else command.rows
                count = rows * command.cols * size
                store += _transfer(count, hardware)
                moved += count
            case _:
                pass
    cycles = max(array, load, store)
    peak = cycles * hardware.dim**2
    return LayerCost(
        name=stream.name,
        cycles=cycles * times,
        bytes=moved * times,
        utilization=stream.macs / peak if peak and stream.macs else None,
        bound="compute" if array >= max(load, store) else "memory",
    )


def _transfer(bytes: int, hardware: Hardware) -> float:
    return MOVE_CYCLES + bytes / hardware.bus_bytes


def expand_loops(commands: Iterable[Command], hardware: Hardware) -> Iterable[Command]:
    """Return the commands that loop commands are carried out as, in the place of these."""
    loop: dict[type[Command], Command] = {}
    store = c.ConfigStore()
    for command in commands:
        loop[type(command)] = command
        if isinstance(command, c.ConfigStore):
            store = command
        if isinstance(command, c.LoopWs):
            yield from matmul_commands(command, loop, hardware)
        elif isinstance(command, c.LoopConvWs):
            yield from conv_commands(ConvLoop.of(command, loop, hardware), 0, 0, store)
        else:
            yield command
