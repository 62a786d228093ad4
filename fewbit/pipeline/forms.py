"""What a program is held by, from its first stage to its last, and what all of these can do.

An xDSL module, a module of upstream's bindings, or something that is no MLIR any more (LLVM IR,
machine code, a plan of launches), which then has a `text` of its own.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from xdsl.dialects.builtin import ModuleOp

from fewbit.ir.text import print_module
from fewbit.ir.verify import verify
from fewbit.pipeline.passes import Form


@runtime_checkable
class Readable(Protocol):
    """A program that is no MLIR any more."""

    @property
    def text(self) -> str: ...


def form_of(module: object) -> Form:
    if isinstance(module, ModuleOp):
        return "xdsl"
    return "upstream" if _is_upstream(module) else "other"


def text_of(module: Any) -> str:
    """Return the program as text, whatever holds it."""
    if isinstance(module, ModuleOp):
        return print_module(module)
    return module.text if isinstance(module, Readable) else str(module)


def verify_module(module: Any, stage: str | None) -> None:
    """Check a module with the verifier of the library that holds it."""
    if isinstance(module, ModuleOp):
        verify(module, stage)
    elif _is_upstream(module):
        from fewbit.ir.bindings import verify_upstream

        verify_upstream(module, stage)


def _is_upstream(module: object) -> bool:
    return type(module).__name__ == "Module" and type(module).__module__.startswith("torch_mlir")
