"""Windows that move over the spatial dimensions of a tensor, as convolutions and poolings do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, f64, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from fewbit.dialects.mico.shapes import window
from fewbit.dialects.mico.types import shape_of
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.loops import elementwise
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
    smaller_size,
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

    def elements(self, position: Size, extent: Size, *, padding: bool) -> Size:
        """Return how many elements the window at `position` has, of the padding too or not."""
        begin = size_product(position, self.stride)
        first = 0 if padding else self.before
        behind = size_sum(extent, self.before + (self.after if padding else 0))
        end = smaller_size(size_sum(begin, self.kernel), behind)
        return larger_size(size_difference(end, larger_size(begin, first)), 0)

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


def count_elements(window: Window, extent: Size, *, padding: bool) -> SSAValue:
    """Return how many elements windows have along a dimension, of the padding too or not, in f64.

    A product of counts, each known by its position alone, needs no loop over a window's elements.
    """
    count = window.count(extent)
    if isinstance(extent, int) and isinstance(count, int):
        numbers = [cast("int", window.elements(i, extent, padding=padding)) for i in range(count)]
        type = TensorType(f64, [count])
        return arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(type, numbers), type).result

    def compute() -> SSAValue:
        elements = window.elements(s.loop_index(0), extent, padding=padding)
        return s.to_float(arith.IndexCastOp(as_index(elements), i64).result, f64)

    return elementwise([], [count], f64, compute)
