"""Loops over tensors: `linalg.generic` from the indices that it reads and writes.

    rows, k = loops(2)
    total = generic([read(x, rows, k)], [rows], sizes, f32, body, start=0)

A loop that the result is not indexed by is a reduction; `start` is then the value it begins with,
and the body takes what has been accumulated as its last argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from fewbit.dialects.mico.types import element_type, shape_of
from fewbit.passes.linalg.building.scalars import to_float
from fewbit.passes.linalg.building.tensors import Size, as_tensor, empty, full, sizes_of

Loops = Sequence[AffineDimExpr]
Unary = Callable[[SSAValue], SSAValue]
Binary = Callable[[SSAValue, SSAValue], SSAValue]
Body = Unary | Binary | Callable[[SSAValue, SSAValue, SSAValue], SSAValue] | Callable[..., SSAValue]
"""From the elements read, and what has been accumulated in a reduction, to the element written."""


def loops(count: int, first: int = 0) -> list[AffineDimExpr]:
    return [AffineDimExpr(position) for position in range(first, first + count)]


@dataclass(frozen=True)
class Read:
    """A tensor, and the index at which each iteration reads it."""

    tensor: SSAValue
    index: tuple[AffineExpr, ...]


def read(tensor: SSAValue, *index: AffineExpr) -> Read:
    return Read(tensor, index)


def read_leading(tensor: SSAValue, index: Loops) -> Read:
    """Return a tensor of the leading dimensions, or of fewer of them; a scalar has none."""
    tensor = as_tensor(tensor)
    return Read(tensor, tuple(index[: len(shape_of(tensor.type))]))


def read_broadcast(tensor: SSAValue, index: Loops) -> Read:
    """Read a tensor that broadcasts by numpy's rule."""
    shape = shape_of(tensor.type)
    trailing = index[len(index) - len(shape) :]
    return Read(
        tensor,
        tuple(
            AffineConstantExpr(0) if size == 1 else loop
            for size, loop in zip(shape, trailing, strict=True)
        ),
    )


def generic(
    inputs: Sequence[Read],
    output: Loops,
    sizes: Sequence[Size],
    element: Attribute,
    body: Body,
    *,
    start: float | None = None,
) -> SSAValue:
    """Return the tensor of `sizes`, indexed by the loops in `output`, that `body` computes."""
    used = {loop for access in inputs for expr in access.index for loop in _loops_in(expr)}
    count = 1 + max((*used, *(loop.position for loop in output)), default=-1)
    compute = cast(Callable[..., SSAValue], body)
    init = empty(sizes, element) if start is None else full(sizes, element, start)
    parallel = {loop.position for loop in output}
    types = [*(element_type(access.tensor.type) for access in inputs), element]

    @Builder.implicit_region(types)
    def region(args: tuple[BlockArgument, ...]) -> None:
        linalg.YieldOp(compute(*(args if start is not None else args[:-1])))

    maps = [*(access.index for access in inputs), tuple(output)]
    return linalg.GenericOp(
        [access.tensor for access in inputs],
        [init],
        region,
        [AffineMapAttr(AffineMap(count, 0, index)) for index in maps],
        [
            IteratorTypeAttr.parallel() if loop in parallel else IteratorTypeAttr.reduction()
            for loop in range(count)
        ],
        [init.type],
    ).res[0]


def _loops_in(expr: AffineExpr) -> set[int]:
    return {part.position for part in expr.dfs() if isinstance(part, AffineDimExpr)}


def elementwise(
    inputs: Sequence[Read], sizes: Sequence[Size], element: Attribute, body: Body
) -> SSAValue:
    """Emit a loop nest with one computation for each element of the result."""
    return generic(inputs, loops(len(sizes)), sizes, element, body)


def apply(value: SSAValue, element: Attribute, body: Unary) -> SSAValue:
    """Apply `body` to every element of one tensor."""
    sizes = sizes_of(value)
    return elementwise([read(value, *loops(len(sizes)))], sizes, element, body)


def same(value: SSAValue) -> SSAValue:
    """Return the value: the body of a loop that only moves data."""
    return value


def convert(value: SSAValue, element: Attribute) -> SSAValue:
    """Convert floats to floats of another type."""
    if element_type(value.type) == element:
        return value
    return apply(value, element, lambda x: to_float(x, element))
