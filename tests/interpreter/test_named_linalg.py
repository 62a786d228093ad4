"""Named linalg ops that fewbit adds to xDSL's: the same ops as MLIR's.

MLIR itself rewrites each op as linalg.generic; both forms must compute the same.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, cast

import numpy as np
import pytest
from xdsl.ir import Operation

from fewbit.dialects.upstream.linalg import (
    NAMED,
    BatchMatmulOp,
    BatchReduceMatmulOp,
    MatmulOp,
)
from fewbit.dialects.upstream.linalg.table import (
    ElementwiseTableOperation,
    TableOperation,
    WindowOperation,
)
from fewbit.interpreter import interpret
from fewbit.ir.text import print_module
from tests.interpreter.programs import Array, parse

STRIDE, DILATION = 2, 3
SIZES = {
    "n": 2,
    "b": 2,
    "f": 3,
    "c": 2,
    "g": 2,
    "m": 3,
    "k": 4,
    "d": 2,
    "h": 3,
    "w": 2,
    "x": 2,
    "y": 3,
    "z": 2,
    "D": 1,
    "H": 2,
    "W": 3,
}


def shape(op: type[TableOperation], subscripts: str) -> list[int]:
    stride, dilation = (STRIDE, DILATION) if issubclass(op, WindowOperation) else (1, 1)
    sizes: list[int] = []
    for term in re.findall(r"\w(?:\+\w)?", subscripts):
        outer, _, inner = term.partition("+")
        size = SIZES[outer]
        if inner:
            size = (size - 1) * stride + (SIZES[inner] - 1) * dilation + 1
        sizes.append(size)
    return sizes


def tensor(sizes: list[int], element: str) -> str:
    return "tensor<" + "".join(f"{n}x" for n in sizes) + f"{element}>"


def function(name: str, types: list[str], attributes: str) -> str:
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    ins = ", ".join(f"%a{i}" for i in range(len(types) - 1))
    return f"""func.func @main({arguments}) -> {types[-1]} {{
      %r = {name} {attributes} ins({ins} : {", ".join(types[:-1])})
        outs(%a{len(types) - 1} : {types[-1]}) -> {types[-1]}
      return %r : {types[-1]}
    }}"""


def program(op: type[Operation], narrow: str, wide: str) -> tuple[str, list[str]]:
    """A function around one op, and the types of its arguments."""
    if issubclass(op, MatmulOp | BatchMatmulOp | BatchReduceMatmulOp):
        batch = "" if op is MatmulOp else "b"
        out = "b" if op is BatchMatmulOp else ""
        parts = [batch + "mk", batch + "kn", out + "mn"]
        types = [tensor([SIZES[x] for x in p], narrow) for p in parts[:2]]
        types.append(tensor([SIZES[x] for x in parts[2]], wide))
        return function(op.name, types, ""), types
    if issubclass(op, ElementwiseTableOperation):
        count = 3 if op.name.split(".")[1] in ("div", "div_unsigned", "powf") else 2
        types = [f"tensor<2x3x{wide}>"] * count
        return function(op.name, types, ""), types
    table = cast(type[TableOperation], op)
    parts = table.SUBSCRIPTS
    types = [
        tensor(shape(table, p), narrow) if p or i < 2 else wide for i, p in enumerate(parts[:-1])
    ]
    types.append(tensor(shape(table, parts[-1]), wide))
    attributes = ""
    if issubclass(op, WindowOperation):
        axes = parts[0].count("+")
        attributes = (
            f"{{strides = dense<{STRIDE}> : tensor<{axes}xi64>, "
            f"dilations = dense<{DILATION}> : tensor<{axes}xi64>}}"
        )
    return function(op.name, types, attributes), types


def bindings(name: str) -> Any:
    """A module of MLIR's Python bindings, which have no types."""
    return import_module(f"torch_mlir.{name}")


def generalized(text: str) -> str:
    ir, passes = bindings("ir"), bindings("passmanager")
    with ir.Context():
        module = ir.Module.parse(text)
        passes.PassManager.parse("builtin.module(func.func(linalg-generalize-named-ops))").run(
            module.operation
        )
        return module.operation.get_asm(print_generic_op_form=True)


def values(type: str, rng: np.random.Generator) -> Array:
    sizes = [int(n) for n in re.findall(r"(\d+)x", type)]
    element = type.rstrip(">").rsplit("x", 1)[-1].removeprefix("tensor<")
    if element.startswith("f"):
        return rng.uniform(0.5, 3, sizes).astype(f"float{element[1:]}")
    return rng.integers(-100, 100, sizes).astype(f"int{element[1:]}")


def check(op: type[Operation], narrow: str, wide: str) -> None:
    text, types = program(op, narrow, wide)
    module = parse(text)
    generic_text = generalized(text)
    assert '"linalg.generic"' in generic_text
    rng = np.random.default_rng(0)
    arguments = [values(t, rng) for t in types]
    (named,) = interpret(module, *arguments)
    (generic,) = interpret(parse(generic_text), *arguments)
    assert np.array_equal(named, generic)
    assert not np.array_equal(named, arguments[-1])


INTEGERS_ONLY = re.compile(r"_q$|quantized|unsigned")
FLOATS = [op for op in NAMED if not INTEGERS_ONLY.search(op.name)]
INTEGERS = [op for op in NAMED if not issubclass(op, ElementwiseTableOperation)]


@pytest.mark.parametrize("op", FLOATS, ids=lambda op: op.name)
def test_named_op_on_floats(op: type[Operation]) -> None:
    check(op, "f32", "f32")


@pytest.mark.parametrize("op", INTEGERS, ids=lambda op: op.name)
def test_named_op_widens_integers(op: type[Operation]) -> None:
    check(op, "i8", "i32")


def test_unsigned_division() -> None:
    (op,) = (op for op in NAMED if op.name == "linalg.div_unsigned")
    check(op, "i32", "i32")


def test_half_floats_are_widened() -> None:
    check(MatmulOp, "f16", "f32")
    check(BatchMatmulOp, "f16", "f32")


def test_mlirs_generic_form_of_a_named_op_is_read() -> None:
    ir = bindings("ir")
    (op,) = (op for op in NAMED if op.name == "linalg.depthwise_conv_2d_nchw_chw")
    text, types = program(op, "f32", "f32")
    with ir.Context():
        generic_text = ir.Module.parse(text).operation.get_asm(print_generic_op_form=True)
    rng = np.random.default_rng(0)
    arguments = [values(t, rng) for t in types]
    (given,) = interpret(parse(generic_text), *arguments)
    assert np.array_equal(given, interpret(parse(text), *arguments)[0])


@pytest.mark.parametrize("op", NAMED, ids=lambda op: op.name)
def test_text_is_read_back(op: type[Operation]) -> None:
    types = ("i8", "i32") if INTEGERS_ONLY.search(op.name) else ("f32", "f32")
    module = parse(program(op, *types)[0])
    printed = print_module(module)
    assert print_module(parse(printed)) == printed
    ir = bindings("ir")
    with ir.Context():
        again = parse(ir.Module.parse(printed).operation.get_asm(print_generic_op_form=True))
    for mlirs in again.walk():
        mlirs.attributes.pop("linalg.memoized_indexing_maps", None)
    assert again.is_structurally_equivalent(module)


TRANSPOSED = """func.func @main(%a: tensor<3x4xf32>, %b: tensor<5x4xf32>, %c: tensor<3x5xf32>,
    %d: tensor<2x3x4xf32>, %e: tensor<2x5x4xf32>, %f: tensor<2x3x5xf32>, %g: tensor<3x5xf32>)
    -> (tensor<3x5xf32>, tensor<2x3x5xf32>, tensor<3x5xf32>) {
  %0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : tensor<3x4xf32>, tensor<5x4xf32>) outs(%c : tensor<3x5xf32>) -> tensor<3x5xf32>
  %1 = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
      affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%d, %e : tensor<2x3x4xf32>, tensor<2x5x4xf32>) outs(%f : tensor<2x3x5xf32>)
    -> tensor<2x3x5xf32>
  %2 = linalg.batch_reduce_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
      affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (m, n)>]
    ins(%d, %e : tensor<2x3x4xf32>, tensor<2x5x4xf32>) outs(%g : tensor<3x5xf32>)
    -> tensor<3x5xf32>
  func.return %0, %1, %2 : tensor<3x5xf32>, tensor<2x3x5xf32>, tensor<3x5xf32>
}"""


def test_indexing_maps_may_transpose() -> None:
    rng = np.random.default_rng(0)
    shapes = ((3, 4), (5, 4), (3, 5), (2, 3, 4), (2, 5, 4), (2, 3, 5), (3, 5))
    arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
    a, b, c, d, e, f, g = arrays
    products = d @ e.transpose(0, 2, 1)
    module = parse(TRANSPOSED)
    for program in (module, parse(print_module(module)), parse(generalized(TRANSPOSED))):
        for given, wanted in zip(
            interpret(program, *arrays),
            (a @ b.T + c, products + f, products.sum(0) + g),
            strict=True,
        ):
            np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-5)
