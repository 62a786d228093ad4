"""Random valid programs: for every op of the dialects, a strategy that makes one of it.

Each strategy gives an op on block arguments of its own; `modules` puts several into functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    ModuleOp,
    TensorType,
    f16,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region

from fewbit.dialects import graph, kernel, mico
from fewbit.dialects.mico.elementwise import UnaryOp
from fewbit.dialects.mico.shapes import DYNAMIC, windows
from fewbit.dialects.traits import Property
from fewbit.numerics import WIDTHS, Width, row_bytes

Draw = Callable[[st.SearchStrategy[Any]], Any]
Make = Callable[[Draw, "Values"], Operation]

extents = st.integers(1, 5)
widths = st.sampled_from(WIDTHS)
names = st.from_regex(r"[a-z_][a-z0-9_]{0,5}(\.[a-z0-9_]{1,4}){0,3}", fullmatch=True)


class Values:
    """Hands out block arguments of any type."""

    def __init__(self) -> None:
        self.block = Block()

    def __call__(self, type: Attribute) -> BlockArgument:
        return self.block.insert_arg(type, len(self.block.args))

    def tensor(self, element: Attribute, shape: Sequence[int]) -> BlockArgument:
        return self(TensorType(element, shape))


def shapes(draw: Draw, least: int = 1, most: int = 4, dynamic: bool = True) -> list[int]:
    dims = st.one_of(extents, st.just(DYNAMIC)) if dynamic else extents
    return draw(st.lists(dims, min_size=least, max_size=most))


def weight_parts(draw: Draw, values: Values, shape: Sequence[int], asymmetric: bool = True):
    """Return a few-bit weight with its scale, of any granularity, and perhaps a zero point."""
    width: Width = draw(widths)
    k = prod(shape[1:])
    divisors = [d for d in range(1, k + 1) if k % d == 0]
    scale_shape = draw(
        st.sampled_from([None, [], [shape[0]], [shape[0], draw(st.sampled_from(divisors))]])
    )
    scale = values(f32) if scale_shape is None else values.tensor(f32, scale_shape)
    zero_point = None
    if asymmetric and width >= Width.of(2) and draw(st.booleans()):
        zero_point = values(i32) if scale_shape is None else values.tensor(i32, scale_shape)
    return values.tensor(mico.few_bit_type(width), shape), scale, zero_point


def layer_arguments(draw: Draw, values: Values, x: list[int], weight: list[int], rows: list[int]):
    """Return operands and attributes of a layer in one of its four float or few-bit combinations."""
    named: dict[str, Any] = {}
    act: Width | None = draw(st.one_of(st.none(), widths))
    element: Attribute = f32
    if act is not None:
        named["act_bits"] = act
        if arriving := draw(st.booleans()):
            element = mico.few_bit_type(act)
        if arriving or draw(st.booleans()):
            shape = draw(st.sampled_from([None, [], rows]))
            named["act_scale"] = values(f32) if shape is None else values.tensor(f32, shape)
            if act >= Width.of(2) and draw(st.booleans()):
                named["act_zero_point"] = values(i32)
        elif draw(st.booleans()):
            named["act_mode"] = draw(st.sampled_from(["max", "mean"]))
    if draw(st.booleans()):
        w, named["weight_scale"], named["weight_zero_point"] = weight_parts(draw, values, weight)
    else:
        w = values.tensor(f32, weight)
    bias = values.tensor(f32, weight[:1]) if draw(st.booleans()) else None
    return (values.tensor(element, x), w, bias), named


def bitlinear(draw: Draw, values: Values) -> Operation:
    n, k = draw(extents), draw(st.integers(1, 40))
    lead = shapes(draw, 0, 2)
    operands, named = layer_arguments(draw, values, [*lead, k], [n, k], lead)
    return mico.BitLinearOp.of(*operands, **named)


def accumulators(draw: Draw, values: Values) -> Operation:
    n, k, m = draw(extents), draw(extents), draw(extents)
    x = values.tensor(mico.few_bit_type(draw(widths)), [m, k])
    w = values.tensor(mico.few_bit_type(draw(widths)), [n, k])
    bias = values.tensor(i32, [n]) if draw(st.booleans()) else None
    return mico.BitLinearOp.of(x, w, bias, result_types=[TensorType(i32, [m, n])])


def _convolution(op: type[mico.QuantizedLayerOp], rank: int) -> Make:
    def make(draw: Draw, values: Values) -> Operation:
        groups, per_group = draw(extents), draw(st.integers(1, 3))
        kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
        dilation = [draw(st.integers(1, 2)) for _ in range(rank)]
        stride = [draw(st.integers(1, 3)) for _ in range(rank)]
        padding = [draw(st.integers(0, 2)) for _ in range(2 * rank)]
        least = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
        spatial = [draw(st.one_of(st.just(DYNAMIC), st.integers(n, n + 6))) for n in least]
        batch = draw(st.one_of(st.just(DYNAMIC), extents))
        x = [batch, groups * per_group, *spatial]
        weight = [groups * draw(st.integers(1, 2)), per_group, *kernel]
        operands, named = layer_arguments(draw, values, x, weight, [batch])
        return op.of(
            *operands, stride=stride, padding=padding, dilation=dilation, groups=groups, **named
        )

    return make


def embedding(draw: Draw, values: Values) -> Operation:
    ids = values.tensor(draw(st.sampled_from([i32, i64])), shapes(draw, 0, 3))
    table = [draw(extents), draw(extents)]
    if draw(st.booleans()):
        return mico.EmbeddingOp.of(ids, values.tensor(f32, table))
    w, scale, zero_point = weight_parts(draw, values, table)
    return mico.EmbeddingOp.of(ids, w, weight_scale=scale, weight_zero_point=zero_point)


def attention(draw: Draw, values: Values) -> Operation:
    lead = shapes(draw, 0, 1)
    kv_heads = draw(st.integers(1, 3))
    heads = kv_heads * draw(st.integers(1, 2))
    tq, tk, d, dv = (draw(extents) for _ in range(4))
    q, k, v = [*lead, heads, tq, d], [*lead, kv_heads, tk, d], [*lead, kv_heads, tk, dv]
    named: dict[str, Any] = {"causal": draw(st.booleans())}
    if draw(st.booleans()):
        named |= {"query_bits": draw(widths), "key_bits": draw(widths)}
    for name in ("value_bits", "score_bits"):
        if draw(st.booleans()):
            named[name] = draw(widths)
    if draw(st.booleans()):
        named["scale"] = draw(st.floats(1e-3, 10))
    if draw(st.booleans()):
        named["mask"] = values.tensor(draw(st.sampled_from([f32, i1])), [tq, tk])
    operands = [values.tensor(f32, shape) for shape in (q, k, v)]
    return mico.AttentionOp.of(*operands, **named)


def weight_quant(draw: Draw, values: Values) -> Operation:
    shape = shapes(draw, 2, 4, dynamic=False)
    named: dict[str, Any] = {
        "bits": draw(widths),
        "mode": draw(st.sampled_from(["max", "mean"])),
        "granularity": draw(st.sampled_from(["tensor", "channel", "group"])),
    }
    if named["granularity"] == "group":
        k = prod(shape[1:])
        named["group"] = draw(st.sampled_from([d for d in range(1, k + 1) if k % d == 0]))
    if named["bits"] >= Width.of(2) and named["mode"] == "max":
        named["symmetric"] = draw(st.booleans())
    return mico.WeightQuantOp.of(values.tensor(f32, shape), **named)


def activation_quant(draw: Draw, values: Values) -> Operation:
    shape = shapes(draw)
    x = values.tensor(f32, shape)
    granularity = draw(st.sampled_from(["row", "sample", "tensor"]))
    width: Width = draw(widths)
    named: dict[str, Any] = {"bits": width, "granularity": granularity}
    if draw(st.booleans()):
        return mico.ActivationQuantOp.of(x, result_types=[x.type], **named)
    scale = {"row": shape[:-1], "sample": shape[:1], "tensor": []}[granularity]
    types = [TensorType(mico.few_bit_type(width), shape), TensorType(f32, scale)]
    return mico.ActivationQuantOp.of(x, result_types=types, **named)


def _given_scale(op: type[mico.LayerOp], to_integers: bool) -> Make:
    def make(draw: Draw, values: Values) -> Operation:
        shape = shapes(draw)
        width: Width = draw(widths)
        few = TensorType(mico.few_bit_type(width), shape)
        real = TensorType(f32, shape)
        scale = shape[: draw(st.integers(0, len(shape) - 1))]
        asymmetric = width >= Width.of(2) and draw(st.booleans())
        zero_point = values.tensor(i32, scale) if asymmetric else None
        return op.of(
            values(real if to_integers else few),
            values.tensor(f32, scale),
            zero_point=zero_point,
            result_types=[few if to_integers else real],
        )

    return make


def requantize(draw: Draw, values: Values) -> Operation:
    shape = shapes(draw, 1, 4, dynamic=False)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    per = draw(st.sampled_from([[], [shape[axis]]]))
    fixed = draw(st.booleans())
    multiplier = values.tensor(i32 if fixed else f32, per)
    shift = values.tensor(i32, per) if fixed else None
    result = TensorType(mico.few_bit_type(draw(widths)), shape)
    return mico.RequantizeOp.of(
        values.tensor(i32, shape), multiplier, shift=shift, axis=axis, result_types=[result]
    )


def bundle(draw: Draw, values: Values) -> Operation:
    w, scale, zero_point = weight_parts(draw, values, shapes(draw, 2, 4, dynamic=False))
    return mico.BundleOp.of(w, scale, zero_point=zero_point)


def unbundle(draw: Draw, values: Values) -> Operation:
    w, scale, zero_point = weight_parts(draw, Values(), shapes(draw, 2, 4, dynamic=False))
    type = mico.QTensorType(w.type, scale.type, zero_point.type if zero_point else None)
    return mico.UnbundleOp.of(values(type))


def _unary(op: type[mico.LayerOp], **choices: st.SearchStrategy[Any]) -> Make:
    def make(draw: Draw, values: Values) -> Operation:
        x = values.tensor(draw(st.sampled_from([f32, f16])), shapes(draw))
        return op.of(x, **{name: draw(choice) for name, choice in choices.items()})

    return make


def relu(draw: Draw, values: Values) -> Operation:
    elements: list[Attribute] = [f32, i32, *map(mico.few_bit_type, WIDTHS[1:])]
    return mico.ReluOp.of(values.tensor(draw(st.sampled_from(elements)), shapes(draw)))


def _binary(op: type[mico.LayerOp]) -> Make:
    def make(draw: Draw, values: Values) -> Operation:
        shape = shapes(draw)
        other = [draw(st.sampled_from([1, d])) for d in shape[draw(st.integers(0, len(shape))) :]]
        return op.of(values.tensor(f32, shape), values.tensor(f32, other))

    return make


def batch_norm(draw: Draw, values: Values) -> Operation:
    shape = [draw(extents), c := draw(extents), *shapes(draw, 0, 2)]
    parameters = [values.tensor(f32, [c]) for _ in range(4)]
    return mico.BatchNormOp.of(values.tensor(f32, shape), *parameters, eps=draw(st.floats(0, 1)))


def _trailing_norm(op: type[mico.LayerOp], has_bias: bool) -> Make:
    def make(draw: Draw, values: Values) -> Operation:
        shape = shapes(draw, 1, 4, dynamic=False)
        dims = draw(st.integers(1, len(shape)))
        operands = [values.tensor(f32, shape), values.tensor(f32, shape[-dims:])]
        if has_bias and draw(st.booleans()):
            operands.append(values.tensor(f32, shape[-dims:]))
        return op.of(*operands, dims=dims)

    return make


def hadamard(draw: Draw, values: Values) -> Operation:
    block = draw(st.sampled_from([2, 4, 8]))
    shape = [*shapes(draw, 0, 2), draw(st.sampled_from([block, 3 * block]))]
    x = values.tensor(draw(st.sampled_from([f32, f16])), shape)
    return mico.HadamardOp.of(x, block=block)


def _pool(op: type[mico.LayerOp], **choices: st.SearchStrategy[Any]) -> Make:
    def make(draw: Draw, values: Values) -> Operation:
        kernel = [draw(st.integers(1, 4)) for _ in range(2)]
        stride = [draw(st.integers(1, 3)) for _ in range(2)]
        padding = [draw(st.integers(0, kernel[i // 2] // 2)) for i in range(4)]
        spatial = [draw(st.one_of(st.just(DYNAMIC), st.integers(k * 2, k * 2 + 5))) for k in kernel]
        named = {name: draw(choice) for name, choice in choices.items()}
        windows(spatial, kernel, stride, padding, named.get("dilation", [1, 1]))
        x = values.tensor(f32, [draw(extents), draw(extents), *spatial])
        return op.of(x, kernel_size=kernel, stride=stride, padding=padding, **named)

    return make


def flatten(draw: Draw, values: Values) -> Operation:
    shape = shapes(draw)
    start = draw(st.integers(0, len(shape) - 1))
    end = draw(st.integers(start, len(shape) - 1)) - draw(st.sampled_from([0, len(shape)]))
    return mico.FlattenOp.of(values.tensor(f32, shape), start_dim=start, end_dim=end)


def reshape(draw: Draw, values: Values) -> Operation:
    shape = shapes(draw, 1, 4, dynamic=False)
    wanted = draw(st.permutations(shape))
    wanted = [-1, *wanted[1:]] if draw(st.booleans()) else wanted
    return mico.ReshapeOp.of(values.tensor(f32, shape), shape=wanted)


def transpose(draw: Draw, values: Values) -> Operation:
    shape = shapes(draw)
    permutation = draw(st.permutations(range(len(shape))))
    return mico.TransposeOp.of(values.tensor(f32, shape), permutation=permutation)


def concat(draw: Draw, values: Values) -> Operation:
    shape = shapes(draw)
    dim = draw(st.integers(0, len(shape) - 1))
    inputs = [
        values.tensor(f32, [*shape[:dim], draw(extents), *shape[dim + 1 :]])
        for _ in range(draw(extents))
    ]
    return mico.ConcatOp.of(*inputs, dim=dim - draw(st.sampled_from([0, len(shape)])))


pairs = st.lists(st.integers(1, 2), min_size=2, max_size=2)
OPS: dict[str, Make] = {
    **{
        op.name: _unary(op)
        for op in mico.Mico.operations
        if issubclass(op, UnaryOp) and not op.attribute_names()
    },
    "mico.bitlinear": bitlinear,
    "mico.bitlinear (accumulators)": accumulators,
    "mico.bitconv2d": _convolution(mico.BitConv2dOp, 2),
    "mico.bitconv1d": _convolution(mico.BitConv1dOp, 1),
    "mico.embedding": embedding,
    "mico.attention": attention,
    "mico.weight_quant": weight_quant,
    "mico.activation_quant": activation_quant,
    "mico.quantize": _given_scale(mico.QuantizeOp, True),
    "mico.dequantize": _given_scale(mico.DequantizeOp, False),
    "mico.requantize": requantize,
    "mico.bundle": bundle,
    "mico.unbundle": unbundle,
    "mico.relu": relu,
    "mico.gelu": _unary(mico.GeluOp, approximate=st.sampled_from(["none", "tanh"])),
    "mico.softmax": _unary(mico.SoftmaxOp, dim=st.sampled_from([0, -1])),
    "mico.add": _binary(mico.AddOp),
    "mico.mul": _binary(mico.MulOp),
    "mico.batch_norm": batch_norm,
    "mico.layer_norm": _trailing_norm(mico.LayerNormOp, True),
    "mico.rms_norm": _trailing_norm(mico.RmsNormOp, False),
    "mico.hadamard": hadamard,
    "mico.maxpool2d": _pool(mico.MaxPool2dOp, dilation=pairs, ceil_mode=st.booleans()),
    "mico.avgpool2d": _pool(
        mico.AvgPool2dOp, ceil_mode=st.booleans(), count_include_pad=st.booleans()
    ),
    "mico.flatten": flatten,
    "mico.reshape": reshape,
    "mico.transpose": transpose,
    "mico.concat": concat,
}
"""A maker for every op that computes; constants and calls are made by `modules`."""


def with_property(has: type[Property]) -> list[str]:
    """Return the ops of our dialects that declare a property, perhaps for some of their forms only."""
    ours = [*mico.Mico.operations, *kernel.Kernel.operations]
    return [op.name for op in ours if op.has_trait(has)]


@st.composite
def functions(draw: Draw, name: str, make: Make) -> func.FuncOp:
    """Draw a function whose body is one op of this kind."""
    values = Values()
    op = make(draw, values)
    values.block.add_ops([op, func.ReturnOp(*op.results)])
    types = ([arg.type for arg in values.block.args], op.result_types)
    return func.FuncOp(name, types, Region(values.block))


@st.composite
def constants(draw: Draw, name: str) -> list[mico.ConstantOp]:
    """Draw a constant in any of its forms, and the scale and zero point that it names."""
    shape = shapes(draw, 1, 4, dynamic=False)
    if draw(st.booleans()):
        type = TensorType(f32, shape)
        floats = draw(
            st.lists(
                st.floats(width=32, allow_nan=False), min_size=prod(shape), max_size=prod(shape)
            )
        )
        return [mico.ConstantOp(name, type, DenseIntOrFPElementsAttr.from_list(type, floats))]
    width: Width = draw(widths)
    scale_shape = draw(st.sampled_from([[], shape[:1]]))
    scale_type = TensorType(f32, scale_shape)
    scale = mico.ConstantOp(
        f"{name}.s", scale_type, DenseIntOrFPElementsAttr.from_list(scale_type, [0.5])
    )
    digest = draw(st.from_regex(r"[0-9a-f]{64}", fullmatch=True))
    size = shape[0] * row_bytes(prod(shape[1:]), width)
    value = draw(
        st.one_of(
            st.binary(min_size=size, max_size=size).map(mico.PackedAttr),
            st.from_regex(r"[ !#-\[\]-~]{1,8}", fullmatch=True).map(
                lambda key: mico.RefAttr(key, digest)
            ),
        )
    )
    few = TensorType(mico.few_bit_type(width), shape)
    parts = [scale, mico.ConstantOp(name, few, value, f"{name}.s")]
    if width >= Width.of(2) and draw(st.booleans()):
        type = TensorType(i32, scale_shape)
        data = DenseIntOrFPElementsAttr.from_list(type, [3])
        parts = [mico.ConstantOp(f"{name}.z", type, data), scale]
        parts.append(mico.ConstantOp(name, few, value, f"{name}.s", f"{name}.z"))
    return parts


@st.composite
def subgraphs(draw: Draw, name: str) -> list[Operation]:
    """Draw a subgraph, and another that calls it and moves its result between devices."""
    devices = st.from_regex(r"[a-z][a-z0-9_]{0,4}(:[0-9])?", fullmatch=True)
    type = TensorType(f32, shapes(draw))
    count = draw(st.integers(0, 3))
    inner = Block(arg_types=[type] * count)
    inner.add_op(graph.ReturnOp(*inner.args))
    outer = Block(arg_types=[type] * count)
    call = graph.CallOp(name, outer.args, [type] * count)
    outer.add_op(call)
    results = list(call.results)
    here, there = draw(devices), draw(devices)
    if results and here != there:
        move = graph.TransferOp(results[0], here, there)
        outer.add_op(move)
        results[0] = move.result
    outer.add_op(graph.ReturnOp(*results))
    signature = ([type] * count, [type] * count)
    device = draw(st.one_of(st.none(), devices))
    return [
        graph.SubgraphOp(name, signature, Region(inner), device),
        graph.SubgraphOp(f"{name}.outer", signature, Region(outer)),
    ]


@st.composite
def modules(draw: Draw) -> ModuleOp:
    """Draw a module of constants, reads of them, functions of any op, and subgraphs."""
    ops: list[Operation] = []
    for i in range(draw(st.integers(0, 2))):
        made = draw(constants(f"c{i}"))
        block = Block([get := mico.GetConstantOp(made[-1].sym_name.data, made[-1].type)])
        block.add_op(func.ReturnOp(get.result))
        ops += [*made, func.FuncOp(f"read{i}", ([], [made[-1].type]), Region(block))]
    for i, kind in enumerate(draw(st.lists(st.sampled_from(sorted(OPS)), max_size=3))):
        ops.append(draw(functions(f"f{i}", OPS[kind])))
    if draw(st.booleans()):
        ops += draw(subgraphs(draw(names)))
    return ModuleOp(ops)
