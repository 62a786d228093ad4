"""A module of LLVM IR for a program that boots: functions, constants, and room for results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fewbit.llvm.function import Function
from fewbit.llvm.types import Int
from fewbit.llvm.values import string

Array = np.ndarray[Any, Any]
LINE = 64
_ATTRIBUTES = 'noinline nounwind minsize optsize "no-builtins"'


@dataclass
class BootModule:
    """What is collected for one program; sizes have the type `index`."""

    index: Int
    lines: list[str] = field(default_factory=list[str])
    functions: list[Function] = field(default_factory=list[Function])

    def function(self, name: str, parameters: str, result: str = "void") -> Function:
        f = Function(name, parameters, result, attributes=_ATTRIBUTES, index=self.index)
        self.functions.append(f)
        return f

    def find(self, name: str) -> Function:
        """Return a function that was added before."""
        return next(f for f in self.functions if f.name == name)

    def data(self, name: str, array: Array, align: int = 16) -> None:
        """Define a constant of an array's bytes."""
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8).tobytes()
        text = "".join(f"\\{byte:02X}" for byte in raw)
        self.lines.append(f'@{name} = constant [{len(raw)} x i8] c"{text}", align {align}')

    def room(self, name: str, count: int) -> None:
        self.lines.append(f"@{name} = global [{max(count, 1)} x i8] zeroinitializer, align {LINE}")

    def text_constant(self, text: str) -> str:
        name = f"text.{len(self.lines)}"
        self.lines.append(f"@{name} = internal constant {string(text).typed}")
        return name

    @property
    def text(self) -> str:
        declared = {line for f in self.functions for line in f.intrinsics}
        return "\n".join([*self.lines, *sorted(declared), *(f.text() for f in self.functions)])
