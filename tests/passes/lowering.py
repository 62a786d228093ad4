"""What the tests of lowerings share: running them, inputs that make sense, and comparisons.

An argument of a random function is used by one op, and what it is there (a scale, a zero point,
indices) says which values are possible.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation

from fewbit.dialects import mico
from fewbit.interpreter import interpret
from fewbit.interpreter.values import dtype_of
from fewbit.ir.context import make_context
from fewbit.ir.verify import verify
from fewbit.ir.walk import nested_ops
from fewbit.numerics import Quantized, Width, pack
from fewbit.passes.pipelines import LOWER_MICO
from fewbit.universe import UNIVERSE
from tests.dialects.programs import OPS, functions

Array = npt.NDArray[Any]


@cache
def context() -> Context:
    return make_context()


def lower(module: ModuleOp, *passes: str) -> ModuleOp:
    """Run passes, all of `LOWER_MICO` if none is named, and verify after each."""
    for name in passes or LOWER_MICO:
        UNIVERSE.all_passes[name]()().apply(context(), module)
        verify(module, name)
    return module


def mico_ops(module: ModuleOp) -> set[str]:
    return {op.name for op in nested_ops(module) if op.dialect_name() == "mico"}


def role_of(argument: BlockArgument) -> tuple[Operation, str]:
    """Return the op that uses an argument, and the name of the operand that it is."""
    use = next(iter(argument.uses))
    op = use.operation
    assert isinstance(op, mico.LayerOp)
    for name, _ in op.get_irdl_definition().operands:
        value = getattr(op, name)
        if value is argument or (isinstance(value, tuple) and argument in value):
            return op, name
    return op, "input"


def inputs_for(function: func.FuncOp, rng: np.random.Generator) -> list[Array]:
    return [_value(argument, rng) for argument in function.args]


def _value(argument: BlockArgument, rng: np.random.Generator) -> Array:
    op, role = role_of(argument)
    type = argument.type
    shape = shape_of(type)
    if "zero_point" in role:
        return rng.integers(-2, 2, shape).astype(dtype_of(type))
    if role == "indices":
        assert isinstance(op, mico.EmbeddingOp)
        return rng.integers(0, mico.shape_of(op.weight.type)[0], shape).astype(dtype_of(type))
    if role == "shift":
        return rng.integers(0, 40, shape).astype(dtype_of(type))
    if role == "multiplier" and isinstance(mico.element_type(type), IntegerType):
        return rng.integers(-(1 << 30), 1 << 30, shape).astype(dtype_of(type))
    if role == "mask" and dtype_of(type) == np.bool_:
        # A row that is masked everywhere has no softmax.
        keep = rng.integers(0, 2, shape).astype(bool)
        keep[..., 0] = True
        return keep
    if "scale" in role or role == "variance":
        return (rng.random(shape) + 0.1).astype(dtype_of(type))
    return values_of(type, rng)


def values_of(type: Attribute, rng: np.random.Generator) -> Array:
    """Return values of a tensor: what its width holds, or numbers of either sign."""
    shape, width = shape_of(type), mico.element_width(type)
    if width is not None:
        values = rng.integers(width.qmin, width.qmax + 1, shape)
        return np.where((values == 0) & width.is_binary, 1, values).astype(np.int8)
    element = mico.element_type(type)
    if isinstance(element, IntegerType):
        return rng.integers(-100_000, 100_000, shape).astype(dtype_of(type))
    return np.asarray(rng.standard_normal(shape) * 3).astype(dtype_of(type))


def shape_of(type: Attribute) -> tuple[int, ...]:
    """Return a shape with 9 for dynamic dimensions."""
    return tuple(9 if size == DYNAMIC_INDEX else size for size in mico.shape_of(type))


TAIL = 1e-6


def assert_same(given: Array, expected: Array, tolerance: float = 1e-5) -> None:
    """Compare integers exactly, floats to within the tolerance, relative to the largest.

    Where all results are the tail of an activation, they are what 1 + erf(x) leaves, times x: the
    last bit of 1, times some tens.
    """
    assert given.dtype == expected.dtype
    assert given.shape == expected.shape
    if expected.dtype.kind in "iub":
        np.testing.assert_array_equal(given, expected)
        return
    if expected.dtype.itemsize < 4:
        tolerance = 2e-3
    finite = expected[np.isfinite(expected)]
    largest = np.abs(finite).max(initial=0)
    absolute = tolerance * largest + TAIL
    np.testing.assert_allclose(given, expected, rtol=tolerance, atol=absolute)


def check(module: ModuleOp, *inputs: Any, passes: tuple[str, ...] = ()) -> list[Array]:
    """Lower a module; return its results, which must not change."""
    expected = interpret(module, *inputs)
    lower(module, *passes)
    given = interpret(module, *inputs)
    for after, before in zip(given, expected, strict=True):
        assert_same(after, before)
    return list(given)


def check_random(data: st.DataObject, kind: str, *passes: str) -> None:
    """Lower a function of one random op of a kind, which must then be gone."""
    function = data.draw(functions("main", OPS[kind]))
    module = ModuleOp([function])
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    check(module, *inputs_for(function, rng), passes=passes)
    assert kind.split()[0] not in mico_ops(module)


RANDOM = settings(
    deadline=None,
    max_examples=7,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def element_text(width: Width) -> str:
    """Return a width as the element type in text."""
    return "!mico.ternary" if width.is_ternary else f"!mico.int<{width.bits}>"


def hexadecimal(array: Array) -> str:
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}">'


def constants(name: str, quantized: Quantized) -> str:
    """Return text of a weight and its scale (and zero point): @name, @name.scale, @name.zero."""
    shape = "x".join(map(str, quantized.shape))
    scale_shape = "".join(f"{size}x" for size in quantized.scale.shape)
    rows = quantized.values.reshape(quantized.shape[0], -1)
    lines = [
        f"mico.constant @{name}.scale : tensor<{scale_shape}f32> = " + hexadecimal(quantized.scale)
    ]
    clause = f" scale @{name}.scale"
    if quantized.zero_point is not None:
        lines.append(
            f"mico.constant @{name}.zero : tensor<{scale_shape}i32> = "
            + hexadecimal(quantized.zero_point)
        )
        clause += f" zero_point @{name}.zero"
    packed = hexadecimal(pack(rows, quantized.width))
    element = element_text(quantized.width)
    lines.append(f"mico.constant @{name} : tensor<{shape}x{element}> = {packed}{clause}")
    return "\n".join(lines) + "\n"
