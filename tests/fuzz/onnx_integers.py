"""Kinds of nodes on integers and truth values, on casts between them, and on quantized tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from tests.fuzz.onnx_graphs import BOOL, FLOAT, INT8, INT32, INT64, INTEGERS, UINT8, Graph, Value
from tests.fuzz.onnx_kinds import COMPARISONS, Kind, of_rank

NUMPY: dict[int, type[np.integer[Any]]] = {
    INT64: np.int64,
    INT32: np.int32,
    INT8: np.int8,
    UINT8: np.uint8,
}
DOUBLE = TensorProto.DOUBLE


def is_integer(value: Value) -> bool:
    return value.type in INTEGERS


def is_bool(value: Value) -> bool:
    return value.type == BOOL


def integer_unary(g: Graph) -> None:
    if x := g.pick(lambda v: v.type in (INT64, INT32, INT8)):
        g.add(g.choice(("Neg", "Abs", "Sign")), [x])


def integer_binary(g: Graph) -> None:
    """Add an op on integers, of which the second are constants, or those of another tensor."""
    x = g.pick(is_integer)
    if x is None:
        return
    kind = g.choice(("Add", "Sub", "Mul", "Max", "Min", "Div", "Mod"))
    other = g.pick(lambda v: v.type == x.type and v.shape == x.shape)
    if other is not None and kind in ("Add", "Sub", "Max", "Min") and g.rng.random() < 0.5:
        g.add(kind, [x, other])
        return
    shape = [1 if g.rng.random() < 0.4 else size for size in x.shape]
    g.add(kind, [x, g.constant(g.rng.integers(1, 6, shape).astype(NUMPY[x.type]))])


def bits(g: Graph) -> None:
    x = g.pick(is_integer)
    if x is None:
        return
    kind = g.choice(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift"))
    other = g.constant(np.array(3, NUMPY[x.type]))
    match kind:
        case "BitwiseNot":
            g.add(kind, [x])
        case "BitShift":
            if x.type == UINT8:
                g.add(kind, [x, other], direction=g.choice(("LEFT", "RIGHT")))
        case _:
            g.add(kind, [x, other])


def integer_reduction(g: Graph) -> None:
    x = g.pick(lambda v: v.type in (INT64, INT32) and v.rank > 0)
    if x is None:
        return
    count = int(g.rng.integers(1, x.rank + 1))
    axes = g.integers(*(int(i) - x.rank for i in g.rng.choice(x.rank, count, replace=False)))
    kind = g.choice(("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"))
    g.add(kind, [x, axes], keepdims=int(g.rng.integers(2)))


def comparison(g: Graph) -> None:
    x = g.pick(lambda v: v.type in (FLOAT, INT64, INT32))
    if x is None:
        return
    constant = g.constant(np.array(1, np.float32 if x.type == FLOAT else NUMPY[x.type]))
    other = g.pick(lambda v: v.type == x.type and v.shape == x.shape and v != x) or constant
    g.add(g.choice(COMPARISONS), [x, other])


def logic(g: Graph) -> None:
    x = g.pick(is_bool)
    if x is None:
        return
    other = g.pick(lambda v: is_bool(v) and v.shape == x.shape) or x
    kind = g.choice(("And", "Or", "Xor", "Not"))
    g.add(kind, [x] if kind == "Not" else [x, other])


def choice(g: Graph) -> None:
    """Add a choice between tensors of any type, by truth values that are broadcast."""
    condition = g.pick(is_bool)
    if condition is None:
        return
    x = g.pick(lambda v: v.shape == condition.shape and v != condition)
    if x is None:
        x = g.pick(lambda v: v.rank == condition.rank and v.type == FLOAT)
    if x is not None:
        other = g.pick(lambda v: v.type == x.type and v.shape == x.shape) or x
        g.add("Where", [condition, x, other])


def any_cast(g: Graph) -> None:
    """Add a cast to another type; floats are clipped to what all types have."""
    x = g.pick() if g.rng.random() < 0.4 else g.pick(lambda v: v.type != FLOAT)
    if x is None:
        return
    to = g.choice((FLOAT, INT64, INT32, INT8, UINT8, BOOL, DOUBLE))
    if x.type in (FLOAT, DOUBLE) and to in INTEGERS:
        if x.type == DOUBLE:
            return
        number = g.add("IsNaN", [x])
        if not number:
            return
        zero, low, high = (g.constant(np.float32(v)) for v in (0, 0 if to == UINT8 else -100, 100))
        x = g.add("Where", [number[0], zero, x])[0]
        x = g.add("Clip", [x, low, high])[0]
    g.add("Cast", [x], to=to)


def double(g: Graph) -> None:
    x = g.pick(lambda v: v.type == DOUBLE)
    if x is None:
        return
    g.add(g.choice(("Relu", "Abs", "Neg", "Sqrt", "Sigmoid", "Floor")), [x])


def odd_numbers(g: Graph) -> None:
    """Add numbers that are infinite or none, and the choice of others in their place."""
    x = g.pick()
    if x is None:
        return
    kind, test = g.choice((("Log", "IsNaN"), ("Reciprocal", "IsInf")))
    odd = f"odd{len(g.nodes)}"
    g.node("Relu" if test == "IsInf" else "Identity", [x], [x.shape])
    g.hidden_node(kind, [g.values[-1]], odd)
    g.node(test, [odd], [x.shape], BOOL)
    g.node("Where", [g.values[-1], x, odd], [x.shape])


def quantized(g: Graph) -> None:
    """Add a rounding to integers of 8 bits, and perhaps back to floats."""
    x = g.pick(of_rank(1, 2, 3, 4))
    if x is None:
        return
    axis = int(g.rng.integers(x.rank))
    count = () if g.rng.random() < 0.5 else (x.shape[axis],)
    kind = g.choice((np.int8, np.uint8))
    scale = g.constant(g.rng.uniform(0.02, 0.2, count).astype(np.float32))
    zero = g.constant(g.rng.integers(0, 9, count).astype(kind))
    made = g.add("QuantizeLinear", [x, scale, zero], axis=axis)
    if made and g.rng.random() < 0.7:
        g.add("DequantizeLinear", [made[0], scale, zero], axis=axis)


def integer_matmul(g: Graph) -> None:
    x = g.pick(lambda v: v.type in (INT8, UINT8) and v.rank > 1)
    if x is not None:
        weight = g.constant(g.rng.integers(-9, 9, (x.shape[-1], g.size())).astype(np.int8))
        g.add("MatMulInteger", [x, weight])


def quantized_by_data(g: Graph) -> None:
    if x := g.pick(of_rank(1, 2, 3, 4)):
        g.add("DynamicQuantizeLinear", [x], 3)


def remainder(g: Graph) -> None:
    if x := g.pick():
        g.add("Mod", [x, g.constant(np.float32(0.75))], fmod=1)


def integer_power(g: Graph) -> None:
    if x := g.pick(lambda v: v.type in (INT64, INT32)):
        exponent: Any = g.constant(np.array(2, NUMPY[x.type]))
        g.add("Pow", [x, exponent])


KINDS: tuple[Kind, ...] = (
    integer_unary, integer_binary, integer_binary, bits, integer_reduction, comparison, logic,
    choice, choice, any_cast, any_cast, double, odd_numbers, quantized, integer_matmul,
    quantized_by_data, remainder, integer_power,
)  # fmt: skip
