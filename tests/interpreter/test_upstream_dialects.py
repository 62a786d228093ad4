"""Ops that fewbit adds to upstream dialects: MLIR reads what we print, and we read what it prints."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from fewbit.dialects.upstream import EXTENDED
from fewbit.ir.text import print_module
from tests.interpreter.programs import context, parse

PROGRAMS = {
    "arith": """
      func.func @f(%x: f32, %i: i8) -> (f32, index) {
        %0 = arith.remf %x, %x : f32
        %1 = arith.index_castui %i : i8 to index
        func.return %0, %1 : f32, index
      }""",
    "math": """
      func.func @f(%x: f32) -> (f32, f32, i1, i1, i1) {
        %0 = math.erfc %x : f32
        %1 = math.clampf %x to [%x, %0] : f32
        %2 = math.isnan %x : f32
        %3 = math.isinf %x {fastmath = #arith.fastmath<nnan,nsz>} : f32
        %4 = math.isfinite %x : f32
        func.return %0, %1, %2, %3, %4 : f32, f32, i1, i1, i1
      }""",
    "affine": """
      func.func @f(%i: index, %j: index) -> index {
        %0 = affine.max affine_map<(d0)[s0] -> (d0, s0 + 3)>(%i)[%j]
        func.return %0 : index
      }""",
    "ml_program": """
      ml_program.global private mutable @g(dense<1> : tensor<2xi32>) : tensor<2xi32>
      ml_program.global private @h(dense<1> : tensor<2xi32>) : tensor<2xi32>
      func.func @f() -> tensor<2xi32> {
        %0 = ml_program.global_load @g : tensor<2xi32>
        ml_program.global_store @g = %0 : tensor<2xi32>
        %1 = ml_program.global_load_const @h : tensor<2xi32>
        func.return %1 : tensor<2xi32>
      }""",
    "tensor": """
      func.func @f(%n: index, %x: tensor<4x5xf32>, %i: tensor<2x1xi64>, %s: tensor<2xi64>)
          -> (tensor<?x3xindex>, tensor<2x5xf32>, tensor<4x5xf32>, tensor<?x?xf32>, tensor<4x5xi32>, index) {
        %0 = tensor.generate %n {
        ^bb0(%a: index, %b: index):
          tensor.yield %a : index
        } : tensor<?x3xindex>
        %1 = tensor.gather %x[%i] gather_dims([0]) : (tensor<4x5xf32>, tensor<2x1xi64>) -> tensor<2x5xf32>
        %2 = tensor.scatter %1 into %x[%i] scatter_dims([0]) unique
          : (tensor<2x5xf32>, tensor<4x5xf32>, tensor<2x1xi64>) -> tensor<4x5xf32>
        %3 = tensor.reshape %x(%s) : (tensor<4x5xf32>, tensor<2xi64>) -> tensor<?x?xf32>
        %4 = tensor.bitcast %x : tensor<4x5xf32> to tensor<4x5xi32>
        %5 = tensor.rank %3 : tensor<?x?xf32>
        func.return %0, %1, %2, %3, %4, %5
          : tensor<?x3xindex>, tensor<2x5xf32>, tensor<4x5xf32>, tensor<?x?xf32>, tensor<4x5xi32>, index
      }""",
}


def mlir(text: str, *, generic: bool) -> str:
    ir: Any = import_module("torch_mlir.ir")
    with ir.Context():
        module = ir.Module.parse(text)
        return module.operation.get_asm(print_generic_op_form=generic)


@pytest.mark.parametrize("name", PROGRAMS)
def test_text_is_mlirs(name: str) -> None:
    module = parse(PROGRAMS[name])
    printed = print_module(module)
    for generic in (True, False):
        again = parse(mlir(printed, generic=generic))
        assert again.is_structurally_equivalent(module)
    assert parse(print_module(module, generic=True)).is_structurally_equivalent(module)


def test_extended_dialects_keep_every_op_of_xdsl() -> None:
    from xdsl.universe import Universe

    original = Universe.get_multiverse().all_dialects
    for name, factory in EXTENDED.items():
        ours = {op.name for op in factory().operations}
        assert all(op.split(".", 1)[0] == name for op in ours)
        if name in original:
            assert {op.name for op in original[name]().operations} <= ours


def test_the_context_knows_the_extended_dialects() -> None:
    ctx = context()
    for op in ("arith.remf", "linalg.batch_matmul", "tensor.generate", "tm_tensor.scan"):
        assert ctx.get_optional_op(op) is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%0 = tensor.generate { ^bb0(%a: index): tensor.yield %a : index } : tensor<2x2xindex>",
         "one argument per dimension"),
        ("%0 = tensor.generate { ^bb0(%a: index): tensor.yield %a : index } : tensor<?xindex>",
         "one extent per dynamic dimension"),
        ("%0 = tensor.reshape %x(%s) : (tensor<4xf32>, tensor<2xi64>) -> tensor<3x1xf32>",
         "differ in the number of elements"),
        ("%0 = tensor.reshape %x(%s) : (tensor<4xf32>, tensor<2xi64>) -> tensor<?xf32>",
         "one element per dimension"),
        ("%0 = affine.max affine_map<(d0) -> (d0)>(%i, %i)", "the map takes 1 operands, got 2"),
    ],
)  # fmt: skip
def test_bad_programs_are_refused(text: str, message: str) -> None:
    from xdsl.utils.exceptions import VerifyException

    text = text.replace("{ ^bb0(%a: index): ", "{\n^bb0(%a: index):\n").replace(" } :", "\n} :")
    with pytest.raises(VerifyException, match=message):
        parse(
            "func.func @f(%x: tensor<4xf32>, %s: tensor<2xi64>, %i: index) {\n"
            f"{text}\nfunc.return }}"
        )
