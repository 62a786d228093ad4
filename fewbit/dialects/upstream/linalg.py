"""Named linalg ops that xDSL lacks, from one table.

A named op is its subscripts and its body. `conv_1d_ncw_fcw` runs over the loops n, f, w, c, W and
reads `n c w+W` and `f c W` into `n f w`: a letter is a loop, `w+W` is the window index
w·stride + W·dilation, and a loop that the output does not have is a reduction. The loops stand in
MLIR's order, so indexing maps are the same as MLIR's.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseIntElementsAttr,
    IntegerType,
)
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.linalg.abstract_ops import ElementwiseOperation, NamedOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import MatmulOp as PlainMatmulOp
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def

from fewbit.dialects.upstream.extend import extend

Body = Callable[[Sequence[SSAValue], Attribute], SSAValue]


def _cast(value: SSAValue, target: Attribute, *, unsigned: bool = False) -> SSAValue:
    """`value` as the output's element type, the way that MLIR's named ops convert."""
    source = value.type
    if source == target:
        return value
    if isinstance(source, AnyFloat) and isinstance(target, AnyFloat):
        cast_op = arith.ExtFOp if source.bitwidth < target.bitwidth else arith.TruncFOp
    elif isinstance(source, IntegerType) and isinstance(target, IntegerType):
        extend_op = arith.ExtUIOp if unsigned else arith.ExtSIOp
        cast_op = extend_op if source.bitwidth < target.bitwidth else arith.TruncIOp
    elif isinstance(source, IntegerType):
        cast_op = arith.UIToFPOp if unsigned else arith.SIToFPOp
    else:
        cast_op = arith.FPToUIOp if unsigned else arith.FPToSIOp
    return cast(Any, cast_op)(value, target).result


def _pick(
    type: Attribute, on_floats: type[Operation], on_integers: type[Operation]
) -> Callable[..., Any]:
    return on_floats if isinstance(type, AnyFloat) else on_integers


def _multiply_add(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
    product = _pick(out, arith.MulfOp, arith.MuliOp)(_cast(args[0], out), _cast(args[1], out))
    return _pick(out, arith.AddfOp, arith.AddiOp)(args[-1], product).result


def _multiply_add_offsets(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
    """With zero points, the third and fourth argument, taken from the factors."""
    lhs = arith.SubiOp(_cast(args[0], out), _cast(args[2], out))
    rhs = arith.SubiOp(_cast(args[1], out), _cast(args[3], out))
    return arith.AddiOp(args[-1], arith.MuliOp(lhs, rhs)).result


def _combine(
    on_floats: type[Operation], on_integers: type[Operation], *, unsigned: bool = False
) -> Body:
    def body(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
        element = _cast(args[0], out, unsigned=unsigned)
        return _pick(out, on_floats, on_integers)(args[-1], element).result

    return body


def _unary(op: type[Operation], on_integers: type[Operation] | None = None) -> Body:
    def body(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
        return _pick(out, op, on_integers or op)(_cast(args[0], out)).result

    return body


def _binary(op: type[Operation], on_integers: type[Operation], *, unsigned: bool = False) -> Body:
    def body(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
        lhs, rhs = (_cast(arg, out, unsigned=unsigned) for arg in args[:2])
        return _pick(out, op, on_integers)(lhs, rhs).result

    return body


def _square(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
    value = _cast(args[0], out)
    return _pick(out, arith.MulfOp, arith.MuliOp)(value, value).result


def _reciprocal(args: Sequence[SSAValue], out: Attribute) -> SSAValue:
    from xdsl.dialects.builtin import FloatAttr

    one = arith.ConstantOp(FloatAttr(1.0, cast(AnyFloat, out)))
    return arith.DivfOp(one, _cast(args[0], out)).result


def _region(body: Body, operands: Sequence[SSAValue]) -> Region:
    types = NamedOperation.body_arg_types(operands)

    @Builder.implicit_region(types)
    def region(args: tuple[BlockArgument, ...]) -> None:
        YieldOp(body(args, types[-1]))

    return region


class TableOperation(NamedOperation):
    """A named op that is given by its loops, its subscripts and its body."""

    LOOPS: ClassVar[str]
    SUBSCRIPTS: ClassVar[tuple[str, ...]]
    BODY: ClassVar[Body]

    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return _region(cls.BODY, (*inputs, *outputs))

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


_SUM = _combine(arith.AddfOp, arith.AddiOp)
_MAX = _combine(arith.MaximumfOp, arith.MaxSIOp)
_MIN = _combine(arith.MinimumfOp, arith.MinSIOp)
_MAX_UNSIGNED = _combine(arith.MaximumfOp, arith.MaxUIOp, unsigned=True)
_MIN_UNSIGNED = _combine(arith.MinimumfOp, arith.MinUIOp, unsigned=True)

_PRODUCTS: dict[str, tuple[str, str]] = {
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
    "abs": _unary(math.AbsFOp, math.AbsIOp),
    "ceil": _unary(math.CeilOp),
    "div": _binary(arith.DivfOp, arith.DivSIOp),
    "div_unsigned": _binary(arith.DivfOp, arith.DivUIOp, unsigned=True),
    "erf": _unary(math.ErfOp),
    "floor": _unary(math.FloorOp),
    "negf": _unary(arith.NegfOp),
    "powf": _binary(math.PowFOp, math.IPowIOp),
    "reciprocal": _reciprocal,
    "round": _unary(math.RoundOp),
    "rsqrt": _unary(math.RsqrtOp),
    "square": _square,
    "tanh": _unary(math.TanhOp),
}


def _define(
    name: str, base: type[NamedOperation], loops: str, subscripts: str, body: Body
) -> type[Operation]:
    """The class of a table's row."""
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


class ElementwiseTableOperation(ElementwiseOperation):
    BODY: ClassVar[Body]

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return _region(cls.BODY, (*inputs, *outputs))


class MatmulOp(PlainMatmulOp):
    """xDSL's matmul, whose body also converts factors that are narrower than the sum."""

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return _region(_multiply_add, (*inputs, *outputs))


def _maps(loops: str, *subscripts: str) -> ArrayAttr[AffineMapAttr]:
    return ArrayAttr(
        AffineMapAttr(
            AffineMap(len(loops), 0, tuple(AffineDimExpr(loops.index(s)) for s in operand))
        )
        for operand in subscripts
    )


class BatchOperation(NamedOperation):
    """A matrix product over batches; its indexing maps may transpose or broadcast."""

    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True

    @property
    @abstractmethod
    def maps(self) -> ArrayAttr[AffineMapAttr]: ...

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        return _region(_multiply_add, (*inputs, *outputs))

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        return tuple(m.data for m in self.maps)

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        return self.maps

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        output = self.maps.data[-1].data
        return ArrayAttr(
            IteratorTypeAttr.parallel() if used else IteratorTypeAttr.reduction()
            for used in output.used_dims_bit_vector()
        )


@irdl_op_definition
class BatchMatmulOp(BatchOperation):
    name = "linalg.batch_matmul"

    indexing_maps = prop_def(
        ArrayAttr[AffineMapAttr], default_value=_maps("bmnk", "bmk", "bkn", "bmn")
    )

    @property
    def maps(self) -> ArrayAttr[AffineMapAttr]:
        return self.indexing_maps


@irdl_op_definition
class BatchReduceMatmulOp(BatchOperation):
    """The sum of the products of all batches."""

    name = "linalg.batch_reduce_matmul"

    indexing_maps = prop_def(
        ArrayAttr[AffineMapAttr], default_value=_maps("bmnk", "bmk", "bkn", "mn")
    )

    @property
    def maps(self) -> ArrayAttr[AffineMapAttr]:
        return self.indexing_maps


QuantizedBatchMatmulOp = _define(
    "quantized_batch_matmul", TableOperation, "bmnk", "bmk, bkn, , , bmn", _multiply_add_offsets
)

NAMED: tuple[type[Operation], ...] = (
    MatmulOp,
    BatchMatmulOp,
    BatchReduceMatmulOp,
    QuantizedBatchMatmulOp,
    *(_define(n, TableOperation, *row, _multiply_add) for n, row in _PRODUCTS.items()),
    *(_define(n, WindowOperation, *row, _multiply_add) for n, row in _CONVOLUTIONS.items()),
    *(_define(n, WindowOperation, *row, _multiply_add_offsets) for n, row in _WITH_OFFSETS.items()),
    *(_define(n, WindowOperation, *row) for n, row in _POOLINGS.items()),
    *(_define(n, ElementwiseTableOperation, "", "", row) for n, row in _ELEMENTWISE.items()),
)

DIALECT = extend(Linalg, *NAMED)
