"""Upstream's ops: finding them, reading them, changing them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from fewbit.errors import PassError
from fewbit.ir.bindings import (
    find_function,
    index_constant,
    is_block,
    is_constant,
    known_integer,
    mlir_context,
    parse_mlir,
    run_upstream,
    to_llvm_ir,
    update_type,
    walk,
)

TEXT = """
func.func @main(%x: index) -> index {
  %c = arith.constant 3 : index
  %yes = arith.constant true
  %y = scf.if %yes -> index {
    %z = arith.addi %x, %c : index
    scf.yield %z : index
  } else {
    scf.yield %c : index
  }
  return %y : index
}
func.func private @other()
"""


def names_in(op: Any) -> list[str]:
    return [each.operation.name for each in walk(op)]


def test_walk_goes_into_regions_in_order() -> None:
    module = parse_mlir(TEXT)
    assert names_in(find_function(module, "main")) == [
        "func.func", "arith.constant", "arith.constant", "scf.if", "arith.addi", "scf.yield",
        "scf.yield", "func.return",
    ]  # fmt: skip
    assert names_in(module)[0] == "builtin.module"
    assert names_in(module).count("func.func") == 2


def test_a_list_of_ops_may_be_changed() -> None:
    module = parse_mlir("func.func @main() {\n  %a = arith.constant 1 : i8\n  return\n}")
    for op in list(walk(module)):
        if op.operation.name == "arith.constant":
            op.operation.erase()
    assert "arith.constant" not in names_in(module)


def test_missing_function() -> None:
    with pytest.raises(KeyError, match="third"):
        find_function(parse_mlir(TEXT), "third")


def test_what_a_value_is() -> None:
    module = parse_mlir(TEXT)
    add = next(op for op in walk(module) if op.operation.name == "arith.addi")
    argument, constant = add.operation.operands
    assert is_block(argument.owner)
    assert not is_block(constant.owner)
    assert is_constant(constant)
    assert not is_constant(argument)
    assert not is_constant(add.operation.results[0])
    values = (constant, argument, add.operation.results[0])
    assert [known_integer(value) for value in values] == [3, None, None]


def test_new_argument_and_constant() -> None:
    ir: Any = import_module("torch_mlir.ir")

    module = parse_mlir(TEXT)
    function = find_function(module, "main")
    with mlir_context(), ir.Location.unknown():
        function.entry_block.add_argument(ir.IndexType.get(), ir.Location.unknown())
        with ir.InsertionPoint(function.entry_block.operations[0]):
            made = index_constant(7)
        with pytest.raises(ir.MLIRError):
            module.operation.verify()
        update_type(function)
        assert module.operation.verify()
    assert known_integer(made) == 7
    assert str(function.type) == "(index, index) -> index"


def test_faults_are_errors_of_ours() -> None:
    with pytest.raises(PassError, match="does not take the program"):
        parse_mlir("func.func @main(")
    with pytest.raises(PassError, match="no such pass"):
        run_upstream(parse_mlir(TEXT), "no-such-pass")


def test_to_llvm_ir() -> None:
    module = parse_mlir("func.func @main(%x: i32) -> i32 {\n  return %x : i32\n}")
    run_upstream(module, "convert-func-to-llvm")
    assert "define i32 @main(i32 %0)" in to_llvm_ir(module)
