"""A program on its way to IREE, in stages that one can stop at and look into.

| stage | the program is |
|---|---|
| `mico` | as it was given: layers, and tensors between them |
| `kernel` | layers and pooling with channels innermost, and what follows a layer made part of it |
| `linalg` | named ops for convolutions and pooling, or dispatches of our kernels; loops over |
|          | tensors; weights as packed bytes |
| `flow`, `stream`, `hal`, `vm` | as IREE has it after these phases |

Sizes that must agree are asserted, as for the `cpu` target: IREE does not check them itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import StringAttr

from fewbit.ir.text import print_module
from fewbit.ir.verify import verify
from fewbit.kernels.isa import Isa
from fewbit.program import Program
from fewbit.targets.cpu.assert_sizes import assert_kernel_sizes, assert_tensor_sizes
from fewbit.targets.iree.dispatch_kernels import Kernels, dispatch_kernels
from fewbit.targets.iree.parameters import Parameters, bind_parameters
from fewbit.targets.iree.source import Source, to_source
from fewbit.targets.kernel_stage import copy_of, entry_of, to_kernels
from fewbit.targets.own_passes import run_own_passes
from fewbit.targets.target import Inserted, Watcher
from fewbit.transforms import pipelines

OURS = ("mico", "kernel", "linalg")
ENTRY = "main"


@dataclass
class Lowering:
    program: Program
    inserted: Inserted
    watch: Watcher | None = None
    isa: Isa | None = None
    """The processor whose kernels of ours compute layers; None leaves them to IREE."""
    kernels: Kernels | None = field(init=False, default=None)

    def run(self, last: str = OURS[-1]) -> None:
        """Go through the stages that are ours, up to the last."""
        for stage in OURS[: OURS.index(last) + 1]:
            getattr(self, f"_{stage}")()
            verify(self.program.module, stage)
            for each in self.inserted.get(stage, ()):
                self._insert(stage, each)
            if self.watch is not None:
                self.watch(stage, self.text())

    def text(self) -> str:
        return print_module(self.program.module)

    def finish(self) -> tuple[Source, Parameters]:
        """The program after the last stage, as IREE reads it, and its weights."""
        self.entry.properties["sym_name"] = StringAttr(ENTRY)
        parameters = bind_parameters(self.program)
        if self.kernels is None:
            return to_source(self.program.module), parameters
        made = to_source(self.program.module, self.kernels.text(), self.kernels.files)
        return made, parameters

    @property
    def entry(self) -> func.FuncOp:
        return entry_of(self.program)

    def _insert(self, stage: str, given: str | Callable[..., None]) -> None:
        if callable(given):
            given(self.program.module)
        else:
            run_own_passes(self.program.module, (given,))
        verify(self.program.module, stage)

    def _mico(self) -> None:
        self.program = copy_of(self.program)

    def _kernel(self) -> None:
        self.program = to_kernels(self.program)

    def _linalg(self) -> None:
        assert_kernel_sizes(self.entry)
        if self.isa is not None:
            self.kernels = dispatch_kernels(self.program, self.isa)
        run_own_passes(self.program.module, pipelines.IREE_LINALG)
        assert_tensor_sizes(self.entry)
