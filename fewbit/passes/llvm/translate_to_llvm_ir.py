"""From MLIR's llvm dialect to LLVM IR: the program, its public functions, and its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fewbit.codegen.interface import Interface, Worth, interface_ir
from fewbit.codegen.llvm_text import for_older_llvm
from fewbit.codegen.runtime import baseline_ir
from fewbit.codegen.stubs import KernelCalls
from fewbit.codegen.tiles import tile_text
from fewbit.cost.cpu.threads import BYTES_A_SECOND, WORTH_SHARING, WORTH_WAKING
from fewbit.ir.bindings import to_llvm_ir
from fewbit.kernels.emit import Function
from fewbit.passes.loops.count_cycles import ProfileRows, profile_ir
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import ENTRY
from fewbit.pipeline.passes import Conversion
from fewbit.program.weight_image import WeightImage
from fewbit.toolchain import objects
from fewbit.toolchain.isa import Isa


@dataclass(frozen=True)
class LlvmProgram:
    """LLVM IR in several texts, which may declare what others define."""

    texts: Sequence[str]
    public: Sequence[str]
    """The functions that can be called from outside."""
    isa: Isa
    tiles: Sequence[Function] = ()
    """What the texts call, compiled apart from them and kept for other programs."""

    @property
    def text(self) -> str:
        """All of it, as one module."""
        more = [tile_text(self.tiles)] if self.tiles else []
        return str(objects.link_modules([*self.texts, *more], self.public, self.isa))


@dataclass(frozen=True)
class TranslateToLlvmIr(Conversion):
    """Translate the module to LLVM IR, and add what a library offers and calls."""

    name = "translate-to-llvm-ir"
    takes = "upstream"
    gives = "other"

    def convert(self, ctx: CompileContext, module: Any) -> LlvmProgram:
        isa, interface, calls = ctx.get(Isa), ctx.get(Interface), ctx.get(KernelCalls)
        # Loops are not counted one by one: most of them pass over what comes in and goes out.
        work = calls.seconds + interface.least_bytes / BYTES_A_SECOND
        worth = Worth(work / WORTH_SHARING, work / WORTH_WAKING)
        public = interface_ir(interface, ENTRY, ctx.get(WeightImage).nbytes, worth)
        threads = baseline_ir("threads" if isa.system.has_threads else "alone", isa)
        program = for_older_llvm(to_llvm_ir(module))
        texts = [program, public, threads, *calls.texts_without_tiles()]
        rows = ctx.find(ProfileRows)
        if rows is not None:
            texts.append(profile_ir(interface.name, rows.rows))
            texts.append(baseline_ir("profile", isa))
        return LlvmProgram(texts, interface.functions, isa, calls.tiles())
