"""A program on its way to an RV64 executable that sends commands: the stages of `vexii`."""

from __future__ import annotations

from dataclasses import dataclass, field

from fewbit.targets.cpu import objects
from fewbit.targets.cpu.assert_sizes import assert_kernel_sizes, assert_tensor_sizes
from fewbit.targets.gemmini.call_streams import StreamCalls, call_streams
from fewbit.targets.gemmini.hardware import Hardware
from fewbit.targets.gemmini.issue import OPERANDS
from fewbit.targets.vexii.compilation import VexiiCompilation
from fewbit.targets.vexii.interface import FUNCTIONS
from fewbit.targets.vexii.link import link_executable
from fewbit.targets.vexii.runtime_ir import names, runtime_ir
from fewbit.transforms import pipelines
from fewbit.transforms.fold_weights import fold_weights

LINALG = ("lower-kernel{precise=true}", *pipelines.CPU_LINALG[1:])
"""Means in f64, which the host has: then results are the interpreter's, to the bit."""


@dataclass
class GemminiCompilation(VexiiCompilation):
    hardware: Hardware = field(kw_only=True, default_factory=Hardware)
    streams: StreamCalls = field(init=False)

    def _linalg(self) -> None:
        assert_kernel_sizes(self.entry)
        self.streams = call_streams(self.program, self.isa, self.hardware)
        self.calls = self.streams
        self._run_ours(LINALG)
        self.program = fold_weights(self.program)
        assert_tensor_sizes(self.entry)

    def executable(self) -> bytes:
        text = runtime_ir(self.processor)
        runtime = objects.link_modules([text], names(text), self.isa)
        objects.optimize(runtime, self.isa)
        weights = f"{self.interface.name}_weights"
        issuer = self.streams.issuer
        made = [
            self.code,
            objects.emit_object(runtime, self.isa),
            objects.weights_object(weights, self.weights.tobytes(), self.isa),
        ]
        if self.streams.streams:
            made += [
                issuer.object(),
                objects.weights_object(OPERANDS, issuer.table(), self.isa),
            ]
        return link_executable(made, FUNCTIONS)
