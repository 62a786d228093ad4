"""What a pass is, for all three kinds: a name, options, and `apply(ctx, module)`.

| kind | class | module |
|---|---|---|
| ours on xDSL | `xdsl.passes.ModulePass` | `ModuleOp` |
| ours on upstream's bindings | `BindingsPass` | `torch_mlir.ir.Module` |
| upstream's, by name | `UpstreamPass` | `torch_mlir.ir.Module` |

A `Conversion` gives another representation of the program in place of changing it: from xDSL to
upstream's MLIR, to LLVM IR, to machine code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpecConvertible

from fewbit.pipeline.context import CompileContext

if TYPE_CHECKING:
    from torch_mlir.ir import Module

Form = Literal["xdsl", "upstream", "other"]
"""Which library holds a program; `other` is what is no MLIR any more."""


@dataclass(frozen=True)
class BindingsPass(ArgSpecConvertible, ABC):
    """A pass of ours on a module of upstream's bindings, in place."""

    name: ClassVar[str]

    @abstractmethod
    def apply(self, ctx: CompileContext, module: Module) -> None: ...


@dataclass(frozen=True)
class UpstreamPass:
    """A pass of upstream's, as `mlir-opt` would be given it: `func.func(affine-scalrep)`."""

    text: str

    @property
    def name(self) -> str:
        return self.text

    def __str__(self) -> str:
        return self.text

    def apply(self, ctx: CompileContext, module: Module) -> None:
        from fewbit.ir.bindings import run_upstream

        run_upstream(module, self.text)


@dataclass(frozen=True)
class Conversion(ArgSpecConvertible, ABC):
    """A program in another representation."""

    name: ClassVar[str]
    takes: ClassVar[Form]
    gives: ClassVar[Form]

    @abstractmethod
    def convert(self, ctx: CompileContext, module: Any) -> Any: ...


@dataclass(frozen=True)
class FunctionPass:
    """A function of the user's on the module as it is."""

    function: Callable[[Any], None]

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __str__(self) -> str:
        return self.name

    def apply(self, ctx: CompileContext, module: Any) -> None:
        self.function(module)


Pass = ModulePass | BindingsPass | UpstreamPass | Conversion | FunctionPass


def input_form(each: Pass) -> Form | None:
    """Return which representation a pass works on; None for functions, which take any."""
    if isinstance(each, Conversion):
        return each.takes
    if isinstance(each, FunctionPass):
        return None
    return "xdsl" if isinstance(each, ModulePass) else "upstream"


def output_form(each: Pass) -> Form | None:
    return each.gives if isinstance(each, Conversion) else input_form(each)
