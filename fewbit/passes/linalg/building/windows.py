"""Windows that move over the spatial dimensions of a tensor, as convolutions and poolings do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from fewbit.dialects.mico.shapes import window
from fewbit.dialects.mico.types import shape_of
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_index,
    larger_size,
    size_difference,
    size_of,
    size_product,
    size_quotient,
    size_quotient_up,
    size_sum,
)


@dataclass(frozen=True)
class Window:
    """How windows move along one dimension."""

    kernel: int
    stride: int
    before: int
    after: int
    dilation: int = 1
    ceil: bool = False

    @property
    def span(self) -> int:
        """From the first element of a window to its last."""
        return self.dilation * (self.kernel - 1) + 1

    def index(self, position: AffineDimExpr, offset: AffineDimExpr) -> AffineExpr:
        """Return where the window at `position` has its element `offset`."""
        return position * self.stride + offset * self.dilation

    def count(self, extent: Size) -> Size:
        """Return how many windows there are along a dimension of this size, before padding."""
        if isinstance(extent, int):
            return window(
                extent, self.kernel, self.stride, self.before, self.after, self.dilation, self.ceil
            )
        free = size_sum(extent, self.before + self.after - self.span)
        if not self.ceil:
            return size_sum(size_quotient(free, self.stride), 1)
        last = size_quotient_up(free, self.stride)
        begin = as_index(size_product(last, self.stride))
        inside = arith.CmpiOp(begin, as_index(size_sum(extent, self.before)), "slt").result
        return arith.SelectOp(inside, as_index(size_sum(last, 1)), as_index(last)).result

    def missing(self, extent: Size, count: Size) -> Size:
        """Return how many elements the last window takes beyond the padding."""
        if not self.ceil:
            return 0
        reach = size_sum(size_product(size_difference(count, 1), self.stride), self.span)
        padded = size_sum(extent, self.before + self.after)
        return larger_size(size_difference(reach, padded), 0)


def counts(x: SSAValue, windows: Sequence[Window]) -> list[Size]:
    """Return the windows along the last dimensions of `x`, one for each of `windows`."""
    first = len(shape_of(x.type)) - len(windows)
    return [w.count(size_of(x, first + i)) for i, w in enumerate(windows)]
