"""What the second matrix of a matmul of floats is stored as, and how it is widened in registers.

Keys and values of language models are floats of 16 bits, or integers of 8 or 4. Bytes with two
numbers in each are read as one matrix of their low halves, or as one of their high halves. Scales
are no matter of the matmul: they are multiplied before or after it.
"""

from __future__ import annotations

from typing import Literal

from fewbit.kernels.emit import Function, Value
from fewbit.llvm.types import F16, I8, Type, Vector
from fewbit.toolchain.isa import Isa

Stored = Literal["f32", "f16", "i8", "low", "high"]
"""`low` and `high` are the halves of bytes, signed integers of 4 bits."""
SIZES: dict[Stored, int] = {"f32": 4, "f16": 2, "i8": 1, "low": 1, "high": 1}
"""Bytes of a number; of bytes with two numbers, of both."""
NAMES: dict[Stored, str] = {
    "f32": "f32",
    "f16": "f32f16",
    "i8": "f32i8",
    "low": "f32i4low",
    "high": "f32i4high",
}
"""As functions are called that multiply f32 by them."""


def takes_halves(isa: Isa) -> bool:
    """Return whether a processor loads vectors of f16 as float."""
    is_wide_x86 = isa.architecture == "x86_64" and isa.vector_bits >= 256
    return is_wide_x86 or isa.architecture == "aarch64"


def takes_stored(isa: Isa, stored: Stored) -> bool:
    """Return whether a processor has instructions that widen what is stored so."""
    return stored != "f16" or takes_halves(isa)


def element_of(f: Function, stored: Stored) -> Type:
    """Return the type that a step through a panel counts."""
    return {"f32": f.vector.element, "f16": F16}.get(stored, I8)


def load_widened(f: Function, stored: Stored, w: Value, index: int) -> Value:
    """Return a vector of a panel as floats."""
    if stored == "f32":
        return f.load(f.vector, w, index)
    if stored == "f16":
        return f.convert("fpext", f.load(Vector(f.isa.lanes, F16), w, index, align=2), "float")
    packed = f.load(Vector(f.isa.lanes, I8), w, index)
    return f.convert("sitofp", _integers(f, stored, packed), "float")


def _integers(f: Function, stored: Stored, packed: Value) -> Value:
    """Return bytes, or halves of them, as integers of 32 bits with their signs."""
    words = f.convert("sext", packed, "i32")
    if stored == "low":
        words = words.shift_left(28)
    if stored == "i8":
        return words
    return words.shift_right_signed(28 if stored == "low" else 4)
