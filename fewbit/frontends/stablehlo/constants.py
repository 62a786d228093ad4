"""What is known when a module is imported: constants, and what is computed from them.

An expression of constants is kept as such. Weights are transposed and reshaped here, not by the
program, and a batch norm is recognized by the numbers that it computes: these are evaluated in
float64, so that the order in which a framework writes its arithmetic does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from fewbit.frontends.stablehlo.dense import Array, is_splat, one_of_each, splat_of
from fewbit.frontends.stablehlo.ops import Op, TensorType

SMALL = 1 << 16
"""Elements up to which anything is computed at import; above, what does not grow."""

Evaluator = Callable[[Op, Sequence[Array]], Array | None]


@dataclass(eq=False)
class Constant:
    """A tensor that is known: given, or computed by `op` from `operands`."""

    type: TensorType
    given: Array | None = None
    name: str | None = None
    """What the model calls it."""
    op: Op | None = None
    operands: tuple[Constant, ...] = field(default=())
    origin: Constant | None = None
    """The constant of which this is another form."""

    @staticmethod
    def of(array: Array, name: str | None = None) -> Constant:
        element = ELEMENTS[np.dtype(array.dtype)]
        return Constant(TensorType(array.shape, element), array, name)

    @cached_property
    def array(self) -> Array:
        if self.given is not None:
            return self.given
        assert self.op is not None
        array = EVALUATORS[self.op.kind](self.op, [operand.array for operand in self.operands])
        assert array is not None
        return _as_type(array, self.type)

    @cached_property
    def precise(self) -> Array:
        """Floats in float64, computed without rounding in between."""
        if self.given is not None:
            return self.given.astype(np.float64) if self.type.is_float else self.given
        assert self.op is not None
        array = EVALUATORS[self.op.kind](self.op, [operand.precise for operand in self.operands])
        assert array is not None
        return array if self.type.is_float else _as_type(array, self.type)

    @property
    def splat(self) -> Any | None:
        """The element that all are; None where they differ."""
        return splat_of(self.array)

    def leaves(self) -> list[Constant]:
        """The given tensors that this is computed from, each once."""
        if self.origin is not None:
            return self.origin.leaves()
        if self.op is None:
            return [self]
        return list(dict.fromkeys(leaf for o in self.operands for leaf in o.leaves()))

    def transpose(self, order: Sequence[int]) -> Constant:
        return self.rearrange(self.array.transpose(order))

    def rearrange(self, array: Array) -> Constant:
        """The same numbers in another order or shape."""
        constant = Constant.of(array)
        constant.origin = self
        return constant


def fold(op: Op, operands: Sequence[Constant]) -> Constant | None:
    """The op's result as a constant; None where it is left to the program."""
    evaluator = EVALUATORS.get(op.kind)
    if evaluator is None or len(op.results) != 1 or op.result.tensor.size == 0:
        return None
    arrays = [operand.array for operand in operands]
    if op.kind not in _VIEWS and _extent(arrays) > max(SMALL, *(a.size for a in arrays)):
        return None
    with np.errstate(all="ignore"):
        array = evaluator(op, arrays)
    if array is None or array.shape != op.result.tensor.shape:
        return None
    constant = Constant(op.result.tensor, op=op, operands=tuple(operands))
    constant.__dict__["array"] = _as_type(array, constant.type)
    return constant


_VIEWS = ("broadcast_in_dim", "iota", "transpose", "reshape", "slice", "reverse", "convert")
"""Ops that are done without more memory, but for the conversion of what has some."""


def _extent(arrays: Sequence[Array]) -> int:
    """Elements to compute where broadcast dimensions are done once."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays)) if len(arrays) > 1 else arrays[0].shape
    if any(a.shape != shape for a in arrays):
        return sum(a.size for a in arrays)
    return prod(n for d, n in enumerate(shape) if any(a.strides[d] for a in arrays))


def _as_type(array: Array, type: TensorType) -> Array:
    if array.dtype == type.dtype:
        return array
    return np.broadcast_to(one_of_each(array).astype(type.dtype), array.shape)


ELEMENTS: dict[np.dtype[Any], str] = {
    TensorType((), element).dtype: element
    for element in ("f32", "f64", "f16", "bf16", "i1", "i8", "i16", "i32", "i64",
                    "ui8", "ui16", "ui32", "ui64")
}  # fmt: skip


def _arithmetic(function: Callable[..., Array], *, integers: bool = False) -> Evaluator:
    """An elementwise function; along dimensions in which all is broadcast it is done once."""

    def evaluate(op: Op, operands: Sequence[Array]) -> Array | None:
        element = op.operands[0].tensor.element
        if element == "i1" or not (op.operands[0].tensor.is_float or integers):
            return None
        return _elementwise(function, operands)

    return evaluate


def _elementwise(function: Callable[..., Array], operands: Sequence[Array]) -> Array:
    shape = operands[0].shape
    once = tuple(
        slice(None) if any(a.strides[d] for a in operands) else slice(0, 1)
        for d in range(len(shape))
    )
    with np.errstate(all="ignore"):
        return np.broadcast_to(function(*(operand[once] for operand in operands)), shape)


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _convert(op: Op, operands: Sequence[Array]) -> Array | None:
    """Between floats, to floats, and between integers that hold each other's values."""
    given, wanted = op.operands[0].tensor, op.result.tensor
    if wanted.is_float or given.element == "i1":
        return _as_type(operands[0], wanted) if operands[0].dtype != np.float64 else operands[0]
    if given.is_float or wanted.element == "i1":
        return None
    exact = np.can_cast(given.dtype, wanted.dtype, "safe")
    return _as_type(operands[0], wanted) if exact else None


def _transpose(op: Op, operands: Sequence[Array]) -> Array:
    return operands[0].transpose(op.integers("permutation"))


def _reshape(op: Op, operands: Sequence[Array]) -> Array:
    shape = op.result.tensor.shape
    if is_splat(operands[0]):
        return np.broadcast_to(operands[0][(0,) * operands[0].ndim], shape)
    return operands[0].reshape(shape)


def _broadcast(op: Op, operands: Sequence[Array]) -> Array:
    shape = op.result.tensor.shape
    places = op.integers("broadcast_dimensions")
    by_place = sorted(range(len(places)), key=lambda i: places[i])
    transposed = operands[0].transpose(by_place)
    index = tuple(slice(None) if d in places else None for d in range(len(shape)))
    return np.broadcast_to(transposed[index], shape)


def _slice(op: Op, operands: Sequence[Array]) -> Array:
    starts, limits, strides = (
        op.integers(name) for name in ("start_indices", "limit_indices", "strides")
    )
    return operands[0][tuple(map(slice, starts, limits, strides))]


def _concatenate(op: Op, operands: Sequence[Array]) -> Array:
    return np.concatenate(operands, op.integer("dimension"))


def _reverse(op: Op, operands: Sequence[Array]) -> Array:
    return np.flip(operands[0], op.integers("dimensions"))


def _iota(op: Op, operands: Sequence[Array]) -> Array:
    type = op.result.tensor
    axis = op.integer("iota_dimension")
    numbers = np.arange(type.shape[axis]).astype(type.dtype)
    return np.broadcast_to(
        numbers.reshape([-1 if d == axis else 1 for d in range(type.rank)]), type.shape
    )


def _pad(op: Op, operands: Sequence[Array]) -> Array | None:
    low, high, inner = (
        op.integers(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    if any(inner) or min((*low, *high, 0)) < 0:
        return None
    return np.pad(
        operands[0], list(zip(low, high, strict=True)), constant_values=operands[1].item()
    )


_COMPARISONS: dict[str, Callable[..., Array]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _compare(op: Op, operands: Sequence[Array]) -> Array | None:
    if op.word("compare_type") == "TOTALORDER":
        return None
    return _elementwise(_COMPARISONS[op.word("comparison_direction")], operands)


def _select(op: Op, operands: Sequence[Array]) -> Array:
    return _elementwise(np.where, np.broadcast_arrays(*operands))


EVALUATORS: dict[str, Evaluator] = {
    "add": _arithmetic(np.add, integers=True),
    "subtract": _arithmetic(np.subtract, integers=True),
    "multiply": _arithmetic(np.multiply, integers=True),
    "divide": _arithmetic(np.divide),
    "negate": _arithmetic(np.negative, integers=True),
    "sqrt": _arithmetic(np.sqrt),
    "rsqrt": _arithmetic(_rsqrt),
    "exponential": _arithmetic(np.exp),
    "log": _arithmetic(np.log),
    "power": _arithmetic(np.power),
    "abs": _arithmetic(np.abs),
    "tanh": _arithmetic(np.tanh),
    "compare": _compare,
    "select": _select,
    "convert": _convert,
    "transpose": _transpose,
    "reshape": _reshape,
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "concatenate": _concatenate,
    "reverse": _reverse,
    "iota": _iota,
    "pad": _pad,
}
"""What is computed at import. Quotients of integers are left to the program."""
