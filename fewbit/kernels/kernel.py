"""What every kernel offers, and how several become one module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbit.errors import UnsupportedError
from fewbit.kernels.emit import MOST_DEPTH, ZEROS, Function
from fewbit.toolchain.isa import Isa

Floats = NDArray[np.float32]
Bytes = NDArray[np.int8]


@dataclass(frozen=True)
class Kernel(ABC):
    """A public function of the generated code, for one processor."""

    isa: Isa

    @property
    @abstractmethod
    def symbol(self) -> str:
        """The function's name."""

    @abstractmethod
    def function(self) -> Function:
        """Return the function, with all that it calls in its `needs`."""

    def ir(self) -> str:
        """Return a module of this kernel alone."""
        return module_text([self], self.isa)

    def declaration(self) -> str:
        """Return the line by which another module may call it."""
        return self.function().declaration()


def module_text(kernels: Iterable[Kernel], isa: Isa, *, tiles: bool = True) -> str:
    """Return one module of all kernels. Functions that several of them call are in it once.

    Without `tiles`, functions that stand apart are only declared.
    """
    functions = functions_of(kernels, isa)
    inside = [function for function in functions if tiles or not function.apart]
    outside = [function for function in functions if function not in inside]
    intrinsics = {line for function in inside for line in function.intrinsics}
    return "\n".join(
        [
            f'target triple = "{isa.triple}"\n',
            define_zeros(isa),
            *(function.text() for function in inside),
            *(function.declaration() for function in outside),
            *sorted(intrinsics),
            "",
        ]
    )


def functions_of(kernels: Iterable[Kernel], isa: Isa) -> list[Function]:
    """Return the kernels' functions and all that they call, each once."""
    functions: dict[str, Function] = {}
    for kernel in kernels:
        if kernel.isa != isa:
            raise UnsupportedError(
                f"'{kernel.symbol}' is made for {kernel.isa.name}, the module for {isa.name}",
                hint="make all kernels of a module for one processor",
            )
        _gather(kernel.function(), functions)
    return list(functions.values())


def define_zeros(isa: Isa) -> str:
    """Return LLVM IR of the row of zeros that stands for a bias or a row that is not there."""
    return f"@{ZEROS} = internal constant [{zeros(isa)} x float] zeroinitializer, align 64\n"


def zeros(isa: Isa) -> int:
    """Return the length of the row of zeros, in floats: a block of K, or a row of a panel."""
    return max(isa.block_depth, isa.panel_width, MOST_DEPTH // 4)


def _gather(function: Function, into: dict[str, Function]) -> None:
    if function.name in into:
        return
    into[function.name] = function
    for needed in function.needs:
        _gather(needed, into)
