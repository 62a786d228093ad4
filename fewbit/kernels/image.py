"""What the kernels over images share: their argument list, and the sizes that it points to."""

from __future__ import annotations

from dataclasses import dataclass, fields

from fewbit.kernels.emit import Function, Value
from fewbit.toolchain.isa import Isa

PARAMETERS = (
    "ptr x, ptr w_packed, ptr bias, ptr add, ptr y, ptr sizes, "
    "float lo, float hi, i64 thread, i64 threads"
)


@dataclass(frozen=True)
class Sizes:
    """The numbers that `sizes` points to, in this order. Strides count numbers."""

    batch: Value
    h: Value
    w: Value
    c: Value
    x_stride: Value
    oh: Value
    ow: Value
    oc: Value
    y_stride: Value
    kh: Value
    kw: Value
    stride_h: Value
    stride_w: Value
    pad_top: Value
    pad_left: Value
    dilation_h: Value
    dilation_w: Value

    @staticmethod
    def load(f: Function, sizes: Value) -> Sizes:
        return Sizes(*(f.load("i64", sizes, i) for i in range(len(fields(Sizes)))))


def image_function(isa: Isa, symbol: str) -> Function:
    """A public function with the signature of convolutions."""
    return Function(isa, symbol, PARAMETERS, public=True)
