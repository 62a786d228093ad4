# pyright: basic
"""What a name in a graph stands for while the graph is evaluated.

A value is known (a constant, or computed from constants), traced (it depends on the inputs), or
sizes: small integer tensors computed from the sizes of traced tensors, of which some are symbols.
Known values and sizes are computed in Python and leave nothing in the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from fewbit.frontends.onnx.kinds import INT64

if TYPE_CHECKING:
    from fewbit.frontends.onnx.layers import Grid, Integers

Size: TypeAlias = Any
"""An int, or a torch.SymInt, which torch's own signatures do not name."""


@dataclass(frozen=True, eq=False)
class Known:
    tensor: Tensor
    kind: int
    name: str = ""
    origin: str = ""
    """The name of the constant that this is another form of."""
    integers: Integers | None = None
    """What it was dequantized from."""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    def items(self) -> list[Any]:
        """The elements as numbers of Python."""
        with outside_trace():
            return self.tensor.flatten().tolist()


@dataclass(frozen=True, eq=False)
class Traced:
    tensor: Tensor
    kind: int
    name: str = ""
    grid: Grid | None = None
    """What it was rounded to."""
    roots: frozenset[str] = frozenset()
    """The inputs of the model that it depends on."""

    @property
    def shape(self) -> tuple[Size, ...]:
        return tuple(self.tensor.shape)


@dataclass(frozen=True, eq=False)
class Sizes:
    """Integers of which at least one is a symbol, as an array of objects."""

    array: np.ndarray[Any, Any]
    kind: int = INT64
    name: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def traced(self) -> Tensor:
        from fewbit.frontends.onnx.kinds import held_in

        dtype = held_in(self.kind)
        items = [torch.scalar_tensor(size, dtype=dtype) for size in self.array.flat]
        return torch.stack(items).reshape(self.array.shape)


@dataclass(frozen=True, eq=False)
class Many:
    """A sequence of tensors; its length is known."""

    items: tuple[Tensorlike, ...]
    name: str = ""


Tensorlike = Known | Traced | Sizes
Value = Tensorlike | Many
"""None stands for an input that is left out, and for an empty optional."""


@contextmanager
def outside_trace() -> Iterator[None]:
    """Computes at once, whatever torch is tracing.

    Gradients are not switched off here: torch would write that into the trace.
    """
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield


def known(value: Any, kind: int) -> Known:
    """A number or array as a value."""
    with outside_trace():
        return Known(torch.from_numpy(np.array(value)), kind)


def sizes(values: Sequence[Size] | np.ndarray[Any, Any], kind: int = INT64) -> Tensorlike:
    """Integers as a value: known unless one of them is a symbol."""
    array = np.empty(len(values), dtype=object) if not isinstance(values, np.ndarray) else values
    if not isinstance(values, np.ndarray):
        for i, value in enumerate(values):
            array[i] = value
    items = [concrete(item) for item in array.flat]
    if all(isinstance(item, int) for item in items):
        return known(np.array(items, np.int64).reshape(array.shape), kind)
    return Sizes(array, kind)


def concrete(size: Any) -> Any:
    """A number where a symbol is known to be one."""
    if isinstance(size, torch.SymInt):
        expr = size.node.expr
        return int(expr) if expr.is_Integer else size
    return int(size)
