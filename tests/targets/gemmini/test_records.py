"""Streams as bytes, and back."""

from __future__ import annotations

from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import Pointer
from fewbit.simulators.gemmini.records import RECORD_BYTES, pack, unpack
from fewbit.targets.gemmini.streams.conv2d import Conv2d, conv2d
from fewbit.targets.gemmini.streams.matmul import Matmul, matmul
from fewbit.targets.gemmini.streams.output import Output
from fewbit.targets.gemmini.tiler import ConvShape

BUFFERS = ("x", "weight", "bias", "y")


def test_unpacking_undoes_packing() -> None:
    shape = ConvShape(1, 9, 9, 5, 7, 3, 3)
    for stream in (
        matmul(Matmul(20, 30, 40, bias=True), style="output-stationary"),
        conv2d(Conv2d(shape, bias=True, output=Output(0.5, relu=True))),
        conv2d(Conv2d(shape)),
    ):
        data = pack(stream, BUFFERS)
        assert len(data) == len(stream) * RECORD_BYTES
        assert unpack(data, BUFFERS) == stream


def test_zero_is_no_pointer() -> None:
    commands = [c.LoopAddressesDC(0, Pointer("y")), c.Mvin(0, 16)]
    assert unpack(pack(commands, BUFFERS), BUFFERS) == commands
