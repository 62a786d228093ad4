"""scf, cf, affine and ml_program."""

from __future__ import annotations

import numpy as np
import pytest

from fewbit.errors import InterpretError
from fewbit.interpreter import Interpreter, interpret
from tests.interpreter.programs import parse, run

FIBONACCI = """
func.func @main(%n: index) -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = arith.constant 0 : i32
  %b = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (i32, i32) {
    %z = arith.addi %x, %y : i32
    scf.yield %y, %z : i32, i32
  }
  func.return %r#0 : i32
}"""


def test_for_carries_values() -> None:
    assert [int(run(FIBONACCI, n)[0]) for n in range(8)] == [0, 1, 1, 2, 3, 5, 8, 13]


def test_for_needs_a_positive_step() -> None:
    text = """func.func @main(%s: index) {
      %c0 = arith.constant 0 : index
      scf.for %i = %c0 to %s step %c0 { scf.yield }
      func.return }"""
    with pytest.raises(InterpretError, match="step of a loop must be positive"):
        run(text, 3)


WHILE = """
func.func @main(%n: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.while (%i = %n, %count = %zero) : (i32, i32) -> (i32, i32) {
    %more = arith.cmpi sgt, %i, %one : i32
    scf.condition(%more) %i, %count : i32, i32
  } do {
  ^bb0(%i: i32, %count: i32):
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %odd = arith.remsi %i, %two : i32
    %is = arith.cmpi eq, %odd, %one : i32
    %next = scf.if %is -> (i32) {
      %a = arith.muli %i, %three : i32
      %b = arith.addi %a, %one : i32
      scf.yield %b : i32
    } else {
      %c = arith.divsi %i, %two : i32
      scf.yield %c : i32
    }
    %more = arith.addi %count, %one : i32
    scf.yield %next, %more : i32, i32
  }
  func.return %r#1 : i32
}"""


def test_while_and_if() -> None:
    assert [int(run(WHILE, n)[0]) for n in (1, 2, 3, 27)] == [0, 1, 7, 111]


def test_a_loop_that_never_ends_is_an_error() -> None:
    text = """func.func @main() {
      %true = arith.constant true
      scf.while () : () -> () { scf.condition(%true) } do { scf.yield }
      func.return }"""
    with pytest.raises(InterpretError, match="ran more than 500 blocks") as caught:
        Interpreter(parse(text), max_steps=500).call(None, [])
    assert "raise max_steps" in str(caught.value)


def test_steps_are_counted_per_call() -> None:
    interpreter = Interpreter(parse(FIBONACCI), max_steps=20)
    for _ in range(3):
        assert interpreter.call(None, [np.int64(10)])[0] == 55
    with pytest.raises(InterpretError, match="more than 20 blocks"):
        interpreter.call(None, [np.int64(30)])
    assert Interpreter(parse(FIBONACCI), max_steps=None).call(None, [np.int64(30)])[0] == 832040


def test_if_without_results() -> None:
    text = """func.func @main(%c: i1) {
      scf.if %c {
        %false = arith.constant false
        cf.assert %false, "taken"
      }
      func.return }"""
    assert run(text, False) == ()
    with pytest.raises(InterpretError, match="taken"):
        run(text, True)


def test_parallel_reduces_in_order() -> None:
    text = """func.func @main(%n: index) -> i64 {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %init = arith.constant 0 : i64
      %r = "scf.parallel"(%c0, %c0, %n, %n, %c1, %c1, %init)
          <{operandSegmentSizes = array<i32: 2, 2, 2, 1>}> ({
      ^bb0(%i: index, %j: index):
        %a = arith.index_cast %i : index to i64
        %b = arith.index_cast %j : index to i64
        %p = arith.muli %a, %b : i64
        "scf.reduce"(%p) ({
        ^bb0(%x: i64, %y: i64):
          %ten = arith.constant 10 : i64
          %t = arith.muli %x, %ten : i64
          %s = arith.addi %t, %y : i64
          "scf.reduce.return"(%s) : (i64) -> ()
        }) : (i64) -> ()
      }) : (index, index, index, index, index, index, i64) -> i64
      func.return %r : i64 }"""
    assert run(text, 3)[0] == int("000012024")


def test_index_switch_and_execute_region() -> None:
    text = """func.func @main(%i: index) -> i32 {
      %r = scf.index_switch %i -> i32
      case 2 { %a = arith.constant 20 : i32  scf.yield %a : i32 }
      case 5 { %a = arith.constant 50 : i32  scf.yield %a : i32 }
      default { %a = arith.constant 0 : i32  scf.yield %a : i32 }
      %s = scf.execute_region -> (i32) {
        %one = arith.constant 1 : i32
        %t = arith.addi %r, %one : i32
        scf.yield %t : i32
      }
      func.return %s : i32 }"""
    text = text.replace(" : i32  scf", " : i32\n scf")
    assert [int(run(text, i)[0]) for i in (2, 5, 7)] == [21, 51, 1]


def test_branches() -> None:
    text = """func.func @main(%n: i32) -> i32 {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      cf.br ^head(%n, %zero : i32, i32)
    ^head(%i: i32, %sum: i32):
      %more = arith.cmpi sgt, %i, %zero : i32
      cf.cond_br %more, ^body, ^done(%sum : i32)
    ^body:
      %next = arith.subi %i, %one : i32
      %total = arith.addi %sum, %i : i32
      cf.br ^head(%next, %total : i32, i32)
    ^done(%r: i32):
      func.return %r : i32 }"""
    assert run(text, 10)[0] == 55


def test_switch() -> None:
    text = """func.func @main(%n: i32) -> i32 {
      %a = arith.constant 10 : i32
      %b = arith.constant 20 : i32
      cf.switch %n : i32, [ default: ^d, 3: ^x(%a : i32), -4: ^x(%b : i32) ]
    ^d:
      func.return %n : i32
    ^x(%r: i32):
      func.return %r : i32 }"""
    assert [int(run(text, n)[0]) for n in (3, -4, 7)] == [10, 20, 7]


def test_affine_maps_of_index_values() -> None:
    text = """func.func @main(%i: index, %j: index) -> (index, index, index) {
      %a = affine.apply affine_map<(d0)[s0] -> (d0 floordiv 3 + s0 mod 4 - d0 ceildiv 2)> (%i)[%j]
      %b = affine.min affine_map<(d0, d1) -> (d0, d1 + 1)> (%i, %j)
      %c = affine.max affine_map<(d0, d1) -> (d0, d1 + 1)> (%i, %j)
      func.return %a, %b, %c : index, index, index }"""
    for i, j in [(7, 6), (-7, -6), (0, 3)]:
        given = [int(x) for x in run(text, i, j)]
        assert given == [i // 3 + j % 4 - -(-i // 2), min(i, j + 1), max(i, j + 1)]


GLOBALS = """
ml_program.global private mutable @seed(dense<5> : tensor<i64>) : tensor<i64>
ml_program.global private @fixed(dense<[1, 2]> : tensor<2xi64>) : tensor<2xi64>
ml_program.global private mutable @unset : tensor<i64>
func.func @main() -> (tensor<i64>, tensor<2xi64>) {
  %s = ml_program.global_load @seed : tensor<i64>
  %t = arith.addi %s, %s : tensor<i64>
  ml_program.global_store @seed = %t : tensor<i64>
  %f = ml_program.global_load_const @fixed : tensor<2xi64>
  func.return %t, %f : tensor<i64>, tensor<2xi64>
}
func.func @read() -> tensor<i64> {
  %u = ml_program.global_load @unset : tensor<i64>
  func.return %u : tensor<i64>
}
func.func @write(%x: tensor<2xi64>) {
  ml_program.global_store @fixed = %x : tensor<2xi64>
  func.return
}"""


def test_globals_live_as_long_as_the_interpreter() -> None:
    module = parse(GLOBALS)
    interpreter = Interpreter(module)
    assert [int(interpreter.call("main", [])[0]) for _ in range(3)] == [10, 20, 40]
    seed, fixed = interpret(module)
    assert (int(seed), fixed.tolist()) == (10, [1, 2])


def test_globals_misused() -> None:
    module = parse(GLOBALS)
    with pytest.raises(InterpretError, match="@unset is read before it has a value"):
        interpret(module, function="read")
    with pytest.raises(InterpretError, match="stores to @fixed, which is not mutable"):
        interpret(module, np.zeros(2, np.int64), function="write")


def test_mlirs_generic_form_of_globals() -> None:
    text = """
    "ml_program.global"() <{sym_name = "x", type = tensor<1xi32>, value = dense<7> : tensor<1xi32>,
                            sym_visibility = "private"}> : () -> ()
    func.func @main() -> tensor<1xi32> {
      %0 = "ml_program.global_load_const"() <{global = @x}> : () -> tensor<1xi32>
      func.return %0 : tensor<1xi32>
    }"""
    assert run(text)[0].tolist() == [7]
