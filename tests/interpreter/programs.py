"""Programs for the interpreter's tests, from text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from fewbit.dialects.upstream import EXTENDED
from fewbit.interpreter import interpret
from fewbit.ir.context import make_context
from fewbit.ir.parse import parse_module

Array = NDArray[Any]


def f32(numbers: Any) -> Array:
    return np.array(numbers, np.float32)


def i32(numbers: Any) -> Array:
    return np.array(numbers, np.int32)


def i8(numbers: Any) -> Array:
    return np.array(numbers, np.int8)


def context() -> Context:
    """fewbit's context, with torch-mlir's own dialect."""
    ctx = make_context()
    if "tm_tensor" not in ctx.registered_dialect_names:
        ctx.register_dialect("tm_tensor", EXTENDED["tm_tensor"])
    return ctx


def parse(text: str) -> ModuleOp:
    module = parse_module(text, ctx=context())
    module.verify()
    return module


def run(text: str, *args: Any) -> tuple[Array, ...]:
    return interpret(parse(text), *args)


@cache
def elementwise(op: str, types: tuple[str, ...], result: str, properties: str = "") -> ModuleOp:
    """A function that applies an op of scalars to each element of tensors."""
    arguments = ", ".join(f"%a{i}: tensor<?x{t}>" for i, t in enumerate(types))
    inputs = ", ".join(f"%a{i}" for i in range(len(types)))
    tensors = ", ".join(f"tensor<?x{t}>" for t in types)
    elements = ", ".join(f"%e{i}: {t}" for i, t in enumerate(types))
    operands = ", ".join(f"%e{i}" for i in range(len(types)))
    maps = ", ".join(["affine_map<(i) -> (i)>"] * (len(types) + 1))
    return parse(f"""
      func.func @main({arguments}) -> tensor<?x{result}> {{
        %c0 = arith.constant 0 : index
        %n = tensor.dim %a0, %c0 : tensor<?x{types[0]}>
        %empty = tensor.empty(%n) : tensor<?x{result}>
        %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
            ins({inputs} : {tensors}) outs(%empty : tensor<?x{result}>) {{
        ^bb0({elements}, %out: {result}):
          %r = "{op}"({operands}) <{{{properties}}}> : ({", ".join(types)}) -> {result}
          linalg.yield %r : {result}
        }} -> tensor<?x{result}>
        func.return %y : tensor<?x{result}>
      }}""")


def apply(op: str, types: Sequence[str], result: str, *columns: Any, properties: str = "") -> Array:
    """One op on columns of numbers: `apply("arith.addi", ["i8", "i8"], "i8", [1], [2])`."""
    arrays = [column(t, c) for t, c in zip(types, columns, strict=True)]
    (given,) = interpret(elementwise(op, tuple(types), result, properties), *arrays)
    return given


def column(type: str, numbers: Any) -> Array:
    if type == "index":
        return np.array(numbers, np.int64)
    if type == "i1":
        return np.array(numbers).astype(bool)
    if type.startswith("i"):
        width = int(type[1:])
        storage = max(8, 1 << (width - 1).bit_length())
        return np.array(numbers, f"int{storage}")
    return np.array(numbers, {"f16": "float16", "f32": "float32", "f64": "float64"}[type])
