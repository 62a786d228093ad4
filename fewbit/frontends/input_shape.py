"""The shape and element type of an input to trace on: `1x3x32x32`, `1x16:i64`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from fewbit.errors import UsageError

DTYPES = {
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "bf16": "bfloat16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "i1": "bool",
}
"""Element types as MLIR spells them, and as torch does."""

_TEXT = re.compile(r"(?P<sizes>\d+(x\d+)*)(:(?P<dtype>\w+))?")


class InputShape(tuple[int, ...]):
    """Sizes, with an element type."""

    dtype: str

    def __new__(cls, sizes: Sequence[int], dtype: str = "f32") -> InputShape:
        shape = super().__new__(cls, sizes)
        shape.dtype = dtype
        return shape

    @staticmethod
    def of(value: Sequence[int] | str | int) -> InputShape:
        if isinstance(value, InputShape):
            return value
        if isinstance(value, int):
            raise UsageError(
                f"{value} is the size of an axis by its name, which ONNX models have",
                hint="give the whole shape, 1x3x32x32",
            )
        return InputShape.parse(value) if isinstance(value, str) else InputShape(value)

    @staticmethod
    def parse(text: str) -> InputShape:
        match = _TEXT.fullmatch(text)
        if match is None:
            raise UsageError(f"'{text}' is not a shape", hint="write 1x3x32x32, or 1x16:i64")
        dtype = match["dtype"] or "f32"
        if dtype not in DTYPES:
            raise UsageError(
                f"'{dtype}' is no element type of an input", hint=f"there are {', '.join(DTYPES)}"
            )
        return InputShape([int(size) for size in match["sizes"].split("x")], dtype)

    def example(self, generator: Any) -> Any:
        """Random floats; zeros of any other type, which are valid as indices of anything."""
        import torch

        dtype = getattr(torch, DTYPES[self.dtype])
        if not dtype.is_floating_point:
            return torch.zeros(self, dtype=dtype)
        return torch.randn(*self, generator=generator).to(dtype)


def example_inputs(shapes: Iterable[InputShape]) -> tuple[Any, ...]:
    """Tensors of these shapes and types, always the same."""
    import torch

    generator = torch.Generator().manual_seed(0)
    return tuple(shape.example(generator) for shape in shapes)
