"""Named linalg ops that xDSL lacks, from one table.

A named op is its subscripts and its body. `conv_1d_ncw_fcw` runs over the loops n, f, w, c, W and
reads `n c w+W` and `f c W` into `n f w`: a letter is a loop, `w+W` is the window index
w·stride + W·dilation, and a loop that the output does not have is a reduction. The loops stand in
MLIR's order, so indexing maps are the same as MLIR's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ArrayAttr, DenseIntElementsAttr
from xdsl.dialects.linalg.abstract_ops import ElementwiseOperation, NamedOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.irdl import irdl_op_definition, opt_prop_def

from fewbit.dialects.upstream.linalg.bodies import (
    Body,
    binary,
    combine,
    multiply_add,
    multiply_add_offsets,
    reciprocal,
    region,
    square,
    unary,
)


class TableOperation(NamedOperation):
    """A named op that is given by its loops, its subscripts and its body."""

    LOOPS: ClassVar[str]
    SUBSCRIPTS: ClassVar[tuple[str, ...]]
    BODY: ClassVar[Body]

    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return region(cls.BODY, (*inputs, *outputs))

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        return tuple(self._map(subscripts) for subscripts in self.SUBSCRIPTS)

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        output = self.SUBSCRIPTS[-1]
        return ArrayAttr(
            IteratorTypeAttr.parallel() if loop in output else IteratorTypeAttr.reduction()
            for loop in self.LOOPS
        )

    def _map(self, subscripts: str) -> AffineMap:
        terms = re.findall(r"\w(?:\+\w)?", subscripts)
        windows = iter(range(len(terms)))
        results = [
            self._window(term, next(windows)) if "+" in term else self._loop(term) for term in terms
        ]
        return AffineMap(len(self.LOOPS), 0, tuple(results))

    def _loop(self, letter: str) -> AffineExpr:
        return AffineDimExpr(self.LOOPS.index(letter))

    def _window(self, term: str, axis: int) -> AffineExpr:
        outer, inner = term.split("+")
        return self._loop(outer) * self.stride(axis) + self._loop(inner) * self.dilation(axis)

    def stride(self, axis: int) -> int:
        return 1

    def dilation(self, axis: int) -> int:
        return 1


class WindowOperation(TableOperation):
    """A named op that moves a window: a convolution or a pooling."""

    strides = opt_prop_def(DenseIntElementsAttr)
    dilations = opt_prop_def(DenseIntElementsAttr)

    def stride(self, axis: int) -> int:
        return 1 if self.strides is None else self.strides.get_values()[axis]

    def dilation(self, axis: int) -> int:
        return 1 if self.dilations is None else self.dilations.get_values()[axis]


class ElementwiseTableOperation(ElementwiseOperation):
    BODY: ClassVar[Body]

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return region(cls.BODY, (*inputs, *outputs))


_SUM = combine(arith.AddfOp, arith.AddiOp)
_MAX = combine(arith.MaximumfOp, arith.MaxSIOp)
_MIN = combine(arith.MinimumfOp, arith.MinSIOp)
_MAX_UNSIGNED = combine(arith.MaximumfOp, arith.MaxUIOp, unsigned=True)
_MIN_UNSIGNED = combine(arith.MinimumfOp, arith.MinUIOp, unsigned=True)

_CONTRACTIONS: dict[str, tuple[str, str]] = {
    "dot": ("m", "m, m, "),
    "matvec": ("mn", "mn, n, m"),
    "vecmat": ("nm", "m, mn, n"),
    "batch_matvec": ("bmk", "bmk, bk, bm"),
    "batch_vecmat": ("bnk", "bk, bkn, bn"),
    "mmt4d": ("mnkxyz", "mkxz, nkyz, mnxy"),
    "batch_mmt4d": ("bmnkxyz", "bmkxz, bnkyz, bmnxy"),
    "conv_1d": ("wW", "w+W, W, w"),
    "conv_2d": ("hwHW", "h+H w+W, HW, hw"),
    "conv_3d": ("dhwDHW", "d+D h+H w+W, DHW, dhw"),
}

_CONVOLUTIONS: dict[str, tuple[str, str]] = {
    "conv_1d_nwc_wcf": ("nwfWc", "n w+W c, Wcf, nwf"),
    "conv_1d_ncw_fcw": ("nfwcW", "n c w+W, fcW, nfw"),
    "conv_3d_ndhwc_dhwcf": ("ndhwfDHWc", "n d+D h+H w+W c, DHWcf, ndhwf"),
    "conv_3d_ncdhw_fcdhw": ("nfdhwcDHW", "n c d+D h+H w+W, fcDHW, nfdhw"),
    "depthwise_conv_1d_nwc_wc": ("nwcW", "n w+W c, Wc, nwc"),
    "depthwise_conv_1d_ncw_cw": ("nwcW", "n c w+W, cW, ncw"),
    "depthwise_conv_1d_nwc_wcm": ("nwcmW", "n w+W c, Wcm, nwcm"),
    "depthwise_conv_2d_nhwc_hwc": ("nhwcHW", "n h+H w+W c, HWc, nhwc"),
    "depthwise_conv_2d_nchw_chw": ("nhwcHW", "n c h+H w+W, cHW, nchw"),
    "depthwise_conv_2d_nhwc_hwcm": ("nhwcmHW", "n h+H w+W c, HWcm, nhwcm"),
    "depthwise_conv_3d_ndhwc_dhwc": ("ndhwDHWc", "n d+D h+H w+W c, DHWc, ndhwc"),
    "depthwise_conv_3d_ncdhw_cdhw": ("ndhwDHWc", "n c d+D h+H w+W, cDHW, ncdhw"),
    "depthwise_conv_3d_ndhwc_dhwcm": ("ndhwmDHWc", "n d+D h+H w+W c, DHWcm, ndhwcm"),
}

_WITH_OFFSETS: dict[str, tuple[str, str]] = {
    "conv_2d_nhwc_hwcf_q": ("nhwfHWc", "n h+H w+W c, HWcf, , , nhwf"),
    "conv_2d_nhwc_fhwc_q": ("nhwfHWc", "n h+H w+W c, fHWc, , , nhwf"),
    "conv_2d_nchw_fchw_q": ("nfhwcHW", "n c h+H w+W, fcHW, , , nfhw"),
    "conv_2d_nhwgc_gfhwc_q": ("nhwgfHWc", "n h+H w+W g c, gfHWc, , , nhwgf"),
    "conv_2d_ngchw_gfchw_q": ("ngfhwcHW", "n g c h+H w+W, gfcHW, , , ngfhw"),
    "conv_3d_ndhwc_dhwcf_q": ("ndhwfDHWc", "n d+D h+H w+W c, DHWcf, , , ndhwf"),
    "depthwise_conv_2d_nhwc_hwc_q": ("nhwcHW", "n h+H w+W c, HWc, , , nhwc"),
    "depthwise_conv_2d_nhwc_hwcm_q": ("nhwcmHW", "n h+H w+W c, HWcm, , , nhwcm"),
}

_POOLINGS: dict[str, tuple[str, str, Body]] = {
    "pooling_nhwc_sum": ("nhwcHW", "n h+H w+W c, HW, nhwc", _SUM),
    "pooling_nchw_sum": ("nchwHW", "n c h+H w+W, HW, nchw", _SUM),
    "pooling_nhwc_max": ("nhwcHW", "n h+H w+W c, HW, nhwc", _MAX),
    "pooling_nhwc_max_unsigned": ("nhwcHW", "n h+H w+W c, HW, nhwc", _MAX_UNSIGNED),
    "pooling_nhwc_min": ("nhwcHW", "n h+H w+W c, HW, nhwc", _MIN),
    "pooling_nhwc_min_unsigned": ("nhwcHW", "n h+H w+W c, HW, nhwc", _MIN_UNSIGNED),
    "pooling_nwc_sum": ("nwcW", "n w+W c, W, nwc", _SUM),
    "pooling_ncw_sum": ("ncwW", "n c w+W, W, ncw", _SUM),
    "pooling_nwc_max": ("nwcW", "n w+W c, W, nwc", _MAX),
    "pooling_nwc_max_unsigned": ("nwcW", "n w+W c, W, nwc", _MAX_UNSIGNED),
    "pooling_ncw_max": ("ncwW", "n c w+W, W, ncw", _MAX),
    "pooling_nwc_min": ("nwcW", "n w+W c, W, nwc", _MIN),
    "pooling_nwc_min_unsigned": ("nwcW", "n w+W c, W, nwc", _MIN_UNSIGNED),
    "pooling_ndhwc_sum": ("ndhwcDHW", "n d+D h+H w+W c, DHW, ndhwc", _SUM),
    "pooling_ndhwc_max": ("ndhwcDHW", "n d+D h+H w+W c, DHW, ndhwc", _MAX),
    "pooling_ndhwc_min": ("ndhwcDHW", "n d+D h+H w+W c, DHW, ndhwc", _MIN),
}

_ELEMENTWISE: dict[str, Body] = {
    "abs": unary(math.AbsFOp, math.AbsIOp),
    "ceil": unary(math.CeilOp),
    "div": binary(arith.DivfOp, arith.DivSIOp),
    "div_unsigned": binary(arith.DivfOp, arith.DivUIOp, unsigned=True),
    "erf": unary(math.ErfOp),
    "floor": unary(math.FloorOp),
    "negf": unary(arith.NegfOp),
    "powf": binary(math.PowFOp, math.IPowIOp),
    "reciprocal": reciprocal,
    "round": unary(math.RoundOp),
    "rsqrt": unary(math.RsqrtOp),
    "square": square,
    "tanh": unary(math.TanhOp),
}


def _define(
    name: str, base: type[NamedOperation], loops: str, subscripts: str, body: Body
) -> type[Operation]:
    """Return the class of a table's row."""
    constants = {
        "LOOPS": loops,
        "SUBSCRIPTS": tuple(part.strip() for part in subscripts.split(",")),
        "BODY": staticmethod(body),
    }
    fields = {
        "name": f"linalg.{name}",
        **constants,
        "__annotations__": dict.fromkeys(constants, ClassVar[Any]),
        "__module__": __name__,
    }
    class_name = "".join(part.capitalize() for part in name.split("_")) + "Op"
    return irdl_op_definition(type(class_name, (base,), fields))


TABLE: tuple[type[Operation], ...] = (
    _define(
        "quantized_batch_matmul", TableOperation, "bmnk", "bmk, bkn, , , bmn", multiply_add_offsets
    ),
    *(_define(n, TableOperation, *row, multiply_add) for n, row in _CONTRACTIONS.items()),
    *(_define(n, WindowOperation, *row, multiply_add) for n, row in _CONVOLUTIONS.items()),
    *(_define(n, WindowOperation, *row, multiply_add_offsets) for n, row in _WITH_OFFSETS.items()),
    *(_define(n, WindowOperation, *row) for n, row in _POOLINGS.items()),
    *(_define(n, ElementwiseTableOperation, "", "", row) for n, row in _ELEMENTWISE.items()),
)
