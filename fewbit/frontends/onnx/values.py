"""What a name in a graph stands for while the graph is evaluated.

A value is known (a constant, or computed from constants), traced (it depends on the inputs), or
sizes: small integer tensors computed from the sizes of traced tensors, of which some are symbols.
Known values and sizes are computed in Python and leave nothing in the program.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast, overload

import numpy as np
import torch
from torch import Tensor
from torch._C import DisableTorchFunction
from torch.utils import _python_dispatch

from fewbit.base.typed_torch import from_numpy
from fewbit.errors import UnsupportedError
from fewbit.frontends.onnx.kinds import INT64

if TYPE_CHECKING:
    from fewbit.frontends.onnx.layers import Grid, Integers
    from fewbit.frontends.onnx.size_conditions import SizeCondition

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
            return cast(Any, self.tensor.flatten()).tolist()


@dataclass(frozen=True, eq=False)
class Traced:
    tensor: Tensor
    kind: int
    name: str = ""
    grid: Grid | None = None
    """What it was rounded to."""
    roots: frozenset[str] = frozenset()
    """The inputs of the model that it depends on."""
    condition: SizeCondition | None = None
    """What it says of sizes, where it is one truth value that depends on them alone."""

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
    """A sequence of tensors; its length is known, but where they are the rows of one."""

    items: Sequence[Tensorlike]
    name: str = ""


class Rows(Sequence["Tensorlike"]):
    """The rows of one tensor as a sequence, each of which is taken where it is asked for."""

    def __init__(self, whole: Known | Traced) -> None:
        self.whole = whole

    def __len__(self) -> int:
        size = concrete(self.whole.shape[0])
        if not isinstance(size, int):
            raise UnsupportedError("a sequence has as many tensors as a dynamic size says")
        return size

    @overload
    def __getitem__(self, index: int) -> Tensorlike: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Tensorlike]: ...

    def __getitem__(self, index: int | slice) -> Tensorlike | Sequence[Tensorlike]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if isinstance(self.whole, Known):
            with outside_trace():
                return Known(self.whole.tensor[index], self.whole.kind)
        return Traced(self.whole.tensor[index], self.whole.kind)

    def __iter__(self) -> Iterator[Tensorlike]:
        return (self[i] for i in range(len(self)))


Tensorlike = Known | Traced | Sizes
Value = Tensorlike | Many
"""None stands for an input that is left out, and for an empty optional."""


@contextmanager
def outside_trace() -> Generator[None]:
    """Computes at once, whatever torch is tracing.

    Gradients are not switched off here: torch would write that into the trace.
    """
    with cast(Any, _python_dispatch)._disable_current_modes(), DisableTorchFunction():
        yield


def known(value: Any, kind: int) -> Known:
    """A number or array as a value."""
    with outside_trace():
        return Known(from_numpy(np.array(value)), kind)


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


def concrete(size: Size) -> Size:
    """A number where a symbol is known to be one."""
    if isinstance(size, torch.SymInt):
        expression = expression_of(size)
        return int(expression) if expression.is_Integer else size
    return int(size)


def expression_of(size: torch.SymInt) -> Any:
    """The sympy expression behind a symbolic size."""
    return cast(Any, size).node.expr
