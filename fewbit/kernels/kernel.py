"""What every kernel offers, and how several become one module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbit.errors import UnsupportedError
from fewbit.kernels.emit import MOST_DEPTH, ZEROS, Function
from fewbit.kernels.isa import Isa

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
        """The function, with all that it calls in its `needs`."""

    def ir(self) -> str:
        """A module of this kernel alone."""
        return module_text([self], self.isa)

    def declaration(self) -> str:
        """The line by which another module may call it."""
        types = ", ".join(parameter.type for parameter in self.function().parameters)
        return f"declare void @{self.symbol}({types})"


def module_text(kernels: Iterable[Kernel], isa: Isa) -> str:
    """One module of all kernels. Functions that several of them call are in it once."""
    functions: dict[str, Function] = {}
    for kernel in kernels:
        if kernel.isa != isa:
            raise UnsupportedError(
                f"'{kernel.symbol}' is made for {kernel.isa.name}, the module for {isa.name}",
                hint="make all kernels of a module for one processor",
            )
        _gather(kernel.function(), functions)
    intrinsics = {line for function in functions.values() for line in function.intrinsics}
    return "\n".join(
        [
            f'target triple = "{isa.triple}"\n',
            f"@{ZEROS} = internal constant [{zeros(isa)} x float] zeroinitializer, align 64\n",
            *(function.text() for function in functions.values()),
            *sorted(intrinsics),
            "",
        ]
    )


def zeros(isa: Isa) -> int:
    """Floats in the row of zeros: a block of a sum, or a row of a panel, if that is longer."""
    return max(isa.block_depth, isa.panel_width, MOST_DEPTH // 4)


def _gather(function: Function, into: dict[str, Function]) -> None:
    if function.name in into:
        return
    into[function.name] = function
    for needed in function.needs:
        _gather(needed, into)
