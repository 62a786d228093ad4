"""What the kernels over images share: their argument list, and the sizes that it points to."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Generic

from fewbit.kernels.cuts import S
from fewbit.kernels.emit import Function, Value
from fewbit.toolchain.isa import Isa

PARAMETERS = (
    "ptr x, ptr w_packed, ptr bias, ptr add, ptr y, ptr sizes, "
    "float lo, float hi, i64 thread, i64 threads"
)


@dataclass(frozen=True)
class Sizes(Generic[S]):
    """The numbers that `sizes` points to, in this order. Strides count numbers."""

    batch: S
    h: S
    w: S
    c: S
    x_stride: S
    oh: S
    ow: S
    oc: S
    y_stride: S
    kh: S
    kw: S
    stride_h: S
    stride_w: S
    pad_top: S
    pad_left: S
    dilation_h: S
    dilation_w: S

    @staticmethod
    def load(f: Function, sizes: Value) -> Sizes:
        return Sizes(*(f.load("i64", sizes, i) for i in range(len(fields(Sizes)))))


def image_function(isa: Isa, symbol: str) -> Function:
    """Return a public function with the signature of convolutions."""
    return Function(isa, symbol, PARAMETERS, public=True)
