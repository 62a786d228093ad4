"""From MLIR's llvm dialect to LLVM IR of a bare-metal program, whose layers say when they begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fewbit.codegen.bare_metal.device_calls import MARK, DeviceCalls
from fewbit.codegen.bare_metal.interface import FUNCTIONS, interface_ir
from fewbit.codegen.bare_metal.processor import Processor
from fewbit.codegen.interface import Interface
from fewbit.codegen.llvm_text import call_first, for_older_llvm
from fewbit.ir.bindings import mlir_context, to_llvm_ir
from fewbit.passes.llvm.translate_to_llvm_ir import LlvmProgram
from fewbit.passes.loops.outline_loops import outlined_of
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import ENTRY
from fewbit.pipeline.passes import Conversion
from fewbit.program.weight_image import WeightImage


@dataclass(frozen=True)
class LayerFunctions:
    """Loop nests and calls of products, each a function that a simulator can count by."""

    names: Sequence[str]


@dataclass(frozen=True)
class TranslateToBareMetalIr(Conversion):
    """Translate the module to LLVM IR, and add the functions that start a program."""

    name = "translate-to-bare-metal-ir"
    takes = "upstream"
    gives = "other"

    def convert(self, ctx: CompileContext, module: Any) -> LlvmProgram:
        processor, calls = ctx.get(Processor), ctx.get(DeviceCalls)
        with mlir_context():
            layers = [*(each.name for each in outlined_of(module)), *calls.names]
        ctx.put(LayerFunctions(layers))
        nbytes = ctx.get(WeightImage).nbytes
        public = interface_ir(ctx.get(Interface), ENTRY, nbytes, processor, calls.called_first)
        texts = [for_older_llvm(to_llvm_ir(module)), *calls.texts()]
        numbers = {name: i for i, name in enumerate(layers)}
        marked = [call_first(text, MARK, numbers) for text in texts]
        names = [*FUNCTIONS, *layers, *sorted(calls.public)]
        return LlvmProgram([*marked, public], names, processor.isa)
