"""Calling programs: which function, which inputs, and what goes wrong."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.arith import AddiOp, ConstantOp
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.dialects.test import TestOp as ProbeOp
from xdsl.ir import Operation

from fewbit.errors import Error, InterpretError, UsageError
from fewbit.interpreter import Frame, Interpreter, Value, evaluate_op, interpret, register, registry
from fewbit.ir.parse import parse_module
from fewbit.program.program import Program
from fewbit.program.store import WeightStore
from tests.interpreter.programs import context, f32, i8, parse, run

ADD = """
func.func @main(%x: tensor<?x2xf32>, %n: i32) -> (tensor<?x2xf32>, i32) {
  %y = arith.addf %x, %x : tensor<?x2xf32>
  %m = arith.addi %n, %n : i32
  func.return %y, %m : tensor<?x2xf32>, i32
}"""


def test_tensors_and_scalars_come_back_as_arrays() -> None:
    y, m = run(ADD, np.ones((3, 2), np.float32), np.int32(4))
    assert np.array_equal(y, np.full((3, 2), 2, np.float32))
    assert isinstance(m, np.ndarray)
    assert (m.shape, m.dtype, int(m)) == ((), np.dtype(np.int32), 8)


def test_plain_numbers_are_scalars() -> None:
    assert run(ADD, np.ones((3, 2), np.float32), 4)[1] == 8
    with pytest.raises(InterpretError, match="expected i32, held as int32; given float64"):
        run(ADD, np.ones((3, 2), np.float32), 4.5)
    with pytest.raises(InterpretError, match="expected i32, held as int32; given int64"):
        run(ADD, np.ones((3, 2), np.float32), 1 << 40)
    text = "func.func @main(%x: f32) -> f32 { func.return %x : f32 }"
    assert run(text, 1)[0] == 1.0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([np.ones((3, 2), np.float32)], "@main takes 2 inputs, 1 given"),
        ([np.ones((3, 3), np.float32), np.int32(1)], r"input 0 \(%x\) of @main: expected "
         r"tensor<\?x2xf32>, given float32\[3, 3\]"),
        ([np.ones((2,), np.float32), np.int32(1)], r"input 0 .*given float32\[2\]"),
        ([np.ones((3, 2)), np.int32(1)], r"held as float32; given float64\[3, 2\]"),
        ([np.ones((3, 2), np.float32), np.ones(1, np.int32)], r"input 1 \(%n\).*given int32\[1\]"),
        ([np.ones((3, 2), np.float32), object()], "input 1 .*expected i32, given object"),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit(args: Sequence[Any], message: str) -> None:
    with pytest.raises(InterpretError, match=message):
        run(ADD, *args)


def test_a_wrong_type_comes_with_a_hint() -> None:
    with pytest.raises(InterpretError) as caught:
        run(ADD, np.ones((3, 2)), np.int32(1))
    assert caught.value.hint == "convert it with .astype('float32')"
    assert caught.value.place.line == 2


def test_few_bit_inputs_are_checked_for_their_range() -> None:
    text = "func.func @main(%x: tensor<2x{}>) {{ func.return }}"
    assert run(text.format("i4"), i8([-8, 7])) == ()
    with pytest.raises(InterpretError, match="expected tensor<2xi4>, given values from 1 to 8"):
        run(text.format("i4"), i8([1, 8]))
    with pytest.raises(InterpretError, match="given values from 0 to 2"):
        run(text.format("!mico.ternary"), i8([0, 2]))


def test_unsigned_inputs_are_taken_for_signless_ones_bit_by_bit() -> None:
    text = "func.func @main(%x: tensor<1xi8>) -> tensor<1xi8> { func.return %x : tensor<1xi8> }"
    assert run(text, np.array([255], np.uint8))[0].tolist() == [-1]


def test_results_share_no_memory_with_inputs() -> None:
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { func.return %x : tensor<2xf32> }"
    x = np.ones(2, np.float32)
    (y,) = run(text, x)
    y[0] = 5
    assert x.tolist() == [1, 1]


TWO = """
func.func @first(%x: i32) -> i32 {{ func.return %x : i32 }}
func.func @{}(%x: i32) -> i32 {{
  %y = func.call @first(%x) : (i32) -> i32
  %z = arith.addi %y, %y : i32
  func.return %z : i32
}}"""


@pytest.mark.parametrize("name", ["main", "forward", "anything"])
def test_the_entry_is_found(name: str) -> None:
    assert run(TWO.format(name), np.int32(2))[0] == 4


def test_a_function_can_be_named() -> None:
    module = parse(TWO.format("main"))
    assert interpret(module, np.int32(2), function="first")[0] == 2
    assert Interpreter(module).call("main", [np.int32(2)])[0] == 4


def test_functions_that_cannot_be_chosen() -> None:
    text = "func.func @a() { func.return }\n func.func @b() { func.return }"
    with pytest.raises(InterpretError, match="no single entry") as caught:
        run(text)
    assert caught.value.hint == "it has @a, @b"
    with pytest.raises(InterpretError, match="no function @c"):
        interpret(parse(text), function="c")
    with pytest.raises(InterpretError, match="no single entry"):
        interpret(ModuleOp([]))
    with pytest.raises(InterpretError, match="declared but has no body"):
        interpret(parse("func.func private @main()"))


def test_private_functions_are_no_entries() -> None:
    text = """func.func private @a() -> i32 { %0 = arith.constant 1 : i32 func.return %0 : i32 }
              func.func @b() -> i32 { %0 = arith.constant 2 : i32 func.return %0 : i32 }"""
    assert run(text.replace("i32 func", "i32\n func"))[0] == 2


def test_a_model_of_subgraphs() -> None:
    text = """
    graph.subgraph @model.mlp on <npu>(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = arith.addf %x, %x : tensor<2xf32>
      graph.return %y : tensor<2xf32>
    }
    graph.subgraph @model(%x: tensor<2xf32>) -> tensor<2xf32> {
      %a = graph.transfer %x from <cpu> to <npu> : tensor<2xf32>
      %b = graph.call @model.mlp(%a) : (tensor<2xf32>) -> tensor<2xf32>
      %c = graph.transfer %b from <npu> to <cpu> : tensor<2xf32>
      graph.return %c : tensor<2xf32>
    }"""
    assert run(text, f32([1, 2]))[0].tolist() == [2, 4]


def test_all_ops_without_semantics_are_named_before_anything_runs() -> None:
    text = """
    func.func @main(%c: i1) {
      cf.assert %c, "ran"
      "test.op"() : () -> ()
      "other.thing"() : () -> ()
      "test.op"() : () -> ()
      func.return
    }"""
    ctx = context()
    ctx.allow_unregistered = True
    module = parse_module(text, "model.mlir", ctx=ctx)
    with pytest.raises(InterpretError) as caught:
        interpret(module, np.False_)
    assert "  other.thing: model.mlir:5:7\n" in caught.value.what
    assert "  test.op: model.mlir:4:7, model.mlir:6:7" in caught.value.what


def test_a_named_linalg_op_without_semantics_hints_at_its_generic_form() -> None:
    ctx = context()
    ctx.allow_unregistered = True
    text = 'func.func @main() { "linalg.winograd_filter_transform"() : () -> () \n func.return }'
    with pytest.raises(InterpretError, match="linalg-generalize-named-ops"):
        interpret(parse_module(text, ctx=ctx))


def test_registered_semantics_run_and_their_results_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))  # pyright: ignore[reportPrivateUsage]
    registry.load_all()
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
                %y = "test.op"(%x) : (tensor<2xf32>) -> tensor<2xf32>
                func.return %y : tensor<2xf32> }"""

    @register(ProbeOp)
    def double(frame: Frame, op: ProbeOp, operands: Sequence[Value]) -> Sequence[Value]:
        return (operands[0] * 2,)

    assert run(text, f32([1, 2]))[0].tolist() == [2, 4]

    @register(ProbeOp)
    def wrong_shape(frame: Frame, op: ProbeOp, operands: Sequence[Value]) -> Sequence[Value]:
        return (operands[0][:1],)

    with pytest.raises(InterpretError, match=r"not of its type.*given float32\[1\]"):
        run(text, f32([1, 2]))

    @register(ProbeOp)
    def too_many(frame: Frame, op: ProbeOp, operands: Sequence[Value]) -> Sequence[Value]:
        return (operands[0], operands[0])

    with pytest.raises(InterpretError, match="has 1 results, but its semantics gave 2"):
        run(text, f32([1, 2]))

    @register(ProbeOp)
    def raises(frame: Frame, op: ProbeOp, operands: Sequence[Value]) -> Sequence[Value]:
        raise ValueError("no such luck")

    with pytest.raises(InterpretError, match=r"op 'test.op': cannot be evaluated: no such luck"):
        run(text, f32([1, 2]))
    assert [f.__name__ for f in (double, wrong_shape, too_many, raises)]


def test_plug_ins_register_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = ModuleType("a_plugin")
    monkeypatch.setitem(sys.modules, "a_plugin", plugin)
    points = [EntryPoint("a", "a_plugin", registry.ENTRY_POINTS)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
    registry.load_all.cache_clear()
    registry.load_all()
    points[:] = [EntryPoint("b", "no_such_plugin", registry.ENTRY_POINTS)]
    registry.load_all.cache_clear()
    with pytest.raises(InterpretError, match="plug-in 'b' does not load: ModuleNotFoundError"):
        registry.load_all()
    monkeypatch.undo()
    registry.load_all.cache_clear()


def test_observers_see_every_op_with_its_results() -> None:
    seen: list[tuple[str, list[Any]]] = []

    def observe(op: Operation, results: Sequence[Value]) -> None:
        seen.append((op.name, [r.tolist() for r in results]))

    Interpreter(parse(ADD), observe=observe).call(None, [np.ones((1, 2), np.float32), np.int32(3)])
    assert seen == [("arith.addf", [[[2, 2]]]), ("arith.addi", [6])]


def test_runaway_recursion_is_an_error() -> None:
    text = "func.func @main() { func.call @main() : () -> ()\n func.return }"
    with pytest.raises(InterpretError, match="calls nest more than 100 deep at @main"):
        run(text)


def test_recursion_through_regions_is_an_error_too() -> None:
    text = """func.func @main(%n: i32) -> i32 {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %more = arith.cmpi sgt, %n, %zero : i32
      %r = scf.if %more -> (i32) {
        %m = arith.subi %n, %one : i32
        %s = func.call @main(%m) : (i32) -> i32
        %t = arith.addi %s, %n : i32
        scf.yield %t : i32
      } else {
        scf.yield %zero : i32
      }
      func.return %r : i32 }"""
    assert run(text, 20)[0] == 210
    with pytest.raises(InterpretError, match="nest"):
        run(text, 100_000)


def test_an_interpreter_can_be_used_again_after_an_error() -> None:
    text = """func.func @main(%c: i1) -> i32 {
                cf.assert %c, "no"
                %0 = arith.constant 1 : i32
                func.return %0 : i32 }"""
    interpreter = Interpreter(parse(text))
    for _ in range(3):
        with pytest.raises(InterpretError, match="an assertion of the program fails: no"):
            interpreter.call(None, [np.False_])
    assert interpreter.call(None, [np.True_])[0] == 1


def test_errors_say_where() -> None:
    with pytest.raises(Error) as caught:
        run(
            """func.func @main(%x: i32) -> i32 {
                 %y = arith.divsi %x, %x : i32
                 func.return %y : i32 }""",
            0,
        )
    assert (caught.value.place.line, caught.value.place.op) == (2, "arith.divsi")


def test_values_are_released_after_their_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))  # pyright: ignore[reportPrivateUsage]
    registry.load_all()
    alive: list[weakref.ref[Any]] = []
    counts: list[int] = []

    @register(ProbeOp)
    def make(frame: Frame, op: ProbeOp, operands: Sequence[Value]) -> Sequence[Value]:
        counts.append(sum(ref() is not None for ref in alive))
        value = np.zeros(4, np.float32)
        alive.append(weakref.ref(value))
        return (value,)

    step = '%{} = "test.op"(%{}) : (tensor<4xf32>) -> tensor<4xf32>\n'
    body = "".join(step.format(f"v{i + 1}", f"v{i}") for i in range(6))
    text = f"func.func @main(%v0: tensor<4xf32>) -> tensor<4xf32> {{ {body} func.return %v6 : tensor<4xf32> }}"
    run(text, np.zeros(4, np.float32))
    assert counts == [0, 1, 1, 1, 1, 1]
    assert make


def test_one_op_is_evaluated_alone() -> None:
    one = ConstantOp.from_int_and_width(1, IntegerType(32))
    op = AddiOp(one, one)
    assert evaluate_op(op, [np.int32(2), np.int32(3)])[0] == 5
    (value,) = evaluate_op(one, [])
    assert value == 1


def test_an_op_that_needs_values_around_it_cannot_be_evaluated_alone() -> None:
    module = parse("""
    func.func @main(%x: tensor<2xf32>, %s: f32) -> tensor<2xf32> {
      %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        outs(%x : tensor<2xf32>) {
        ^bb0(%o: f32):
          %r = arith.addf %o, %s : f32
          linalg.yield %r : f32
      } -> tensor<2xf32>
      func.return %y : tensor<2xf32>
    }""")
    (op,) = (op for op in module.walk() if isinstance(op, GenericOp))
    with pytest.raises(InterpretError, match="a value from outside"):
        evaluate_op(op, [f32([1, 2])])


def test_small_floats_pass_through() -> None:
    text = """func.func @main(%x: tensor<2xbf16>) -> tensor<2xbf16> {
                %y = arith.addf %x, %x : tensor<2xbf16>
                func.return %y : tensor<2xbf16> }"""
    (y,) = run(text, np.array([1.5, 2], ml_dtypes.bfloat16))
    assert y.dtype == ml_dtypes.bfloat16
    assert y.tolist() == [3, 4]


def test_types_that_cannot_be_held_are_an_error() -> None:
    text = "func.func @main(%x: i65) -> i65 { func.return %x : i65 }"
    with pytest.raises(InterpretError, match="integers of 65 bits"):
        run(text, np.int64(1))
    text = "func.func @main(%x: tensor<1xcomplex<f32>>) { func.return }"
    with pytest.raises(InterpretError, match="no numpy type is registered"):
        run(text, np.zeros(1, np.complex64))


def test_programs_bring_their_weights() -> None:
    store = WeightStore()
    reference = store.add("w", np.array([1, 2], np.float32))
    module = parse_module(f"""
mico.constant @w : tensor<2xf32> = #mico.ref<"{reference.key}", "{reference.sha256}">
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
  %w = mico.get_constant @w : tensor<2xf32>
  %y = arith.addf %x, %w : tensor<2xf32>
  func.return %y : tensor<2xf32>
}}""")
    for function in (None, "main"):
        (y,) = interpret(Program(module, store), np.ones(2, np.float32), function=function)
        assert np.array_equal(y, [2, 3])
    (y,) = interpret(module, np.ones(2, np.float32), store=store)
    assert np.array_equal(y, [2, 3])


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(UsageError, match="a str cannot be interpreted"):
        interpret(cast(Any, "net.mlir"))
