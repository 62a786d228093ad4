"""Kinds of nodes that most models consist of: each adds one to a random ONNX graph, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tests.fuzz.onnx_graphs import BOOL, FLOAT, INT64, MOST, Graph, Value

Kind = Callable[[Graph], None]

UNARY = (
    "Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Exp", "Erf", "Softplus", "Softsign", "HardSigmoid",
    "HardSwish", "Elu", "Selu", "LeakyRelu", "Floor", "Ceil", "Round", "Sin", "Cos", "Atan", "Sign",
    "Gelu", "Mish", "Celu", "Identity", "ThresholdedRelu",
)  # fmt: skip
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu")
COMPARISONS = ("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal")
REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare")


def of_rank(*ranks: int, type: int | None = FLOAT) -> Callable[[Value], bool]:
    """Return whether a value has such a rank and type; None is any type."""
    return lambda value: value.rank in ranks and type in (value.type, None)


def unary(g: Graph) -> None:
    if x := g.pick():
        g.node(g.choice(UNARY), [x], [x.shape])


def safe_root(g: Graph) -> None:
    """Add a square root or a logarithm of what cannot be negative."""
    if x := g.pick():
        g.node("Abs", [x], [x.shape])
        g.node("Add", [g.values[-1], g.constant(np.float32(0.5))], [x.shape])
        g.node(g.choice(("Sqrt", "Log", "Reciprocal")), [g.values[-1]], [x.shape])


def binary(g: Graph) -> None:
    """Add an op on two tensors that broadcast, of which the second may be a constant."""
    x = g.pick()
    if x is None:
        return
    kind = g.choice(BINARY)
    other = g.pick(lambda v: v.type == FLOAT and v.shape == x.shape)
    if other is not None and kind not in ("Div", "PRelu") and g.rng.random() < 0.6:
        g.node(kind, [x, other], [x.shape])
        return
    shape = [1 if g.rng.random() < 0.4 else size for size in x.shape]
    shape = shape[int(g.rng.integers(len(shape) + 1)) :]
    values = np.abs(g.rng.standard_normal(shape)) + 0.5
    g.node(kind, [x, g.constant(values.astype(np.float32))], [x.shape])


def power(g: Graph) -> None:
    if x := g.pick():
        exponent = np.float32(g.choice((2.0, 3.0)))
        g.node("Pow", [x, g.constant(exponent)], [x.shape])


def clip(g: Graph) -> None:
    if x := g.pick():
        low, high = (g.constant(np.float32(v)) for v in (-0.7, 0.9))
        g.node("Clip", [x, low, high], [x.shape])


def where(g: Graph) -> None:
    x = g.pick()
    if x is None:
        return
    g.node(g.choice(COMPARISONS), [x, g.constant(np.float32(0.1))], [x.shape], BOOL)
    other = g.pick(lambda v: v.type == FLOAT and v.shape == x.shape) or x
    g.node("Where", [g.values[-1], x, other], [x.shape])


def logic(g: Graph) -> None:
    if x := g.pick(lambda v: v.type == BOOL):
        g.node("Not", [x], [x.shape], BOOL)
        g.node("Cast", [g.values[-1]], [x.shape], to=FLOAT)


def softmax(g: Graph) -> None:
    if x := g.pick(of_rank(1, 2, 3, 4)):
        g.node(g.choice(("Softmax", "LogSoftmax")), [x], [x.shape], axis=axis_of(g, x))


def reduction(g: Graph) -> None:
    x = g.pick(of_rank(1, 2, 3, 4))
    if x is None:
        return
    axes = sorted(g.rng.choice(x.rank, int(g.rng.integers(1, x.rank + 1)), replace=False).tolist())
    keep = int(g.rng.integers(2))
    shape = [1 if i in axes else size for i, size in enumerate(x.shape) if keep or i not in axes]
    g.node(g.choice(REDUCTIONS), [x, g.integers(*axes)], [tuple(shape)], keepdims=keep)


def arg_extreme(g: Graph) -> None:
    if x := g.pick(of_rank(1, 2, 3)):
        axis = axis_of(g, x)
        shape = tuple(size for i, size in enumerate(x.shape) if i != axis)
        g.node(g.choice(("ArgMax", "ArgMin")), [x], [shape], INT64, axis=axis, keepdims=0)


def cumulative(g: Graph) -> None:
    if x := g.pick(of_rank(1, 2, 3)):
        axis = g.constant(np.int64(axis_of(g, x)))
        g.node("CumSum", [x, axis], [x.shape], exclusive=int(g.rng.integers(2)))


def top_k(g: Graph) -> None:
    if x := g.pick(of_rank(1, 2, 3)):
        axis = axis_of(g, x)
        k = int(g.rng.integers(1, x.shape[axis] + 1))
        shape = tuple(k if i == axis else size for i, size in enumerate(x.shape))
        g.node("TopK", [x, g.integers(k)], [shape, shape], [FLOAT, INT64], axis=axis)


def matmul(g: Graph) -> None:
    if x := g.pick(of_rank(2, 3, 4)):
        n = g.size()
        g.node("MatMul", [x, g.weight(x.shape[-1], n)], [(*x.shape[:-1], n)])


def square(g: Graph) -> None:
    """Add a product of a tensor and its transpose."""
    if x := g.pick(of_rank(2, 3, 4)):
        order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        turned = (*x.shape[:-2], x.shape[-1], x.shape[-2])
        g.node("Transpose", [x], [turned], perm=order)
        g.node("MatMul", [x, g.values[-1]], [(*x.shape[:-1], x.shape[-2])])


def gemm(g: Graph) -> None:
    if x := g.pick(of_rank(2)):
        n, turned = g.size(), int(g.rng.integers(2))
        k = x.shape[1]
        weight = g.weight(n, k) if turned else g.weight(k, n)
        alpha = float(g.choice((1.0, 0.5)))
        g.node("Gemm", [x, weight, g.weight(n)], [(x.shape[0], n)], transB=turned, alpha=alpha)


def einsum(g: Graph) -> None:
    if x := g.pick(of_rank(3)):
        n = g.size()
        weight = g.weight(x.shape[1], x.shape[2], n)
        g.node("Einsum", [x, weight], [(x.shape[0], n)], equation="bij,ijn->bn")


def convolution(g: Graph) -> None:
    x = g.pick(of_rank(3, 4))
    if x is None:
        return
    spatial = x.rank - 2
    groups = int(g.choice([d for d in (1, 2, x.shape[1]) if x.shape[1] % d == 0]))
    out = groups * int(g.rng.integers(1, 4))
    kernel, pads, strides, dilations = _window(g, x)
    sizes = _sizes_after(x, kernel, pads, strides, dilations)
    if min(sizes) < 1:
        return
    inputs: list[Value | str] = [x, g.weight(out, x.shape[1] // groups, *kernel)]
    if g.rng.random() < 0.5:
        inputs.append(g.weight(out))
    g.node(
        "Conv", inputs, [(x.shape[0], out, *sizes)], group=groups, pads=pads, strides=strides,
        dilations=dilations, kernel_shape=kernel[:spatial],
    )  # fmt: skip


def transposed_convolution(g: Graph) -> None:
    x = g.pick(of_rank(3, 4))
    if x is None:
        return
    out, spatial = int(g.rng.integers(1, 4)), x.rank - 2
    kernel = [int(g.rng.integers(1, 4)) for _ in range(spatial)]
    strides = [int(g.rng.integers(1, 3)) for _ in range(spatial)]
    sizes = [(s - 1) * t + k for s, t, k in zip(x.shape[2:], strides, kernel, strict=True)]
    shape = (x.shape[0], out, *sizes)
    if prod(shape) <= MOST:
        g.node("ConvTranspose", [x, g.weight(x.shape[1], out, *kernel)], [shape], strides=strides)


def pool(g: Graph) -> None:
    x = g.pick(of_rank(3, 4))
    if x is None:
        return
    kernel, pads, strides, _ = _window(g, x)
    pads = [min(pad, k - 1) for pad, k in zip(pads, kernel * 2, strict=True)]
    sizes = _sizes_after(x, kernel, pads, strides, [1] * len(kernel))
    if min(sizes) < 1:
        return
    kind = g.choice(("MaxPool", "AveragePool"))
    extra = {"count_include_pad": int(g.rng.integers(2))} if kind == "AveragePool" else {}
    shape = (*x.shape[:2], *sizes)
    g.node(kind, [x], [shape], kernel_shape=kernel, pads=pads, strides=strides, **extra)


def global_pool(g: Graph) -> None:
    if x := g.pick(of_rank(3, 4)):
        kind = g.choice(("GlobalAveragePool", "GlobalMaxPool"))
        g.node(kind, [x], [(*x.shape[:2], *[1] * (x.rank - 2))])


def normalization(g: Graph) -> None:
    x = g.pick(of_rank(2, 3, 4))
    if x is None:
        return
    kind = g.choice(("BatchNormalization", "LayerNormalization", "InstanceNormalization"))
    if kind == "LayerNormalization":
        weights = [g.weight(x.shape[-1]) for _ in range(2)]
        g.node(kind, [x, *weights], [x.shape], axis=-1)
        return
    if kind == "InstanceNormalization" and x.rank < 3:
        return
    channels = x.shape[1]
    weights = [g.weight(channels) for _ in range(2)]
    if kind == "BatchNormalization":
        variance = np.abs(g.rng.standard_normal(channels)) + 0.5
        weights += [g.weight(channels), g.constant(variance.astype(np.float32))]
    g.node(kind, [x, *weights], [x.shape])


def transpose(g: Graph) -> None:
    if x := g.pick(of_rank(2, 3, 4, type=None)):
        order: list[int] = g.rng.permutation(x.rank).tolist()
        g.node("Transpose", [x], [tuple(x.shape[i] for i in order)], x.type, perm=order)


def reshape(g: Graph) -> None:
    x = g.pick(lambda v: v.rank > 0)
    if x is None:
        return
    size, shape = prod(x.shape), list[int]()
    while size > 1 and len(shape) < 3:
        factor = int(g.choice([d for d in range(1, size + 1) if size % d == 0]))
        shape.append(factor)
        size //= factor
    shape.append(size)
    told = list(shape)
    if g.rng.random() < 0.5:
        told[int(g.rng.integers(len(told)))] = -1
    g.node("Reshape", [x, g.integers(*told)], [tuple(shape)], x.type)


def flatten(g: Graph) -> None:
    if x := g.pick(of_rank(2, 3, 4, type=None)):
        axis = int(g.rng.integers(x.rank + 1))
        g.node("Flatten", [x], [(prod(x.shape[:axis]), prod(x.shape[axis:]))], x.type, axis=axis)


def unsqueeze(g: Graph) -> None:
    if x := g.pick(of_rank(0, 1, 2, 3, type=None)):
        axis = int(g.rng.integers(x.rank + 1))
        g.node("Unsqueeze", [x, g.integers(axis)], [(*x.shape[:axis], 1, *x.shape[axis:])], x.type)


def squeeze(g: Graph) -> None:
    x = g.pick(lambda v: 1 in v.shape)
    if x is not None:
        axis = x.shape.index(1)
        g.node("Squeeze", [x, g.integers(axis)], [(*x.shape[:axis], *x.shape[axis + 1 :])], x.type)


def concat(g: Graph) -> None:
    x = g.pick(of_rank(1, 2, 3, 4, type=None))
    if x is None or 2 * prod(x.shape) > MOST:
        return
    axis = axis_of(g, x)
    other = g.pick(lambda v: v.type == x.type and v.shape == x.shape) or x
    g.node("Concat", [x, other], [_with(x, axis, 2 * x.shape[axis])], x.type, axis=axis)


def split(g: Graph) -> None:
    x = g.pick(lambda v: any(size > 1 for size in v.shape))
    if x is None:
        return
    axis = next(i for i, size in enumerate(x.shape) if size > 1)
    first = int(g.rng.integers(1, x.shape[axis]))
    parts = (first, x.shape[axis] - first)
    shapes = [_with(x, axis, part) for part in parts]
    g.node("Split", [x, g.integers(*parts)], shapes, x.type, axis=axis)


def slice_(g: Graph) -> None:
    x = g.pick(of_rank(1, 2, 3, 4, type=None))
    if x is None:
        return
    axis = axis_of(g, x)
    size = x.shape[axis]
    step = int(g.choice((1, 1, 2, -1)))
    start, stop = (size - 1, -size - 1) if step < 0 else (int(g.rng.integers(size)), size)
    left = len(range(size)[start : None if step < 0 else stop : step])
    given = [g.integers(number) for number in (start, stop, axis, step)]
    g.node("Slice", [x, *given], [_with(x, axis, left)], x.type)


def gather(g: Graph) -> None:
    x = g.pick(of_rank(1, 2, 3, type=None))
    if x is None:
        return
    axis, count = axis_of(g, x), g.size()
    indices = g.rng.integers(-x.shape[axis], x.shape[axis], count)
    g.node("Gather", [x, g.constant(indices)], [_with(x, axis, count)], x.type, axis=axis)


def embedding(g: Graph) -> None:
    if x := g.pick(of_rank(2, type=INT64)):
        g.node("Gather", [g.weight(8, 3), x], [(*x.shape, 3)])


def cast(g: Graph) -> None:
    if x := g.pick(lambda v: v.type != FLOAT):
        g.node("Cast", [x], [x.shape], to=FLOAT)


def pad(g: Graph) -> None:
    x = g.pick(of_rank(2, 3, 4))
    if x is None or prod(size + 2 for size in x.shape) > MOST:
        return
    mode = g.choice(("constant", "edge", "reflect"))
    most = [1 if mode != "reflect" or size > 1 else 0 for size in x.shape]
    pads = [int(g.rng.integers(m + 1)) for m in (*most, *most)]
    sizes = [s + a + b for s, a, b in zip(x.shape, pads[: x.rank], pads[x.rank :], strict=True)]
    g.node("Pad", [x, g.integers(*pads)], [tuple(sizes)], mode=mode)


def tile(g: Graph) -> None:
    x = g.pick(of_rank(1, 2, 3, type=None))
    if x is None or prod(x.shape) * 2**x.rank > MOST:
        return
    times = [int(g.rng.integers(1, 3)) for _ in x.shape]
    g.node("Tile", [x, g.integers(*times)], [tuple(np.multiply(x.shape, times).tolist())], x.type)


def expand(g: Graph) -> None:
    x = g.pick(lambda v: 1 in v.shape)
    if x is not None:
        shape = tuple(g.size() if size == 1 else size for size in x.shape)
        if prod(shape) <= MOST:
            g.node("Expand", [x, g.integers(*shape)], [shape], x.type)


def resize(g: Graph) -> None:
    x = g.pick(of_rank(4))
    if x is None or 4 * prod(x.shape) > MOST:
        return
    mode = g.choice(("nearest", "linear"))
    sizes = (*x.shape[:2], 2 * x.shape[2], 2 * x.shape[3])
    scales = g.constant(np.array([1, 1, 2, 2], np.float32))
    way: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    g.node("Resize", [x, "", scales], [sizes], mode=mode, **(way if mode == "nearest" else {}))


def depth_to_space(g: Graph) -> None:
    x = g.pick(lambda v: v.type == FLOAT and v.rank == 4 and v.shape[1] % 4 == 0)
    if x is not None:
        n, c, h, w = x.shape
        g.node("DepthToSpace", [x], [(n, c // 4, 2 * h, 2 * w)], blocksize=2)


def axis_of(g: Graph, x: Value) -> int:
    """Return one of the axes of a tensor."""
    return int(g.rng.integers(x.rank))


def _with(x: Value, axis: int, size: int) -> tuple[int, ...]:
    return tuple(size if i == axis else old for i, old in enumerate(x.shape))


def _window(g: Graph, x: Value) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return kernel, pads, strides and dilations."""
    spatial = x.rank - 2
    kernel = [int(g.rng.integers(1, 4)) for _ in range(spatial)]
    pads = [int(g.rng.integers(2)) for _ in range(2 * spatial)]
    strides, dilations = ([int(g.choice((1, 1, 2))) for _ in range(spatial)] for _ in range(2))
    return kernel, pads, strides, dilations


def _sizes_after(
    x: Value, kernel: list[int], pads: list[int], strides: list[int], dilations: list[int]
) -> list[int]:
    spatial = x.rank - 2
    return [
        (x.shape[2 + i] + pads[i] + pads[spatial + i] - dilations[i] * (kernel[i] - 1) - 1)
        // strides[i]
        + 1
        for i in range(spatial)
    ]


KINDS: tuple[Kind, ...] = (
    unary, unary, unary, safe_root, binary, binary, power, clip, where, logic, softmax, reduction,
    arg_extreme, cumulative, top_k, matmul, matmul, square, gemm, einsum, convolution, convolution,
    transposed_convolution, pool, global_pool, normalization, transpose, reshape, flatten,
    unsqueeze, squeeze, concat, split, slice_, gather, embedding, cast, pad, tile, expand, resize,
    depth_to_space,
)  # fmt: skip
