"""From MLIR's llvm dialect to LLVM IR of a library for a microcontroller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fewbit.codegen.bare_metal.helpers import SMALL
from fewbit.codegen.interface import Interface
from fewbit.codegen.llvm_text import for_older_llvm, with_attributes
from fewbit.errors import UnsupportedError
from fewbit.ir.bindings import to_llvm_ir
from fewbit.passes.llvm.translate_to_llvm_ir import LlvmProgram
from fewbit.passes.memory.plan_memory import Arena
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import ENTRY
from fewbit.pipeline.passes import Conversion
from fewbit.program.weight_image import WeightImage
from fewbit.targets.mcu.call_mcu_kernels import McuCalls
from fewbit.targets.mcu.core import Core
from fewbit.targets.mcu.interface import interface_ir, run_name


@dataclass(frozen=True)
class TranslateToMcuIr(Conversion):
    """Translate the module to LLVM IR, and add the function that a library offers."""

    name = "translate-to-mcu-ir"
    takes = "upstream"
    gives = "other"

    def convert(self, ctx: CompileContext, module: Any) -> LlvmProgram:
        interface, arena = ctx.get(Interface), ctx.get(Arena).static
        if arena is None:
            raise UnsupportedError(
                "the size of some buffers is known to a run only",
                hint="give the sizes of inputs: --input-shape x=1x3x96x96",
            )
        public = interface_ir(interface, ENTRY, ctx.get(WeightImage).nbytes, arena)
        program = with_attributes(for_older_llvm(to_llvm_ir(module)), SMALL)
        texts = [program, *ctx.get(McuCalls).texts(), public]
        return LlvmProgram(texts, [run_name(interface)], ctx.get(Core).isa)
