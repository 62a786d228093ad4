"""Layers as calls of GPU kernels, on memory; what follows a product stays beside it as a loop.

A call names no kernel yet: which one, and with which settings, is decided where sizes are known. In
`f16`, a layer's operands are rounded before the product and its result is given in f16; a layer
that follows takes these as they are, so that between layers nothing is f32. Integers are always
multiplied as integers, and their sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal, cast

from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith, bufferization, func, memref
from xdsl.dialects.builtin import MemRefType, TensorType, UnitAttr, f16, f32, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.dialects import kernel, mico
from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.dialects.mico.syntax import ints
from fewbit.ir.locations import place_of
from fewbit.program import Program
from fewbit.transforms import lower_kernel
from fewbit.transforms.lowering.loops import apply
from fewbit.transforms.lowering.tensors import Size, dynamic, integers, sizes_of
from fewbit.transforms.lowering.windows import Window

Precision = Literal["f32", "tf32", "f16"]
"""How floats are multiplied."""

ALIGNMENT = 256


@dataclass(frozen=True)
class Layer:
    """What a call computes, but for sizes, which its memory tells.

    Operands are x, the weight (channels innermost), then a bias and a tensor to add if there are
    any, then the result.
    """

    name: str
    kind: Literal["conv2d", "max_pool"]
    dtype: str
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    window: tuple[int, int] = (1, 1)
    """Of pooling, which has no weight."""
    bias: bool = False
    add: bool = False
    low: float = -inf
    high: float = inf


@dataclass
class CallLayers:
    """Rewrites the layers of a program, in its order."""

    program: Program
    precision: Precision
    layers: dict[str, Layer] = field(default_factory=dict[str, Layer])
    """By the names of the functions that are called."""
    types: dict[str, list[Attribute]] = field(default_factory=dict[str, list[Attribute]])
    """Of the arguments of these functions."""
    halves: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Tensors of f32 that were f16 before."""

    def run(self) -> dict[str, Layer]:
        handlers: dict[type[Operation], Callable[[Any], Sequence[SSAValue] | None]] = {
            kernel.MatmulOp: self.matmul,
            kernel.Conv2dOp: self.conv2d,
            kernel.Pool2dOp: self.pool2d,
        }
        for op in list(self.program.module.walk()):
            handler = handlers.get(type(op))
            if handler is None:
                continue
            block = Block()
            with ImplicitBuilder(block):
                values = handler(op)
            if values is None:
                continue
            made = list(block.ops)
            for each in made:
                each.detach()
                each.location = op.location
            Rewriter.replace_op(op, made, values)
        for name, types in self.types.items():
            declared = func.FuncOp.external(name, types, [])
            Rewriter.insert_op(declared, InsertPoint.at_end(self.program.module.body.block))
        return self.layers

    def matmul(self, op: kernel.MatmulOp) -> Sequence[SSAValue] | None:
        if op.scale_groups is not None:
            return None
        sizes = [*sizes_of(op.x)[:-1], mico.shape_of(op.weight.type)[0]]
        return self.product(op, integers(op.weight), sizes, {})

    def conv2d(self, op: kernel.Conv2dOp) -> Sequence[SSAValue] | None:
        pairs = op.padding_pairs
        if any(before != after for before, after in pairs):
            return None
        windows = lower_kernel.windows_of(op)
        space = lower_kernel.counts(op.x, windows)
        sizes = [sizes_of(op.x)[0], *space, mico.shape_of(op.weight.type)[0]]
        how = {
            "stride": ints(op.stride),
            "padding": tuple(before for before, _ in pairs),
            "dilation": ints(op.dilation),
            "groups": op.groups.value.data,
        }
        return self.product(op, lower_kernel.channels_last(integers(op.weight)), sizes, how)

    def product(
        self, op: kernel.ProductOp, weight: SSAValue, sizes: Sequence[Size], how: dict[str, Any]
    ) -> Sequence[SSAValue]:
        if not op.is_float:
            layer = Layer(_name(op), "conv2d", "i8", **how)
            total = self.call(layer, [integers(op.x), weight], sizes, i32)
            return lower_kernel.finished(op, total)
        if op.activation is not None:
            layer = Layer(_name(op), "conv2d", self.precision, **how)
            total = self.called_on_floats(layer, [op.x, weight], sizes)
            return lower_kernel.finished(op, total)
        low, high = op.bounds
        layer = Layer(
            _name(op),
            "conv2d",
            self.precision,
            **how,
            bias=op.bias is not None,
            add=op.add is not None,
            low=-inf if low is None else low,
            high=inf if high is None else high,
        )
        return [self.called_on_floats(layer, [op.x, weight], sizes, op.bias, op.add)]

    def pool2d(self, op: kernel.Pool2dOp) -> Sequence[SSAValue] | None:
        """The largest of each window, without a copy of the image that has a border."""
        is_float = mico.element_type(op.x.type) == f32
        pairs = op.padding_pairs
        even = all(before == after for before, after in pairs)
        if op.kind.data != "max" or not is_float or op.step is not None or not even:
            return None
        if op.ceil_mode.value.data:
            return None
        windows = [
            Window(size, stride, before, after, 1)
            for size, stride, (before, after) in zip(
                ints(op.kernel_size), ints(op.stride), pairs, strict=True
            )
        ]
        layer = Layer(
            _name(op),
            "max_pool",
            self.precision,
            stride=_pair(op.stride),
            padding=(pairs[0][0], pairs[1][0]),
            window=_pair(op.kernel_size),
        )
        outer = sizes_of(op.x)
        sizes = [outer[0], *lower_kernel.counts(op.x, windows), outer[3]]
        return [self.called_on_floats(layer, [op.x], sizes)]

    def called_on_floats(
        self,
        layer: Layer,
        factors: Sequence[SSAValue],
        sizes: Sequence[Size],
        bias: SSAValue | None = None,
        add: SSAValue | None = None,
    ) -> SSAValue:
        """The call in the precision that was asked for, on tensors of f32."""
        if self.precision != "f16":
            given = [*factors, *(v for v in (bias, add) if v is not None)]
            return self.call(layer, given, sizes, f32)
        given = [self.half(factor) for factor in factors]
        given += [] if bias is None else [bias]
        given += [] if add is None else [self.half(add)]
        result = self.call(layer, given, sizes, f16)
        wide = apply(result, f32, lambda value: arith.ExtFOp(value, f32).result)
        self.halves[wide] = result
        return wide

    def half(self, value: SSAValue) -> SSAValue:
        if value not in self.halves:
            self.halves[value] = apply(value, f16, lambda v: arith.TruncFOp(v, f16).result)
        return self.halves[value]

    def call(
        self, layer: Layer, operands: Sequence[SSAValue], sizes: Sequence[Size], element: Attribute
    ) -> SSAValue:
        """Memory that a call fills, as a tensor."""
        name = f"gpu.{len(self.layers):03}"
        self.layers[name] = layer
        shape = [size if isinstance(size, int) else DYNAMIC for size in sizes]
        out = memref.AllocOp.get(element, ALIGNMENT, shape, dynamic(sizes)).memref
        given = [*map(_buffer, operands), out]
        self.types[name] = [value.type for value in given]
        func.CallOp(name, given, [])
        return bufferization.ToTensorOp(out, restrict=True).tensor


def _buffer(value: SSAValue) -> SSAValue:
    type = cast("TensorType[Attribute]", value.type)
    return bufferization.ToBufferOp.create(
        operands=[value],
        result_types=[MemRefType(type.element_type, type.shape)],
        properties={"read_only": UnitAttr()},
    ).results[0]


def _pair(attribute: Any) -> tuple[int, int]:
    first, second = ints(attribute)
    return first, second


def _name(op: Operation) -> str:
    return place_of(op).layer or op.name
