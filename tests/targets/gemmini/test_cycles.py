"""Estimates see the commands that the model carries out."""

from __future__ import annotations

import numpy as np
import pytest

from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.targets.device import Events
from fewbit.targets.gemmini.call_streams import Stream
from fewbit.targets.gemmini.cycles import estimate_cycles, expand_loops, layer_cost
from fewbit.targets.gemmini.streams.conv2d import Conv2d, conv2d
from fewbit.targets.gemmini.streams.matmul import Matmul, matmul
from fewbit.targets.gemmini.streams.output import Output
from fewbit.targets.gemmini.tiler import ConvShape
from tests.targets.gemmini.dram import run_stream

CONV = Conv2d(
    ConvShape(1, 12, 12, 20, 24, 3, 3, 1, 1, 1, 1, 1, pool=2, pool_stride=2), output=Output(0.1)
)
MATMUL = Matmul(40, 50, 60, bias=True)


@pytest.mark.parametrize("kind", ["conv2d", "matmul"])
def test_bytes_are_those_that_move(kind: str) -> None:
    commands = conv2d(CONV) if kind == "conv2d" else matmul(MATMUL)
    stream = Stream("layer", kind, ("x", "weight", "bias", "y"), 1, commands)
    y = np.zeros(6 * 6 * 24, np.int8) if kind == "conv2d" else np.zeros(40 * 50, np.int32)
    room = np.zeros(1 << 14, np.int8)
    events = run_stream(commands, y, x=room, weight=room, bias=room).events
    assert layer_cost(stream, Hardware()).bytes == events.bytes_read + events.bytes_written
    carried_out = sum(events.executed.values())
    seen = list(expand_loops(commands, Hardware()))
    assert len(seen) == carried_out - sum(
        1 for each in commands if each.MNEMONIC in ("loop_ws", "loop_conv_ws")
    )


def test_sent_twice_takes_twice_as_long() -> None:
    stream = Stream("layer", "matmul", ("x", "weight", "y"), 10**5, matmul(Matmul(40, 50, 60)))
    once, twice = (layer_cost(stream, Hardware(), times) for times in (1, 2))
    assert twice.cycles == 2 * once.cycles
    assert twice.bytes == 2 * (once.bytes or 0)


def test_the_hosts_instructions_count() -> None:
    stream = Stream("layer", "matmul", ("x", "weight", "y"), 10**5, matmul(Matmul(40, 50, 60)))
    estimate = estimate_cycles([stream], Hardware(), Events({"host instructions": 1000}))
    assert estimate.cycles == estimate.layers[0].cycles + 1000
    assert "unvalidated" in estimate.error
