"""From MLIR's llvm dialect to LLVM IR of a WebAssembly module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fewbit.codegen.interface import Interface
from fewbit.codegen.llvm_text import for_older_llvm
from fewbit.errors import UnsupportedError
from fewbit.ir.bindings import to_llvm_ir
from fewbit.passes.llvm.translate_to_llvm_ir import LlvmProgram
from fewbit.passes.memory.plan_memory import Arena
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import ENTRY
from fewbit.pipeline.passes import Conversion
from fewbit.program.weight_image import WeightImage
from fewbit.targets.mcu.call_mcu_kernels import McuCalls
from fewbit.targets.wasm.interface import RUN, interface_ir
from fewbit.targets.wasm.memory import map_memory
from fewbit.toolchain.isa import Isa


@dataclass(frozen=True)
class TranslateToWasmIr(Conversion):
    """Translate the module to LLVM IR, place all memory, and add the function that is exported."""

    name = "translate-to-wasm-ir"
    takes = "upstream"
    gives = "other"

    def convert(self, ctx: CompileContext, module: Any) -> LlvmProgram:
        interface, arena = ctx.get(Interface), ctx.get(Arena).static
        weights = ctx.get(WeightImage).nbytes
        if arena is None:
            raise UnsupportedError(
                "the size of some buffers is known to a run only",
                hint="give the sizes of inputs: --input-shape x=1x3x96x96",
            )
        places = map_memory(weights, interface.inputs, interface.outputs, arena)
        ctx.put(places)
        public = interface_ir(interface, ENTRY, places, (weights, arena))
        texts = [for_older_llvm(to_llvm_ir(module)), *ctx.get(McuCalls).texts(), public]
        return LlvmProgram(texts, [RUN], ctx.get(Isa))
