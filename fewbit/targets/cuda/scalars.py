"""Scalar ops of arith and math as expressions of CUDA C++.

Each step is rounded on its own, as everywhere: sources are compiled without contraction. Integers
are held signed; ops on unsigned ones say so.
"""

from __future__ import annotations

import struct
from typing import Any

from fewbit.errors import UnsupportedError

TYPES = {
    "f64": "double", "f32": "float", "f16": "half_bits", "bf16": "brain_bits",
    "i1": "bool", "i8": "i8", "i16": "i16", "i32": "int", "i64": "i64", "index": "i64",
}  # fmt: skip

BINARY = {
    "arith.addf": "+", "arith.subf": "-", "arith.mulf": "*", "arith.divf": "/",
    "arith.andi": "&", "arith.ori": "|", "arith.xori": "^",
    "arith.divsi": "/", "arith.remsi": "%",
}  # fmt: skip
WRAPPING = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*", "arith.shli": "<<"}
"""Which may overflow: computed unsigned, where that is defined."""
UNSIGNED_OPS = {"arith.divui": "/", "arith.remui": "%", "arith.shrui": ">>"}
CALLS = {
    "arith.maximumf": "larger", "arith.minimumf": "smaller",
    "arith.maxnumf": "larger_number", "arith.minnumf": "smaller_number",
    "arith.maxsi": "larger_integer", "arith.minsi": "smaller_integer",
    "arith.floordivsi": "floor_divide", "arith.ceildivsi": "ceil_divide",
    "math.absi": "absolute",
}  # fmt: skip
MATH = {
    "math.absf": "fabs", "math.sqrt": "sqrt", "math.exp": "exp", "math.exp2": "exp2",
    "math.log": "log", "math.log2": "log2", "math.log1p": "log1p", "math.expm1": "expm1",
    "math.tanh": "tanh", "math.erf": "erf", "math.sin": "sin", "math.cos": "cos",
    "math.tan": "tan", "math.atan": "atan", "math.floor": "floor", "math.ceil": "ceil",
    "math.trunc": "trunc", "math.roundeven": "rint", "math.round": "round", "math.powf": "pow",
    "math.fma": "fma", "math.copysign": "copysign", "math.atan2": "atan2", "arith.remf": "fmod",
}  # fmt: skip
CASTS = ("arith.sitofp", "arith.fptosi", "arith.trunci", "arith.index_cast")
COMPARE_INTEGERS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
COMPARE_FLOATS = (
    "false", "{a} == {b}", "{a} > {b}", "{a} >= {b}", "{a} < {b}", "{a} <= {b}",
    "({a} < {b} || {a} > {b})", "({a} == {a} && {b} == {b})",
    "!({a} < {b} || {a} > {b})", "!({a} <= {b})", "!({a} < {b})", "!({a} >= {b})", "!({a} > {b})",
    "{a} != {b}", "!({a} == {a} && {b} == {b})", "true",
)  # fmt: skip
"""By the number of a predicate of `arith.cmpf`: false, oeq, ogt, … uno, true."""


def type_of(value: Any) -> str:
    """Return the C type of a value; also of the elements of memory."""
    name = str(value.type if hasattr(value, "type") else value)
    if name not in TYPES:
        raise UnsupportedError(f"the target cuda computes with no values of type {name}")
    return TYPES[name]


def unsigned(type: str) -> str:
    return {"i8": "u8", "i16": "u16", "int": "u32", "i64": "u64", "bool": "bool"}[type]


def literal(number: float, type: str) -> str:
    """Return a number; floats by their bits, which no rounding changes."""
    if type == "float":
        bits = struct.unpack("<I", struct.pack("<f", number))[0]
        return f"as_float({bits:#010x}u)"
    if type == "double":
        bits = struct.unpack("<Q", struct.pack("<d", number))[0]
        return f"as_double({bits:#018x}ull)"
    if type == "half_bits":
        return f"half_bits{{{struct.unpack('<H', struct.pack('<e', number))[0]}}}"
    if type == "brain_bits":
        return f"brain_bits{{{struct.unpack('<I', struct.pack('<f', number))[0] >> 16}}}"
    if type == "bool":
        return "true" if number else "false"
    whole = int(number)
    return f"({type}){whole}ll" if whole > -(1 << 63) else f"({type})({whole + 1}ll - 1)"


def constant(op: Any) -> str:
    from torch_mlir import ir

    attribute = op.attributes["value"]
    type = type_of(op.results[0])
    if isinstance(attribute, ir.BoolAttr):
        return literal(int(attribute.value), type)
    if isinstance(attribute, (ir.IntegerAttr, ir.FloatAttr)):
        return literal(attribute.value, type)
    raise UnsupportedError("the target cuda has no constant tensors inside loops")


def expression(op: Any, operands: list[str]) -> str:
    """Return what an op without regions computes."""
    name = op.name
    if name == "arith.constant":
        return constant(op)
    type = type_of(op.results[0])
    source = type_of(op.operands[0])
    a, *others = operands
    b = others[0] if others else ""
    if name in BINARY:
        return f"({type})({a} {BINARY[name]} {b})"
    if name in WRAPPING:
        wide = unsigned(type)
        return f"({type})(({wide}){a} {WRAPPING[name]} ({wide}){b})"
    if name in UNSIGNED_OPS:
        wide = unsigned(type)
        return f"({type})(({wide}){a} {UNSIGNED_OPS[name]} ({wide}){b})"
    if name == "arith.shrsi":
        return f"({type})({a} >> {b})"
    if name in CALLS:
        return f"{CALLS[name]}<{type}>({', '.join(operands)})"
    if name in ("arith.maxui", "arith.minui"):
        wide, sign = unsigned(type), ">" if "max" in name else "<"
        return f"(({wide}){a} {sign} ({wide}){b} ? {a} : {b})"
    if name == "math.rsqrt":
        return f"({literal(1, type)} / sqrt{_suffix(type)}({a}))"
    if name in MATH:
        return f"{MATH[name]}{_suffix(type)}({', '.join(operands)})"
    if name == "arith.negf":
        return f"(-{a})"
    if name == "arith.cmpi":
        return _compare_integers(op.attributes["predicate"].value, source, a, b)
    if name == "arith.cmpf":
        predicate: int = op.attributes["predicate"].value
        return f"({COMPARE_FLOATS[predicate].format(a=a, b=b)})"
    if name == "arith.select":
        return f"({a} ? {others[0]} : {others[1]})"
    if name == "arith.extsi" and source == "bool":
        return f"({type})({a} ? -1 : 0)"
    if name in CASTS or name == "arith.extsi":
        return f"({type})({a} & 1)" if type == "bool" else f"({type}){a}"
    if name in ("arith.extui", "arith.uitofp", "arith.index_castui"):
        return f"({type})({unsigned(source)}){a}"
    if name == "arith.fptoui":
        return f"({type})({unsigned(type)}){a}"
    if name == "arith.bitcast":
        return f"same_bits<{type}>({a})"
    if name == "arith.extf":
        return f"({type})widened({a})"
    if name == "arith.truncf":
        return f"narrowed_{type}({a})" if type.endswith("_bits") else f"({type}){a}"
    raise UnsupportedError(
        f"the target cuda has no code for '{name}'",
        hint="the targets cpu and iree-cuda may run the program",
    )


def _suffix(type: str) -> str:
    return "f" if type == "float" else ""


def _compare_integers(predicate: int, type: str, a: str, b: str) -> str:
    if predicate >= 6:
        a, b = (f"({unsigned(type)}){each}" for each in (a, b))
    return f"({a} {COMPARE_INTEGERS[predicate]} {b})"
