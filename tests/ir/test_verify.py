import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from xdsl.dialects import arith, cf, func, test
from xdsl.dialects.builtin import ModuleOp, StringAttr, i32
from xdsl.ir import Block, Operation, Region

from fewbit.errors import SymbolError, VerifyError
from fewbit.ir.parse import parse_module
from fewbit.ir.verify import verify
from fewbit.ir.walk import nested_ops


def complaint(text: str, stage: str | None = None) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        verify(parse_module(text, "net.mlir"), stage)
    return caught.value


def test_valid_module():
    verify(
        parse_module("""
        graph.subgraph @net.fc(%x: tensor<4xf32>) -> tensor<4xf32> {
          graph.return %x : tensor<4xf32>
        }
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = graph.call @net.fc(%x) : (tensor<4xf32>) -> tensor<4xf32>
          func.return %y : tensor<4xf32>
        }""")
    )


def test_op_rule_gives_the_place_and_the_stage():
    error = complaint(
        """func.func @f(%a: i32) -> i32 {
  %b = "arith.addi"(%a) : (i32) -> i32
  func.return %b : i32
}""",
        stage="canonicalize",
    )
    place = error.place
    assert (place.file, place.line, place.op) == ("net.mlir", 2, "arith.addi")
    assert place.stage == "canonicalize"
    assert "\n" not in error.what


def test_dominance_is_part_of_it():
    error = complaint("""func.func @f(%a: i32) -> i32 {
  %c = arith.addi %b, %a : i32
  %b = arith.addi %a, %a : i32
  func.return %c : i32
}""")
    assert "before it is defined" in error.what
    assert error.place.line == 2


def test_block_without_terminator():
    body = Block([arith.ConstantOp.from_int_and_width(1, 32)])
    with pytest.raises(VerifyError, match="not a terminator") as caught:
        verify(ModuleOp([func.FuncOp("f", ([], []), Region(body))]))
    assert caught.value.place.op == "arith.constant"


def test_empty_block():
    with pytest.raises(VerifyError, match="empty block") as caught:
        verify(ModuleOp([func.FuncOp("f", ([], []), Region(Block()))]))
    assert caught.value.place.op == "func.func"


def test_terminator_in_the_middle():
    body = Block([func.ReturnOp(), func.ReturnOp()])
    with pytest.raises(VerifyError, match="last operation"):
        verify(ModuleOp([func.FuncOp("f", ([], []), Region(body))]))


def test_branch_into_another_region():
    target = Block([func.ReturnOp()])
    inner = test.TestOp(regions=[Region(Block([cf.BranchOp(target)]))])
    entry = Block([inner, cf.BranchOp(target)])
    with pytest.raises(VerifyError, match="different region") as caught:
        verify(ModuleOp([func.FuncOp("f", ([], []), Region([entry, target]))]))
    assert caught.value.place.op == "cf.br"


def test_erased_value():
    one = arith.ConstantOp.from_int_and_width(1, 32)
    add = arith.AddiOp(one, one)
    module = ModuleOp([one, add])
    module.body.block.erase_op(one, safe_erase=False)
    with pytest.raises(VerifyError, match="erased") as caught:
        verify(module)
    assert caught.value.place.op == "arith.addi"


def test_parent_pointer():
    op = test.TestOp()
    module = ModuleOp([op])
    op.parent = Block()
    with pytest.raises(VerifyError, match="not its parent"):
        verify(module)


def test_verifier_that_trips_is_an_error_not_a_traceback():
    """xDSL's func.return asserts that its parent is a func.func."""
    body = Block([func.ReturnOp()])
    with pytest.raises(VerifyError):
        verify(ModuleOp([test.TestOp(regions=[Region(body)])]))


def test_long_messages_are_cut():
    class Talks(test.TestOp):
        def verify_(self) -> None:
            raise ValueError("long\n" * 1000)

    with pytest.raises(VerifyError) as caught:
        verify(ModuleOp([Talks()]))
    assert len(caught.value.what) <= 400
    assert "\n" not in caught.value.what


def test_duplicate_symbol_points_at_both():
    error = complaint("""func.func private @f() -> ()
func.func private @g() -> ()
func.func private @f() -> ()""")
    assert isinstance(error, SymbolError)
    assert error.what == "defines the symbol @f a second time"
    assert error.place.line == 3
    assert error.hint is not None
    assert "net.mlir:1:1" in error.hint


def test_duplicate_symbol_in_an_inner_module():
    error = complaint("""
    builtin.module {
      func.func private @f() -> ()
      func.func private @f() -> ()
    }""")
    assert isinstance(error, SymbolError)


def test_same_symbol_in_two_modules_is_fine():
    verify(
        parse_module("""
        builtin.module { func.func private @f() -> () }
        builtin.module { func.func private @f() -> () }""")
    )


def test_missing_callee_suggests_the_nearest_name():
    error = complaint("""
    graph.subgraph @model.layers.0.mlp(%x: i32) -> i32 { graph.return %x : i32 }
    func.func @main(%x: i32) -> i32 {
      %y = graph.call @model.layers.0.mpl(%x) : (i32) -> i32
      func.return %y : i32
    }""")
    assert isinstance(error, SymbolError)
    assert error.place.line == 4
    assert error.hint == "did you mean @model.layers.0.mlp?"


def test_missing_function():
    error = complaint("""
    func.func @main() {
      func.call @elsewhere() : () -> ()
      func.return
    }""")
    assert isinstance(error, SymbolError)
    assert error.hint == "define @elsewhere in the module, or correct the name"


def test_call_without_a_callee_is_no_traceback():
    error = complaint("""
    func.func @main() {
      "func.call"() : () -> ()
      func.return
    }""")
    assert "callee" in error.what
    assert not isinstance(error, SymbolError)


def test_call_against_the_signature():
    error = complaint("""
    graph.subgraph @s(%x: i32) -> i32 { graph.return %x : i32 }
    func.func @main(%x: i64) -> i64 {
      %y = graph.call @s(%x) : (i64) -> i64
      func.return %y : i64
    }""")
    assert isinstance(error, SymbolError)
    assert "signature" in error.what


def subgraph(name: str, callee: str, call: str = "graph.call") -> str:
    return f"""
    graph.subgraph @{name}(%x: i32) -> i32 {{
      %y = {call} @{callee}(%x) : (i32) -> i32
      graph.return %y : i32
    }}"""


def function(name: str, callee: str, call: str = "func.call") -> str:
    return f"""
    func.func @{name}(%x: i32) -> i32 {{
      %y = {call} @{callee}(%x) : (i32) -> i32
      func.return %y : i32
    }}"""


def test_subgraph_that_calls_itself():
    error = complaint(subgraph("a", "a"))
    assert isinstance(error, SymbolError)
    assert error.what == "calls itself: @a → @a"


def test_recursion_in_an_inner_module():
    error = complaint(f"builtin.module {{ {subgraph('a', 'a')} }}")
    assert error.what == "calls itself: @a → @a"


def test_subgraphs_in_a_circle():
    error = complaint(subgraph("a", "b") + subgraph("b", "c") + subgraph("c", "a"))
    assert error.what == "calls itself: @a → @b → @c → @a"


def test_subgraph_that_recurses_through_a_function():
    error = complaint(subgraph("a", "f", "func.call") + function("f", "a", "graph.call"))
    assert error.what == "calls itself: @a → @f → @a"


def test_recursion_hidden_behind_another_cycle():
    """f → g → f comes first, and s → g → f → s shares its edges."""
    f = """
    func.func @f(%x: i32) -> i32 {
      %a = func.call @g(%x) : (i32) -> i32
      %b = graph.call @s(%a) : (i32) -> i32
      func.return %b : i32
    }"""
    error = complaint(f + function("g", "f") + subgraph("s", "g", "func.call"))
    assert error.what == "calls itself: @s → @g → @f → @s"


def test_functions_may_recurse_and_subgraphs_may_stand_between_them():
    verify(
        parse_module(
            function("even", "odd")
            + function("odd", "even")
            + subgraph("between", "even", "func.call")
            + function("self", "between", "graph.call")
        )
    )


def test_deep_hierarchy_is_no_recursion():
    text = "".join(subgraph(f"s{i}", f"s{i + 1}") for i in range(50))
    verify(parse_module(text + "graph.subgraph @s50(%x: i32) -> i32 { graph.return %x : i32 }"))


def test_unregistered_attributes_do_not_matter():
    one = arith.ConstantOp.from_int_and_width(1, 32)
    one.attributes["note"] = StringAttr("kept")
    verify(ModuleOp([one, test.TestOp(operands=[one.result], result_types=[i32])]))


def benchmark() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "ir.py"
    spec = importlib.util.spec_from_file_location("benchmarks_ir", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_five_thousand_ops_are_built_and_verified_in_a_second_each():
    figures = benchmark()
    module: ModuleOp = figures.build_network()
    assert sum(1 for _ in nested_ops(module)) > 5000
    assert figures.seconds(figures.build_network) < 1
    assert figures.seconds(lambda: verify(module)) < 1


def test_thousands_of_calls_do_not_each_scan_the_module():
    count = 1500
    functions: list[Operation] = []
    for i in range(count):
        body = Block(arg_types=[i32])
        call = func.CallOp(f"f{(i + 1) % count}", body.args, [i32])
        body.add_ops([call, func.ReturnOp(call)])
        functions.append(func.FuncOp(f"f{i}", ([i32], [i32]), Region(body)))
    module = ModuleOp(functions)
    assert benchmark().seconds(lambda: verify(module)) < 1
