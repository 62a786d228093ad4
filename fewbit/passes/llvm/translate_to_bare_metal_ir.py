"""From MLIR's llvm dialect to LLVM IR of a bare-metal program, whose layers say when they begin."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fewbit.codegen.bare_metal.device_calls import MARK, DeviceCalls
from fewbit.codegen.bare_metal.interface import FUNCTIONS, interface_ir
from fewbit.codegen.bare_metal.processor import Processor
from fewbit.codegen.interface import Interface
from fewbit.ir.bindings import mlir_context
from fewbit.passes.llvm.translate_to_llvm_ir import LlvmProgram, translate
from fewbit.passes.loops.outline_loops import outlined_of
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import ENTRY
from fewbit.pipeline.passes import Conversion
from fewbit.program.weight_image import WeightImage

VECTOR_BITS = 32


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
        texts = [translate(module, VECTOR_BITS), *calls.texts()]
        marked = [_marked(text, layers) for text in texts]
        names = [*FUNCTIONS, *layers, *sorted(calls.public)]
        return LlvmProgram([*marked, public], names, processor.isa)


def _marked(text: str, layers: Sequence[str]) -> str:
    """The text with functions of layers that are not inlined, and say when they begin."""
    numbers = {name: i for i, name in enumerate(layers)}

    def mark(match: re.Match[str]) -> str:
        number = numbers.get(match["name"])
        if number is None:
            return match[0]
        marks = match["marks"] if "noinline" in match["marks"] else " noinline "
        return f"{match['head']}{marks}{{\n  call void @{MARK}(i32 {number})"

    head = r"^(?P<head>define void @(?P<name>[\w.$-]+)\([^)]*\))(?P<marks>[^{\n]*)\{"
    return re.sub(head, mark, text, flags=re.MULTILINE) + f"\ndeclare void @{MARK}(i32)\n"
