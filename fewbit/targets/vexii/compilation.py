"""A program on its way to a bare-metal executable: the stages of `cpu`, for one thread.

What differs: integer products call functions with dot instructions, all other ops are loops; sizes
have the processor's own width, or 64-bit arithmetic in pairs of registers would be everywhere; and
there is nothing that a system provides.
"""
# pyright: basic, reportAttributeAccessIssue=false

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from fewbit.ir.bindings import run_upstream, to_llvm_ir
from fewbit.riscv.assembler import Assembler
from fewbit.targets.cpu import objects
from fewbit.targets.cpu.assert_sizes import assert_kernel_sizes, assert_tensor_sizes
from fewbit.targets.cpu.compilation import ENTRY, Compilation
from fewbit.targets.cpu.guard_divisions import guard_divisions
from fewbit.targets.cpu.llvm_text import booleans_as_bytes, for_older_llvm, mark_functions
from fewbit.targets.cpu.reassociate_sums import add_in_lanes
from fewbit.targets.vexii.call_dots import DotCalls, call_dots
from fewbit.targets.vexii.interface import FUNCTIONS, interface_ir
from fewbit.targets.vexii.link import link_executable
from fewbit.targets.vexii.processor import Processor
from fewbit.targets.vexii.runtime_ir import names, runtime_ir
from fewbit.transforms import pipelines
from fewbit.transforms.fold_weights import fold_weights

LINALG = ("lower-kernel{precise=true}", *pipelines.CPU_LINALG[1:])
"""Means as the interpreter computes them: what is rounded behind them is then the same."""
MARK = "fewbit.mark"
SIZED = (
    "convert-arith-to-llvm",
    "convert-index-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
)
"""Passes that are told how wide sizes are."""


@dataclass
class VexiiCompilation(Compilation):
    processor: Processor = field(kw_only=True)
    calls: DotCalls = field(init=False)

    def _linalg(self) -> None:
        assert_kernel_sizes(self.entry)
        self.calls = call_dots(self.program, self.processor)
        self._run_ours(LINALG)
        self.program = fold_weights(self.program)
        assert_tensor_sizes(self.entry)

    def _loops(self) -> None:
        # No tiles: they are for vectors, whose lowering has sizes of 64 bits.
        self._run_upstream(pipelines.CPU_LOOPS)
        self._run_upstream(("canonicalize", "cse"))

    def _llvm(self) -> None:
        loops = {each.name for each in self.outlined}
        distinct = {each.name for each in self.outlined if not each.overlaps}
        text = mark_functions(self._translate(self.module), loops, distinct, 32)
        public = interface_ir(
            self.interface, ENTRY, self.weights.nbytes, self.processor, self._called_first
        )
        counted = [self._marked(each) for each in (text, *self.calls.texts())]
        self.llvm_texts = [*counted, public]
        if self.shapes is not None:
            self.llvm_texts.append(self._translate(self.shapes))

    def _object(self) -> None:
        self.llvm = objects.link_modules(self.llvm_texts, self._public, self.isa)
        objects.optimize(self.llvm, self.isa)
        self.code = objects.emit_object(self.llvm, self.isa)

    @property
    def _called_first(self) -> tuple[str, ...]:
        """Functions without arguments that a run begins with."""
        return ()

    @property
    def _public(self) -> set[str]:
        # Functions of layers have names that a simulator can count by.
        return {*FUNCTIONS, *self.layer_functions}

    @property
    def layer_functions(self) -> list[str]:
        """Loop nests and calls of products, each a function."""
        return [*(each.name for each in self.outlined), *self.calls.names]

    def text(self, stage: str) -> str:
        if stage == "llvm":
            return str(objects.link_modules(self.llvm_texts, self._public, self.isa))
        return super().text(stage)

    def executable(self) -> bytes:
        """The program with its weights, linked."""
        text = runtime_ir(self.processor)
        runtime = objects.link_modules([text], names(text), self.isa)
        objects.optimize(runtime, self.isa)
        image = objects.weights_object(
            f"{self.interface.name}_weights", self.weights.tobytes(), self.isa
        )
        made = [self.code, objects.emit_object(runtime, self.isa), image, self._assembled()]
        return link_executable(made, FUNCTIONS)

    def _assembled(self) -> bytes:
        """An object of the tiles, and of what tells the simulator where it is."""
        assembler = Assembler(self.processor.xlen)
        assembler.symbol(MARK)
        assembler.mark("a0")
        assembler.ret()
        for each in self.calls.code.assembled.values():
            each.emit(assembler)
        return assembler.object("double")

    def _marked(self, text: str) -> str:
        """The text with functions of layers that are not inlined, and say when they begin."""
        numbers = {name: i for i, name in enumerate(self.layer_functions)}

        def mark(match: re.Match[str]) -> str:
            number = numbers.get(match["name"])
            if number is None:
                return match[0]
            marks = match["marks"] if "noinline" in match["marks"] else " noinline "
            return f"{match['head']}{marks}{{\n  call void @{MARK}(i32 {number})"

        head = r"^(?P<head>define void @(?P<name>[\w.$-]+)\([^)]*\))(?P<marks>[^{\n]*)\{"
        return re.sub(head, mark, text, flags=re.MULTILINE) + f"\ndeclare void @{MARK}(i32)\n"

    def _translate(self, module: Any) -> str:
        """The text of LLVM IR of loops over scalars, which are lowered in place."""
        run_upstream(module, ",".join(pipelines.CPU_METADATA))
        guard_divisions(module)
        width = f"{{index-bitwidth={self.processor.xlen}}}"
        passes = [name + (width if name in SIZED else "") for name in pipelines.CPU_LLVM]
        run_upstream(module, ",".join(passes))
        add_in_lanes(module)
        return booleans_as_bytes(for_older_llvm(to_llvm_ir(module)))
