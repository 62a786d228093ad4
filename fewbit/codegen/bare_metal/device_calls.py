"""What a bare-metal program calls for its layers, whoever computes them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from fewbit.codegen.stubs import KernelCalls
from fewbit.riscv.assembler import Assembler

MARK = "fewbit.mark"
"""The function that tells a simulator which layer begins."""


@dataclass
class DeviceCalls(KernelCalls):
    """Calls of functions that instructions or commands of a device are in."""

    @property
    def needs(self) -> tuple[str, ...]:
        """What a core must have, in words."""
        return ()

    @property
    def has_coprocessor(self) -> bool:
        """Whether it sends commands to a coprocessor, which must be switched on."""
        return False

    @property
    def public(self) -> set[str]:
        """Names that the linker must see, beside those of layers."""
        return set()

    @property
    def called_first(self) -> tuple[str, ...]:
        """Functions without arguments that a run begins with."""
        return ()

    @abstractmethod
    def object(self) -> bytes:
        """Return the functions that are written in assembly, as an object."""


def emit_mark(assembler: Assembler) -> None:
    """Add the function that tells a simulator where it is."""
    assembler.symbol(MARK)
    assembler.mark("a0")
    assembler.ret()
