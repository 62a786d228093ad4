"""Layers as calls of GPU kernels, on memory; what follows a contraction stays beside it as a loop.

A call names no kernel yet: which one, and with which settings, is decided where sizes are known. In
`f16`, a layer's operands are rounded before the matmul and its result is given in f16; a layer
that follows takes these as they are, so that between layers nothing is f32. Integers are always
multiplied as integers, and their sums are exact. Few-bit weights of linear layers stay few bits
where rows are few, or where groups of them have scales; attention in f16 is one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isclose, prod
from typing import Any, cast

from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import arith, bufferization, func, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType, UnitAttr, f16, f32, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.dialects import kernel, mico
from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.dialects.mico.syntax import ints
from fewbit.dialects.upstream.linalg.matmul import BatchMatmulOp
from fewbit.ir.locations import place_of
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.few_bit import FEW_BIT, FewBitMatmul
from fewbit.kernels.cuda.unfold import Unfold
from fewbit.numerics.widths import Width
from fewbit.passes.graph.changed_weights import is_constant
from fewbit.passes.linalg import lower_kernel
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.loops import apply, elementwise, loops, read, read_leading
from fewbit.passes.linalg.building.tensors import Size, dynamic, integers, sizes_of
from fewbit.passes.linalg.building.windows import Window
from fewbit.pipeline.context import compile_context
from fewbit.program.program import Program
from fewbit.targets.cuda.attention import can_attend, is_strided
from fewbit.targets.cuda.cached_attention import find_cached_attention
from fewbit.targets.cuda.layer import Layer, Precision, View
from fewbit.targets.cuda.settings import GpuSettings
from fewbit.targets.cuda.unfolded import image_of, unfold_of
from fewbit.targets.cuda.views import seen_through

ALIGNMENT = 256
FEW_ROWS = 64
"""Up to so many rows, few-bit weights are decoded in the kernel; else they are i8 or f16."""
EXACT = 1 << 24
"""Integers below are floats, too: sums of them in floats are exact."""


@dataclass(frozen=True)
class GpuLayers:
    """The layers that a program calls, by the names of the functions that are called."""

    layers: Mapping[str, Layer]


@dataclass(frozen=True)
class CallLayers(ModulePass):
    """Call GPU kernels for layers."""

    name = "call-layers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = compile_context(ctx)
        settings = known.get(GpuSettings)
        calls = LayerCalls(known.program(op), settings.precision, settings.arch, settings.open_size)
        known.put(GpuLayers(calls.run()))


@dataclass
class LayerCalls:
    """The rewriting of a program's layers into calls, in program order."""

    program: Program
    precision: Precision
    arch: Arch
    open_size: int = 1
    """The product of the given sizes that the program leaves dynamic."""
    layers: dict[str, Layer] = field(default_factory=dict[str, Layer])
    """By the names of the functions that are called."""
    types: dict[str, list[Attribute]] = field(default_factory=dict[str, list[Attribute]])
    """The types of the arguments of these functions."""
    in_f16: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Tensors of f32, and the f16 that they were before."""

    def run(self) -> dict[str, Layer]:
        handlers: dict[type[Operation], Callable[[Any], Sequence[SSAValue] | None]] = {
            kernel.MatmulOp: self.matmul,
            kernel.Conv2dOp: self.conv2d,
            kernel.Pool2dOp: self.pool2d,
            mico.AttentionOp: self.attention,
            BatchMatmulOp: self.cached_attention,
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
            calls = list(block.ops)
            for each in calls:
                each.detach()
                each.location = op.location
            Rewriter.replace_op(op, calls, values)
        for name, types in self.types.items():
            declared = func.FuncOp.external(name, types, [])
            Rewriter.insert_op(declared, InsertPoint.at_end(self.program.module.body.block))
        return self.layers

    def matmul(self, op: kernel.MatmulOp) -> Sequence[SSAValue] | None:
        if (total := self.few_bit(op)) is not None:
            return lower_kernel.finish(op, total)
        if op.scale_groups is not None:
            return None
        sizes = [*sizes_of(op.x)[:-1], mico.shape_of(op.weight.type)[0]]
        return self.contract(op, integers(op.weight), sizes, {})

    def few_bit(self, op: kernel.MatmulOp) -> SSAValue | None:
        """Return the sums of a layer, if a kernel takes its weights as few bits.

        Sums of integers without groups are not scaled: they are exact, and scales follow.
        """
        quantized = _few_bit_weight(op)
        if quantized is None or (op.is_float and self.precision != "f16"):
            return None
        weight, scale = quantized
        width = mico.element_width(weight.type)
        n, k = mico.shape_of(weight.type)
        rows = rows_of(op.x, self.open_size)
        groups = (mico.shape_of(scale.type)[1:] or (1,))[0] if scale is not None else 1
        scaled = op.is_float or op.scale_groups is not None
        if rows > FEW_ROWS and op.scale_groups is None:
            return None
        dtype = "f16" if op.is_float else "i8"
        assert width is not None
        problem = FewBitMatmul(rows, n, k, width, groups, dtype, "f32")
        if FEW_BIT.refuse(problem, self.arch) is not None:
            return None
        most = (mico.element_width(op.x.type) or Width.of(8)).magnitude * width.magnitude * k
        if not scaled and most >= EXACT:
            return None
        by_rows = scaled and not op.is_float and _has_row_scales(op)
        layer = Layer(_name(op), "few_bit", dtype, width=width, scaled=scaled, by_rows=by_rows)
        x = self.to_f16(op.x) if op.is_float else integers(op.x)
        given = [x, integers(weight)]
        if scaled:
            assert scale is not None
            given.append(scale)
        if by_rows:
            assert op.x_scale is not None
            given.append(op.x_scale)
        total = self.call(layer, given, [*sizes_of(op.x)[:-1], n], f32)
        if op.is_float or by_rows:
            return total
        if scaled and op.x_scale is not None:
            index = loops(len(sizes_of(total)))
            factors = [read(total, *index), read_leading(op.x_scale, index)]
            return elementwise(factors, sizes_of(total), f32, s.mul)
        return total if op.gives_floats else apply(total, i32, lambda v: s.to_integer(v, i32))

    def attention(self, op: mico.AttentionOp) -> Sequence[SSAValue] | None:
        """Call attention, which reads queries, keys and values where projections wrote them."""
        if self.precision != "f16" or not can_attend(op, self.arch):
            return None
        batch, heads, length, size = sizes_of(op.query)
        assert isinstance(size, int)
        query = op.query
        if op.scale is not None and not isclose(op.scale.value.data, size**-0.5, rel_tol=1e-6):
            factor = s.constant(op.scale.value.data / size**-0.5, f32)
            query = apply(query, f32, lambda v: s.mul(v, factor))
        given = (query, op.key, op.value)
        if not is_strided(size, self.arch):
            layer = Layer(_name(op), "attention", "f16", causal=bool(op.causal.value.data))
            rounded = [self.to_f16(value) for value in given]
            return [self.to_f32(self.call(layer, rounded, [batch, heads, length, size], f16))]
        operands, views = zip(*map(self.view_in_f16, given), strict=True)
        layer = Layer(
            _name(op),
            "attention",
            "f16",
            causal=bool(op.causal.value.data),
            views=views,
            shapes=tuple(mico.shape_of(value.type) for value in given),
        )
        result = self.call(layer, operands, [batch, length, heads, size], f16)
        return [mico.TransposeOp.of(self.to_f32(result), permutation=(0, 2, 1, 3)).result]

    def cached_attention(self, op: BatchMatmulOp) -> Sequence[SSAValue] | None:
        """Call attention of a step to what a cache holds; scores and sums are f32."""
        found = find_cached_attention(op, self.arch)
        if found is None:
            return None
        problem = found.problem
        layer = Layer(_name(op), "cached_attention", problem.dtype, scale=problem.scale)
        given = (found.query, found.keys, found.values, found.seen)
        return [self.call(layer, given, [problem.heads, problem.rows, problem.width], f32)]

    def view_in_f16(self, value: SSAValue) -> tuple[SSAValue, View | None]:
        """Return a tensor in f16, or one that it is part of."""
        seen = seen_through(value)
        *steps, last = seen.view.strides
        fits = last == 1 and not any(step % 8 for step in (*steps, seen.view.offset))
        if seen.base in self.in_f16 and fits:
            return self.in_f16[seen.base], seen.view
        return self.to_f16(value), None

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
        weight = lower_kernel.channels_last(integers(op.weight))
        if (spread := unfold_of(op, self.precision)) is not None:
            return self.contract(op, weight, sizes, {"spread": spread}, self.spread(op, spread))
        return self.contract(op, weight, sizes, how)

    def spread(self, op: kernel.Conv2dOp, how: Unfold) -> SSAValue:
        """Return the image of few channels that a convolution has, as one of many."""
        image = image_of(op)
        assert image is not None
        layer = Layer(_name(op), "unfold", self.precision, spread=how)
        sizes = [sizes_of(op.x)[0], how.rows, how.of.out_width, how.channels]
        if self.precision == "f16":
            return self.to_f32(self.call(layer, [image], sizes, f16))
        return self.call(layer, [image], sizes, f32)

    def contract(
        self,
        op: kernel.ContractionOp,
        weight: SSAValue,
        sizes: Sequence[Size],
        how: dict[str, Any],
        x: SSAValue | None = None,
    ) -> Sequence[SSAValue]:
        """Call a matmul or convolution; `x` is used in place of the op's, if there is one."""
        x = op.x if x is None else x
        if not op.is_float:
            layer = Layer(_name(op), "conv2d", "i8", **how)
            total = self.call(layer, [integers(op.x), weight], sizes, i32)
            return lower_kernel.finish(op, total)
        if op.activation is not None:
            layer = Layer(_name(op), "conv2d", self.precision, **how)
            total = self.call_on_floats(layer, [x, weight], sizes)
            return lower_kernel.finish(op, total)
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
        return [self.call_on_floats(layer, [x, weight], sizes, op.bias, op.add)]

    def pool2d(self, op: kernel.Pool2dOp) -> Sequence[SSAValue] | None:
        """Call max pooling, which needs no copy of the image with a border."""
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
        return [self.call_on_floats(layer, [op.x], sizes)]

    def call_on_floats(
        self,
        layer: Layer,
        factors: Sequence[SSAValue],
        sizes: Sequence[Size],
        bias: SSAValue | None = None,
        add: SSAValue | None = None,
    ) -> SSAValue:
        """Call a layer in the precision that was asked for, on tensors of f32."""
        if self.precision != "f16":
            given = [*factors, *(v for v in (bias, add) if v is not None)]
            return self.call(layer, given, sizes, f32)
        given = [self.to_f16(factor) for factor in factors]
        given += [] if bias is None else [bias]
        given += [] if add is None else [self.to_f16(add)]
        return self.to_f32(self.call(layer, given, sizes, f16))

    def to_f32(self, value: SSAValue) -> SSAValue:
        """Return f16 as f32; layers that follow take the f16 from before."""
        wide = apply(value, f32, lambda v: arith.ExtFOp(v, f32).result)
        self.in_f16[wide] = value
        return wide

    def to_f16(self, value: SSAValue) -> SSAValue:
        if value not in self.in_f16:
            self.in_f16[value] = self._round(value)
        return self.in_f16[value]

    def _round(self, value: SSAValue) -> SSAValue:
        shape = mico.shape_of(value.type)
        seen = seen_through(value)
        if seen.base in self.in_f16 and seen.is_whole(shape):
            whole = self.in_f16[seen.base]
            type = TensorType(f16, shape)
            return mico.ReshapeOp.of(whole, shape=shape, result_types=[type]).result
        return apply(value, f16, lambda v: arith.TruncFOp(v, f16).result)

    def call(
        self, layer: Layer, operands: Sequence[SSAValue], sizes: Sequence[Size], element: Attribute
    ) -> SSAValue:
        """Call a layer's function; return the memory that it fills, as a tensor."""
        name = f"gpu.{len(self.layers):03}"
        self.layers[name] = layer
        shape = [size if isinstance(size, int) else DYNAMIC for size in sizes]
        out = memref.AllocOp.get(element, ALIGNMENT, shape, dynamic(sizes)).memref
        given = [*map(_buffer, operands), out]
        self.types[name] = [value.type for value in given]
        func.CallOp(name, given, [])
        return bufferization.ToTensorOp(out, restrict=True).tensor


def rows_of(x: SSAValue, open_size: int) -> int:
    """Return how many rows a matmul has, about: only speed depends on it."""
    *rows, _ = mico.shape_of(x.type)
    known = prod(size for size in rows if size != DYNAMIC)
    return known * (open_size if DYNAMIC in rows else 1)


def _has_row_scales(op: kernel.MatmulOp) -> bool:
    """Return whether each row of x has a scale of its own."""
    scale = op.x_scale
    return scale is not None and mico.shape_of(scale.type) == mico.shape_of(op.x.type)[:-1]


def _few_bit_weight(op: kernel.MatmulOp) -> tuple[SSAValue, SSAValue | None] | None:
    """Return the constant few-bit weight of a matmul and its scale, if it has one."""
    weight, scale = op.weight, op.weight_scale
    if op.weight_offset is not None or op.has_row_groups:
        return None
    if op.is_float:
        owner = weight.owner
        if not isinstance(owner, mico.DequantizeOp):
            return None
        if owner.zero_point is not None or owner.offset is not None:
            return None
        weight, scale = owner.input, owner.scale
    if mico.element_width(weight.type) is None or not is_constant(weight):
        return None
    return None if scale is not None and not is_constant(scale) else (weight, scale)


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
