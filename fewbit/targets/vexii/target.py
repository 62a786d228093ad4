"""The target `vexii`: a bare-metal program for VexiiRiscv with MiCo's dot products.

It is run by the instruction-set simulator, and the cycles that the cores *small*, *high* and
*cacheless* would take are estimated from what it counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fewbit.base.progress import say
from fewbit.codegen.bare_metal.processor import CORES, DETAILS, processor_of
from fewbit.dialects.mico import BitConv1dOp, BitConv2dOp, QuantizedLayerOp, shape_of
from fewbit.passes.bare_metal import bare_metal_pipeline
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.stage import Pipeline
from fewbit.program.artifact import Folder
from fewbit.program.program import Program
from fewbit.targets.bare_metal.board import BareMetalOptions
from fewbit.targets.device import Device, Estimate, Events
from fewbit.targets.options import TEXT, Options, option
from fewbit.targets.target import Request
from fewbit.targets.vexii.estimate import estimates
from fewbit.targets.vexii.layout import WIDTHS
from fewbit.targets.vexii.program_folder import bare_metal_facts, write_program
from fewbit.targets.vexii.simulate import VexiiSimulator
from fewbit.targets.view import LayerModel, Seen, View

if TYPE_CHECKING:
    from fewbit.cost.cycles.layers import IntegerLayer


@dataclass(frozen=True)
class ListingOptions(Options):
    """The options of `fewbit inspect asm`."""

    functions: str = option(
        TEXT, "Functions to disassemble, 'dot_*'; all if not given.", default="*", metavar="PATTERN"
    )


def _disassemble(folder: Folder, options: ListingOptions) -> Seen:
    from fewbit.targets.vexii.listing import disassembly, instructions

    pattern = options.functions
    return Seen({"functions": instructions(folder, pattern)}, disassembly(folder, pattern))


def _boot(folder: Folder, _: Options) -> Seen:
    from fewbit.targets.bare_metal.view import boot_folder

    return boot_folder(folder)


class Vexii(Device):
    """RISC-V with dot products of few bits."""

    about = "a program for RISC-V with dot products, simulated"
    see = "[VexiiRiscv](vexii.md)"
    detail, details = "rv32imf", tuple(DETAILS)
    options = BareMetalOptions
    board = "vexii"
    """What programs boot on, if nothing else is asked for."""
    views = (
        View(
            "asm",
            "The instructions of an artifact's functions, disassembled.",
            _disassemble,
            ListingOptions,
        ),
        View("boot", "What the program that boots prints, on the simulator.", _boot),
    )
    widths = WIDTHS

    def check(self, request: Request) -> None:
        processor_of(request.target)
        BareMetalOptions.of(request).board_or(self.board)

    def is_fixed_point(self, name: str) -> bool:
        return not processor_of(name).floats

    def refusal(self, op: QuantizedLayerOp) -> str | None:
        if op.granularity[0] == "group":
            return "its weights have scales of groups"
        return None

    def stored_bits(self, op: QuantizedLayerOp) -> tuple[int, int]:
        if is_depthwise(op):
            return 8, 8
        act, weight = super().stored_bits(op)
        is_padded = isinstance(op, BitConv2dOp | BitConv1dOp) and any(
            side for pair in op.padding_pairs for side in pair
        )
        # 1 bit has no zero for what is outside of an image.
        return (2 if is_padded and act == 1 else act), weight

    def pipeline(self, request: Request) -> Pipeline:
        xlen = processor_of(request.target or "vexii").xlen
        return bare_metal_pipeline(xlen, "call-dots", "call-dot-contractions")

    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        return bare_metal_facts(program, request.name, processor_of(request.target))

    def compile(self, program: Program, request: Request, output: Path) -> Folder:
        for notice in self.legalize(program).notices:
            say(notice)
        return super().compile(program, request, output)

    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        return write_program(made, program, request, output, self.board)

    def simulator(self, folder: Folder) -> VexiiSimulator:
        return VexiiSimulator(folder)

    def estimate(self, folder: Folder, events: Events) -> tuple[Estimate, ...]:
        return estimates(events)

    def summarize(self, folder: Folder) -> Seen:
        """Return the functions of the program."""
        from fewbit.targets.device_report import table
        from fewbit.targets.vexii.listing import functions_of

        sizes = [(each.name, len(each.words)) for each in functions_of(folder)]
        shown = table(("function", "instructions"), [(name, f"{n:,}") for name, n in sizes])
        plain = [{"name": name, "instructions": count} for name, count in sizes]
        return Seen({"functions": plain}, shown)

    def model_layers(self, layers: Sequence[IntegerLayer]) -> LayerModel:
        """Model layers on each core, with MiCo's library, with which they were measured."""
        by_core = {core: [each.cycles(core) for each in layers] for core in CORES}
        return LayerModel(
            f"{', '.join(CORES)} with MiCo's library",
            {core: [each.cycles for each in estimates] for core, estimates in by_core.items()},
            {core: [each.error for each in estimates] for core, estimates in by_core.items()},
        )


def is_depthwise(op: QuantizedLayerOp) -> bool:
    """Return whether each channel is convolved by itself."""
    if not isinstance(op, BitConv2dOp | BitConv1dOp):
        return False
    outputs, inputs = shape_of(op.weight.type)[:2]
    return inputs == 1 and outputs == op.groups.value.data > 1
