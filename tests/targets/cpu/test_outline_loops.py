"""Loop nests as functions of their own."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fewbit.ir.bindings import find_function, mlir_context
from fewbit.passes.loops.outline_loops import outline_loops
from fewbit.passes.memory.copies_to_linalg import CopiesToLinalg
from fewbit.pipeline.context import make_compile_context

SAME = "affine_map<(i) -> (i)>"


def parse(body: str, arguments: str) -> Any:
    ir: Any = import_module("torch_mlir.ir")

    with mlir_context():
        return ir.Module.parse(f"func.func @main({arguments}) {{\n{body}\n  return\n}}")


def generic(x: str, y: str, size: int = 4096, element: str = "f32") -> str:
    type = f"memref<{size}x{element}>"
    return f"""
  linalg.generic {{indexing_maps = [{SAME}, {SAME}], iterator_types = ["parallel"]}}
      ins({x} : {type}) outs({y} : {type}) {{
  ^bb0(%a: {element}, %b: {element}):
    %s = arith.addf %a, %b : {element}
    linalg.yield %s : {element}
  }}"""


def names_in(module: Any) -> list[str]:
    return [op.operation.name for op in find_function(module, "main").entry_block.operations]


def test_entry_calls_what_was_in_it() -> None:
    other = generic("%y", "%x").replace("arith.addf", "arith.mulf")
    module = parse(generic("%x", "%y") + other, "%x: memref<4096xf32>, %y: memref<4096xf32>")
    result = outline_loops(module, "main")
    assert [each.name for each in result] == ["main_000", "main_001"]
    assert [n for n in names_in(module) if n != "arith.constant"] == [
        "func.call", "func.call", "func.return",
    ]  # fmt: skip
    assert module.operation.verify()
    assert not result[0].overlaps
    assert result[0].split == 0


def test_equal_loops_are_one_function() -> None:
    """Unless one of them works on memory that overlaps, of which less may be said."""
    module = parse(
        generic("%x", "%y") + generic("%y", "%x") + generic("%x", "%x"),
        "%x: memref<4096xf32>, %y: memref<4096xf32>",
    )
    result = outline_loops(module, "main")
    assert names_in(module).count("func.call") == 3
    assert len(result) == 2
    assert module.operation.verify()


def test_what_is_written_in_place_overlaps_itself() -> None:
    type = "memref<64xf32>"
    views = """
  %a = memref.subview %x[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  %b = memref.subview %x[16] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 16>>
  linalg.copy ins(%a : memref<32xf32, strided<[1]>>)
      outs(%b : memref<32xf32, strided<[1], offset: 16>>)"""
    module = parse(views, f"%x: {type}")
    from fewbit.ir.bindings import run_upstream

    run_upstream(module, "func.func(linalg-generalize-named-ops)")
    (result,) = outline_loops(module, "main")
    assert result.overlaps


def test_short_loops_are_left_to_one_thread() -> None:
    module = parse(generic("%x", "%y", 16), "%x: memref<16xf32>, %y: memref<16xf32>")
    (result,) = outline_loops(module, "main")
    assert result.split is None


def test_sums_are_never_split() -> None:
    body = f"""
  linalg.generic {{indexing_maps = [{SAME}, affine_map<(i) -> ()>], iterator_types = ["reduction"]}}
      ins(%x : memref<99999xf32>) outs(%y : memref<f32>) {{
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }}"""
    (result,) = outline_loops(parse(body, "%x: memref<99999xf32>, %y: memref<f32>"), "main")
    assert result.split is None


def test_constants_go_along() -> None:
    body = "  %c = arith.constant 2.0 : f32" + generic("%x", "%y").replace(
        "arith.addf %a, %b", "arith.addf %a, %c"
    )
    module = parse(body, "%x: memref<4096xf32>, %y: memref<4096xf32>")
    outline_loops(module, "main")
    assert module.operation.verify()
    made = find_function(module, "main_000")
    assert len(made.entry_block.arguments) == 4
    assert "2.000000e+00" in str(made)


def test_function_is_named_after_its_layer() -> None:
    ir: Any = import_module("torch_mlir.ir")

    text = (
        "func.func @main(%x: memref<4096xf32>) {"
        + generic("%x", "%x")
        + ' loc("features.0.conv")\n  return\n}'
    )
    with mlir_context():
        module = ir.Module.parse(text)
    assert outline_loops(module, "main")[0].name == "main_000_features_0_conv"


def test_copies_become_loops() -> None:
    module = parse(
        "  memref.copy %x, %y : memref<8xf32> to memref<8xf32>",
        "%x: memref<8xf32>, %y: memref<8xf32>",
    )
    CopiesToLinalg().apply(make_compile_context(), module)
    assert "linalg.copy" in names_in(module)
    assert "memref.copy" not in names_in(module)
