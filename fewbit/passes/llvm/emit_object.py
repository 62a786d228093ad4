"""Machine code: an object of the program, and objects of the tiles that other programs call too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fewbit.codegen.tiles import TileObject, tile_assembly, tile_objects
from fewbit.errors import PassError
from fewbit.kernels.emit import Function
from fewbit.passes.llvm.translate_to_llvm_ir import LlvmProgram
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import Conversion
from fewbit.toolchain import objects
from fewbit.toolchain.isa import Isa


@dataclass(frozen=True)
class HiddenSymbols:
    """New names for public functions, which only the library itself may then call."""

    names: Mapping[str, str]


@dataclass(frozen=True)
class ObjectCode:
    """A relocatable object, and what it was made from."""

    data: bytes
    llvm: Any
    """The optimized module."""
    isa: Isa
    tiles: Sequence[TileObject] = ()
    functions: Sequence[Function] = field(default=(), repr=False)

    @property
    def text(self) -> str:
        """The assembly of the program and of its tiles."""
        tiles = [tile_assembly(each, self.functions, self.isa) for each in self.tiles]
        return "\n".join([objects.emit_assembly(self.llvm, self.isa), *tiles])


@dataclass(frozen=True)
class EmitObject(Conversion):
    """Optimize LLVM IR and make machine code of it."""

    name = "emit-object"
    takes = "other"
    gives = "other"

    def convert(self, ctx: CompileContext, module: Any) -> ObjectCode:
        if not isinstance(module, LlvmProgram):
            raise PassError(
                "machine code is made of LLVM IR, which the program is not yet",
                hint="run translate-to-llvm-ir or translate-to-bare-metal-ir before",
            )
        llvm = objects.link_modules(module.texts, module.public, module.isa)
        tiles = tile_objects(module.tiles, module.isa)
        for each in tiles:
            objects.hide(llvm, each.symbols)
        hidden = ctx.find(HiddenSymbols)
        if hidden is not None:
            objects.hide(llvm, hidden.names)
        objects.optimize(llvm, module.isa)
        data = objects.emit_object(llvm, module.isa)
        return ObjectCode(data, llvm, module.isa, tiles, module.tiles)
