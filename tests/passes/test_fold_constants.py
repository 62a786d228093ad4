import re
from collections.abc import Callable
from typing import NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, bf16, f16, f32, f64, i1, i8
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from fewbit.interpreter.constants import read_constant
from fewbit.interpreter.values import dtype_of
from fewbit.ir.context import make_context
from fewbit.ir.parse import parse_module
from fewbit.ir.walk import nested_ops
from fewbit.passes.graph.fold_constants import FoldConstants, make_constant

RunPasses = Callable[[str, str], str]


def function(*body: str, returns: str, type: str) -> str:
    lines = "\n".join(body)
    return f"func.func @main() -> {type} {{\n{lines}\nfunc.return {returns} : {type}\n}}\n"


def body(text: str) -> list[str]:
    lines = text[text.index("func.func") :].splitlines()[1:]
    return [line.strip() for line in lines if line.strip() not in ("}", "")]


def test_chain_folds_to_one_constant(run_passes: RunPasses):
    text = function(
        "%a = arith.constant 2 : i32",
        "%b = arith.addi %a, %a : i32",
        "%c = arith.muli %b, %a : i32",
        returns="%c",
        type="i32",
    )
    assert body(run_passes(text, "fold-constants")) == [
        "%c = arith.constant 8 : i32",
        "func.return %c : i32",
    ]


@pytest.mark.parametrize(
    ("op", "type", "value"),
    [
        ("arith.addf %a, %a", "tensor<2xf32>", "dense<[3.000000e+00, -5.000000e-01]>"),
        ("arith.mulf %a, %a", "tensor<2xf64>", "dense<[2.250000e+00, 6.250000e-02]>"),
        ("arith.addf %a, %a", "tensor<2xf16>", "dense<[3.000000e+00, -5.000000e-01]>"),
        ("arith.addf %a, %a", "tensor<2xbf16>", "dense<[3.000000e+00, -5.000000e-01]>"),
    ],
)
def test_floats(run_passes: RunPasses, op: str, type: str, value: str):
    text = function(
        f"%a = arith.constant dense<[1.5, -0.25]> : {type}",
        f"%b = {op} : {type}",
        returns="%b",
        type=type,
    )
    assert body(run_passes(text, "fold-constants"))[0] == f"%b = arith.constant {value} : {type}"


def test_comparison_gives_true(run_passes: RunPasses):
    text = function(
        "%a = arith.constant 1 : i32",
        "%b = arith.constant 2 : i32",
        "%c = arith.cmpi slt, %a, %b : i32",
        returns="%c",
        type="i1",
    )
    assert body(run_passes(text, "fold-constants"))[0] == "%c = arith.constant true"


def test_linalg_writes_into_an_empty_tensor(run_passes: RunPasses):
    text = function(
        "%e = tensor.empty() : tensor<4xf32>",
        "%k = arith.constant 0.5 : f32",
        "%f = linalg.fill ins(%k : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>",
        returns="%f",
        type="tensor<4xf32>",
    )
    folded = run_passes(text, "fold-constants,dce")
    assert body(folded)[0] == "%f = arith.constant dense<5.000000e-01> : tensor<4xf32>"


def test_empty_tensor_is_no_constant(run_passes: RunPasses):
    text = function(
        "%e = tensor.empty() : tensor<4xf32>",
        "%n = arith.negf %e : tensor<4xf32>",
        returns="%n",
        type="tensor<4xf32>",
    )
    assert "arith.negf" in run_passes(text, "fold-constants")


def test_regions_that_use_nothing_from_outside(run_passes: RunPasses):
    text = """
    #id = affine_map<(d0) -> (d0)>
    func.func @main() -> tensor<2xf32> {
      %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %e = tensor.empty() : tensor<2xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%a : tensor<2xf32>) outs(%e : tensor<2xf32>) {
      ^bb0(%in: f32, %out: f32):
        %s = arith.addf %in, %in : f32
        linalg.yield %s : f32
      } -> tensor<2xf32>
      func.return %r : tensor<2xf32>
    }"""
    folded = run_passes(text, "fold-constants,dce")
    assert "linalg.generic" not in folded
    assert "dense<[2.000000e+00, 4.000000e+00]>" in folded


def test_regions_that_use_values_from_outside_stay(run_passes: RunPasses):
    text = """
    #id = affine_map<(d0) -> (d0)>
    func.func @main(%k: f32) -> tensor<2xf32> {
      %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %e = tensor.empty() : tensor<2xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%a : tensor<2xf32>) outs(%e : tensor<2xf32>) {
      ^bb0(%in: f32, %out: f32):
        %s = arith.addf %in, %k : f32
        linalg.yield %s : f32
      } -> tensor<2xf32>
      func.return %r : tensor<2xf32>
    }"""
    assert "linalg.generic" in run_passes(text, "fold-constants")


CONSTANTS = """
mico.constant @plain : tensor<2xf32> = dense<[1.0, -2.0]>
mico.constant @s : tensor<2xf32> = dense<[1.0, 2.0]>
mico.constant @packed : tensor<2x2x!mico.int<4>> = dense<"0x1234"> scale @s
"""


def test_constants_of_the_module_fold_where_their_data_is_plain(run_passes: RunPasses):
    text = CONSTANTS + function(
        "%k = mico.get_constant @plain : tensor<2xf32>",
        "%r = mico.relu(%k) : (tensor<2xf32>) -> tensor<2xf32>",
        returns="%r",
        type="tensor<2xf32>",
    )
    folded = run_passes(text, "fold-constants,dce,symbol-dce")
    assert "mico." not in folded
    assert "dense<[1.000000e+00, 0.000000e+00]>" in folded


def test_packed_weights_stay_packed(run_passes: RunPasses):
    text = CONSTANTS + function(
        "%w = mico.get_constant @packed : tensor<2x2x!mico.int<4>>",
        "%s = mico.get_constant @s : tensor<2xf32>",
        "%d = mico.dequantize(%w, %s) "
        ": (tensor<2x2x!mico.int<4>>, tensor<2xf32>) -> tensor<2x2xf32>",
        returns="%d",
        type="tensor<2x2xf32>",
    )
    assert "mico.dequantize" in run_passes(text, "fold-constants")


def test_values_that_come_from_outside_stay(run_passes: RunPasses):
    text = """
    func.func @main(%x: i32) -> i32 {
      %a = arith.constant 2 : i32
      %b = arith.addi %a, %x : i32
      func.return %b : i32
    }"""
    assert "arith.addi" in run_passes(text, "fold-constants")


def test_effects_stay(run_passes: RunPasses):
    text = function(
        "%a = arith.constant 2 : i32",
        '%b = "test.op"(%a) : (i32) -> i32',
        returns="%b",
        type="i32",
    )
    assert "test.op" in run_passes(text, "fold-constants")


BROADCAST = function(
    "%k = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>",
    "%e = tensor.empty() : tensor<64x2xf32>",
    "%b = linalg.broadcast ins(%k : tensor<2xf32>) outs(%e : tensor<64x2xf32>) dimensions = [0]",
    returns="%b",
    type="tensor<64x2xf32>",
)
GROWTH = 64 * 2 * 4 - 2 * 4


def test_constants_grow_up_to_the_limit_and_not_beyond(run_passes: RunPasses):
    assert "linalg.broadcast" not in run_passes(BROADCAST, f"fold-constants{{max-bytes={GROWTH}}}")
    assert "linalg.broadcast" in run_passes(BROADCAST, f"fold-constants{{max-bytes={GROWTH - 1}}}")


VARIED = f"dense<{[float(i) for i in range(64)]}>"


def test_limit_holds_for_all_folds_together(run_passes: RunPasses):
    text = f"""
    func.func @main() -> (tensor<64xf32>, tensor<64xf32>) {{
      %k = arith.constant {VARIED} : tensor<64xf32>
      %a = arith.addf %k, %k : tensor<64xf32>
      %b = arith.mulf %k, %k : tensor<64xf32>
      func.return %a, %b : tensor<64xf32>, tensor<64xf32>
    }}"""
    assert re.findall(r"arith\.(\w+)f", run_passes(text, "fold-constants{max-bytes=255}")) == [
        "add",
        "mul",
    ]
    # The first adds 256 bytes; the second then replaces the constant that only it still uses.
    assert not re.findall(r"arith\.(\w+)f ", run_passes(text, "fold-constants{max-bytes=256}"))


def test_limit_counts_what_was_folded_before(run_passes: RunPasses):
    text = f"""
    func.func @main() -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {{
      %k = arith.constant {VARIED} : tensor<64xf32>
      %a = arith.addf %k, %k : tensor<64xf32>
      %b = arith.mulf %k, %k : tensor<64xf32>
      func.return %a, %b, %k : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
    }}"""
    folded = run_passes(text, "fold-constants{max-bytes=511}")
    assert "arith.addf" not in folded
    assert "arith.mulf" in folded


SPLAT_AND_ROW = f"""
func.func @main() -> tensor<512x64xf32> {{
  %k = arith.constant dense<1.0> : tensor<512x64xf32>
  %v = arith.constant {VARIED} : tensor<64xf32>
  %e = tensor.empty() : tensor<512x64xf32>
  %b = linalg.broadcast ins(%v : tensor<64xf32>) outs(%e : tensor<512x64xf32>) dimensions = [0]
  %s = arith.addf %k, %b : tensor<512x64xf32>
  func.return %s : tensor<512x64xf32>
}}"""


def test_splat_that_dies_saves_one_element(run_passes: RunPasses):
    growth = 512 * 64 * 4 - 64 * 4
    folded = run_passes(SPLAT_AND_ROW, f"fold-constants{{max-bytes={growth - 1}}}")
    assert "linalg.broadcast" in folded
    assert "arith.addf" in folded
    assert len(folded) < 2 * len(SPLAT_AND_ROW)
    assert "arith.addf" not in run_passes(SPLAT_AND_ROW, f"fold-constants{{max-bytes={growth}}}")


def test_splat_result_takes_one_element(run_passes: RunPasses):
    text = """
    func.func @main() -> (tensor<512x64xf32>, tensor<512x64xf32>) {
      %k = arith.constant dense<1.0> : tensor<512x64xf32>
      %s = arith.addf %k, %k : tensor<512x64xf32>
      func.return %s, %k : tensor<512x64xf32>, tensor<512x64xf32>
    }"""
    assert "arith.addf" in run_passes(text, "fold-constants{max-bytes=3}")
    assert "dense<2.000000e+00>" in run_passes(text, "fold-constants{max-bytes=4}")


@pytest.mark.parametrize("exception", [VerifyException("odd"), ZeroDivisionError(), IndexError()])
def test_op_that_cannot_be_evaluated_stays(
    run_passes: RunPasses, exception: Exception, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> NoReturn:
        raise exception

    monkeypatch.setattr("fewbit.passes.graph.fold_constants.evaluate_op", fail)
    text = function(
        "%a = arith.constant 2 : i32", "%b = arith.addi %a, %a : i32", returns="%b", type="i32"
    )
    assert "arith.addi" in run_passes(text, "fold-constants")


def test_shrinking_is_always_allowed(run_passes: RunPasses):
    text = function(
        "%k = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>",
        "%s = arith.truncf %k : tensor<4xf32> to tensor<4xf16>",
        returns="%s",
        type="tensor<4xf16>",
    )
    assert "arith.truncf" not in run_passes(text, "fold-constants{max-bytes=0}")


def test_locations_are_those_of_the_folded_ops():
    module = parse_module("""func.func @main() -> i32 {
  %a = arith.constant 2 : i32
  %b = arith.addi %a, %a : i32
  func.return %b : i32
}""")
    line = [op.location for op in nested_ops(module) if op.name == "arith.addi"]
    FoldConstants().apply(make_context(), module)
    assert [op.location for op in nested_ops(module) if op.name == "arith.constant"] == line


@pytest.mark.parametrize("element", [i1, i8, f16, bf16, f32, f64])
def test_attribute_is_the_one_that_the_text_gives(element: Attribute):
    type = TensorType(element, [4])
    value: NDArray[np.generic] = np.array([1, 0, 1, 1]).astype(dtype_of(element))
    made = make_constant(value, type)
    assert isinstance(made, DenseIntOrFPElementsAttr)
    parsed = next(iter(parse_module(f"%0 = arith.constant {made}").ops))
    assert parsed.properties["value"] == made
    assert np.array_equal(read_constant(made, type), value)


def test_scalar_attributes():
    assert str(make_constant(np.array(True), i1)) == "true"
    assert str(make_constant(np.array(0.5, np.float32), f32)) == "5.000000e-01 : f32"
    assert str(make_constant(np.array(-3, np.int8), i8)) == "-3 : i8"
