"""Arrays in the words of iree-run-module: `2x3xf32=[1 2 3][4 5 6]`.

Read from the command line, and written as IREE's own tool writes them. Values are separated by
spaces, commas or brackets; a single value fills the array, and none is zeros.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np

from fewbit.errors import UsageError
from fewbit.program.artifact import Tensor
from fewbit.runtime.native import DTYPES, dtype_of

Array = np.ndarray[Any, Any]

MOST = 1024
"""Elements that are written; behind them stand dots, as IREE's do."""
_SHAPED = re.compile(
    r"(?P<sizes>(?:\d+x)*)(?P<element>bf16|[a-z]{1,2}\d+)(?:=(?P<values>.*))?", re.S
)


def is_buffer_view(text: str) -> bool:
    return _SHAPED.fullmatch(text) is not None


def parse_buffer_view(text: str) -> Array:
    """Parse an array such as `10xf32=0,1,2,3,4,5,6,7,8,9`, `4xi32=7` or `2x2xf32`."""
    match = _SHAPED.fullmatch(text)
    element = match["element"] if match else ""
    if match is None or element not in (*DTYPES, "bf16"):
        raise UsageError(
            f"'{text}' is no array", hint="write 2x3xf32=1,2,3,4,5,6, or @file.npy, or a number"
        )
    shape = tuple(int(size) for size in match["sizes"].split("x") if size)
    dtype = dtype_of(Tensor(name="", shape=shape, element=element))
    values = _numbers(match["values"] or "0", dtype, text)
    if len(values) == 1:
        return np.full(shape, values[0], dtype)
    if len(values) != prod(shape):
        raise UsageError(f"'{text}' has {len(values)} values for {prod(shape)} elements")
    return np.array(values, dtype).reshape(shape)


def parse_scalar(text: str, tensor: Tensor) -> Array:
    """Parse a number for an input that is no tensor; its type may stand before it, `f32=1.5`."""
    return np.array(_numbers(text.rpartition("=")[2], dtype_of(tensor), text)[0], dtype_of(tensor))


def _numbers(text: str, dtype: np.dtype[Any], given: str) -> list[Any]:
    parts = re.split(r"[\s,\[\]]+", text.strip("[] ,\n"))
    whole_numbers = dtype.kind in "iub"
    try:
        values = [int(part, 0) if whole_numbers else float(part) for part in parts if part]
        if dtype.kind in "iu":
            np.array(values, dtype)
    except (ValueError, OverflowError) as e:
        raise UsageError(f"'{given}' has values that are no {dtype}: {e}") from None
    return values


def format_result(index: int, tensor: Tensor, array: Array) -> str:
    """Return `result[0]: hal.buffer_view` and the array in the next line; a number in the same."""
    if tensor.scalar:
        return f"result[{index}]: {tensor.element}={_number(array.item())}"
    return f"result[{index}]: hal.buffer_view\n{format_buffer_view(array, tensor.element)}"


def format_buffer_view(array: Array, element: str) -> str:
    sizes = "".join(f"{size}x" for size in array.shape)
    return f"{sizes}{element}={_Elements(array).text()}"


class _Elements:
    def __init__(self, array: Array) -> None:
        self.array = array
        self.left = MOST

    def text(self) -> str:
        return self._part(self.array, outermost=True)

    def _part(self, array: Array, outermost: bool = False) -> str:
        if array.ndim == 0:
            return _number(array.item())
        if array.ndim > 1:
            inner = "".join(self._part(part) for part in array if self.left > 0)
        else:
            shown = array[: self.left].tolist()
            more = "..." if len(shown) < len(array) else ""
            self.left -= len(array)
            inner = " ".join(map(_number, shown)) + more
        return inner if outermost else f"[{inner}]"


def _number(value: Any) -> str:
    return f"{value:G}" if isinstance(value, float) else str(int(value))
