"""Ops on sizes of which some are symbols: computed on arrays of objects, so that they stay sizes.

Only what exporters write to compute shapes is here. An op gives None where it is not about sizes
after all; the sizes then become a tensor of the program.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, cast

import numpy as np
import torch

from fewbit.frontends.onnx.kinds import BITS, DOUBLE, FLOAT, INT32, INT64, is_float
from fewbit.frontends.onnx.table import Call
from fewbit.frontends.onnx.values import Known, Sizes, Tensorlike, sizes

Array = np.ndarray[Any, Any]
SIZE_OPS: dict[str, Callable[[Call], Tensorlike | None]] = {}


def _on_sizes(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(run: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(call: Call) -> Tensorlike | None:
            arrays = [objects(value) for value in call.inputs]
            if any(array is None for array in arrays):
                return None
            kind = call.kind(0)
            if call.op == "Div" and is_float(kind):
                return None
            result = run(call, *arrays)
            if call.op == "Cast":
                kind = call.attr("to")
            return None if result is None else sizes(_array(result), kind)

        for name in names:
            SIZE_OPS[name] = guarded
        return run

    return add


def objects(value: Any) -> Array | None:
    if isinstance(value, Sizes):
        return value.array
    if isinstance(value, Known) and value.kind in BITS and value.tensor.numel() <= 64:
        return np.array(value.items(), dtype=object).reshape(value.shape)
    return None


def _array(result: Any) -> Array:
    if isinstance(result, np.ndarray):
        return cast(Array, result)
    single = np.empty((), dtype=object)
    single[()] = result
    return single


def _elementwise(run: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    on_arrays = np.frompyfunc(run, 2, 1)

    def run_on(call: Call, *arrays: Array) -> Any:
        return reduce(on_arrays, arrays)

    return run_on


def _divide(a: Any, b: Any) -> Any:
    """Divide sizes, which are not negative; numbers are rounded to zero, as in C."""
    if isinstance(a, int) and isinstance(b, int):
        return int(a / b) if b else 0
    return a // b


_ELEMENTWISE: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": _divide,
    "Max": cast(Any, torch).sym_max,
    "Min": cast(Any, torch).sym_min,
}
for _name, _run in _ELEMENTWISE.items():
    _on_sizes(_name)(_elementwise(_run))


_EXACT = (INT64, INT32, FLOAT, DOUBLE)
"""Types that hold sizes as they are."""


@_on_sizes("Identity", "Cast")
def _same(call: Call, a: Array) -> Any:
    return a if call.op == "Identity" or call.attr("to") in _EXACT else None


@_on_sizes("Gather")
def _gather(call: Call, a: Array, indices: Array) -> Any:
    if a.ndim != 1 or call.attr("axis", 0) not in (0, -1):
        return None
    return a[indices.astype(np.int64)]


@_on_sizes("Concat")
def _concat(call: Call, *arrays: Array) -> Any:
    return np.concatenate(arrays, axis=call.attr("axis", 0))


@_on_sizes("Slice")
def _slice(call: Call, a: Array, *limits: Array) -> Any:
    if a.ndim != 1 or call.version < 10 or len(limits) < 2:
        return None
    if not all(isinstance(item, int) for limit in limits for item in limit.flat):
        return None
    start, end = (int(limit.flat[0]) for limit in limits[:2])
    step = int(limits[3].flat[0]) if len(limits) == 4 else 1
    return a[start : (None if step < 0 and end < -len(a) else end) : step]


@_on_sizes("Squeeze")
def _squeeze(call: Call, a: Array, *axes: Array) -> Any:
    return a.reshape(()) if a.size == 1 and a.ndim == 1 else None


@_on_sizes("Unsqueeze")
def _unsqueeze(call: Call, a: Array, *axes: Array) -> Any:
    return a.reshape(1) if a.ndim == 0 else None


@_on_sizes("Reshape")
def _reshape(call: Call, a: Array, shape: Array) -> Any:
    return a.reshape([int(size) for size in shape.flat])


@_on_sizes("ReduceProd")
def _product(call: Call, a: Array, *axes: Array) -> Any:
    if a.ndim != 1:
        return None
    product = _array(reduce(operator.mul, a.flat, 1))
    return product.reshape(1) if call.attr("keepdims", 1) else product
