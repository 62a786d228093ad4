"""The target `gemmini`: a systolic array with an RV64 host, both simulated.

Integer matmuls, convolutions and max pooling of bytes run on the accelerator; all else is code
of the host. Operands of fewer bits than eight are stored as bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from fewbit.base.progress import say
from fewbit.codegen.bare_metal.device_calls import DeviceCalls
from fewbit.codegen.bare_metal.processor import Processor
from fewbit.dialects.mico import BitConv2dOp, BitLinearOp, QuantizedLayerOp, shape_of
from fewbit.dialects.mico.syntax import ints
from fewbit.passes.bare_metal import bare_metal_pipeline
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.stage import Pipeline
from fewbit.program.artifact import Folder
from fewbit.program.program import Program
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.targets.bare_metal.board import BareMetalOptions
from fewbit.targets.device import Device, Estimate, Events, Legal
from fewbit.targets.gemmini.call_streams import StreamCalls
from fewbit.targets.gemmini.cycles import estimate_cycles
from fewbit.targets.gemmini.legal import conv_refusal
from fewbit.targets.gemmini.rejoin_devices import DEVICE
from fewbit.targets.gemmini.simulate import GemminiSimulator
from fewbit.targets.gemmini.streams_file import read_streams, stream_files
from fewbit.targets.options import Options
from fewbit.targets.partition import elsewhere, partition
from fewbit.targets.target import Request
from fewbit.targets.vexii.program_folder import bare_metal_facts, write_program
from fewbit.targets.view import Seen, View

HOST = Processor(64)


def _commands(folder: Folder, _: Options) -> Seen:
    from fewbit.targets.gemmini.listing import list_commands

    return list_commands(folder)


def _boot(folder: Folder, _: Options) -> Seen:
    from fewbit.simulators.gemmini.model import Model
    from fewbit.targets.bare_metal.view import boot_folder

    return boot_folder(folder, Model(read_streams(folder).hardware))


class Gemmini(Device):
    """A systolic array of int8 multipliers."""

    about = "command streams for Gemmini and a host program, simulated"
    see = "[Gemmini](gemmini.md)"
    detail, details = "8x8", ("8x8",)
    views = (
        View("commands", "The commands that an artifact sends, layer by layer.", _commands),
        View("boot", "What the program that boots prints, on the simulator.", _boot),
    )
    widths = (8,)
    options = BareMetalOptions
    board = "htif"
    """What programs boot on, if nothing else is asked for."""
    joins_host = True

    def check(self, request: Request) -> None:
        Hardware.of(request.detail)
        BareMetalOptions.of(request).board_or(self.board)

    def legalize(self, program: Program) -> Legal:
        """Legalize layers; those of a program that is split stay where it has them."""
        legal, away = super().legalize(program), elsewhere(program.module, DEVICE)
        because = "the program has it on another device"
        layers = (
            replace(layer, stored_act=None, stored_weight=None, host_because=because)
            if layer.name in away
            else layer
            for layer in legal.layers
        )
        return Legal(program, tuple(layers))

    def partition(self, program: Program) -> Program:
        """Return the program split between the accelerator and its host, with transfers."""
        return partition(self.legalize(program), DEVICE)

    def refusal(self, op: QuantizedLayerOp) -> str | None:
        if not isinstance(op, BitLinearOp | BitConv2dOp):
            return "the accelerator runs linear layers and convolutions of images"
        if op.granularity[0] == "group":
            return "its weights have scales of groups"
        shapes = (shape_of(value.type) for value in (op.input, op.result, op.weight))
        if any(size < 0 for shape in shapes for size in shape[1:]):
            return "its sizes are known only at run time"
        if not isinstance(op, BitConv2dOp):
            return None
        strides, dilations = ints(op.stride), ints(op.dilation)
        groups = op.groups.value.data
        return conv_refusal(shape_of(op.weight.type), strides, dilations, op.padding_pairs, groups)

    def pipeline(self, request: Request) -> Pipeline:
        pipeline = bare_metal_pipeline(HOST.xlen, "call-streams")
        return pipeline.with_passes("mico", ("rejoin-devices",))

    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        return [*bare_metal_facts(program, request.name, HOST), Hardware.of(request.detail)]

    def compile(self, program: Program, request: Request, output: Path) -> Folder:
        for notice in self.legalize(program).notices:
            say(notice)
        return super().compile(program, request, output)

    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        calls = cast(StreamCalls, made.ctx.get(DeviceCalls))
        files = stream_files(calls.streams, made.ctx.get(Hardware))
        return write_program(made, program, request, output, self.board, files)

    def simulator(self, folder: Folder) -> GemminiSimulator:
        return GemminiSimulator(folder)

    def estimate(self, folder: Folder, events: Events) -> tuple[Estimate, ...]:
        sent = read_streams(folder)
        return (estimate_cycles(sent.layers, sent.hardware, events),)
