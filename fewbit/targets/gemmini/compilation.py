"""A program on its way to an RV64 executable that sends commands: the stages of `vexii`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from fewbit.targets.cpu.assert_sizes import assert_kernel_sizes, assert_tensor_sizes
from fewbit.targets.gemmini.call_streams import StreamCalls, call_streams
from fewbit.targets.gemmini.hardware import Hardware
from fewbit.targets.gemmini.issue import OPERANDS, START_SYMBOL
from fewbit.targets.partition import elsewhere, rejoin
from fewbit.targets.vexii.compilation import LINALG, MARK, VexiiCompilation
from fewbit.transforms.fold_weights import fold_weights

DEVICE = "gemmini"
"""The accelerator's name in programs that are split."""


@dataclass
class GemminiCompilation(VexiiCompilation):
    hardware: Hardware = field(kw_only=True, default_factory=Hardware)
    streams: StreamCalls = field(init=False)
    on_host: set[str] = field(init=False)
    """Names of the layers that the program has placed elsewhere."""

    def _mico(self) -> None:
        super()._mico()
        self.on_host = elsewhere(self.program.module, DEVICE)
        rejoin(self.program.module)

    def _linalg(self) -> None:
        assert_kernel_sizes(self.entry)
        self.streams = call_streams(self.program, self.isa, self.hardware, self.on_host)
        self.calls = cast(Any, self.streams)
        self._run_ours(LINALG)
        self.program = fold_weights(self.program)
        assert_tensor_sizes(self.entry)

    @property
    def _public(self) -> set[str]:
        return {*super()._public, OPERANDS}

    @property
    def _called_first(self) -> tuple[str, ...]:
        return (START_SYMBOL,) if self.streams.streams else ()

    def _assembled(self) -> bytes:
        """An object of the functions that send streams."""
        assembler = self.streams.issuer.assembler
        if MARK not in assembler.symbols:
            assembler.symbol(MARK)
            assembler.mark("a0")
            assembler.ret()
        return assembler.object("double")
