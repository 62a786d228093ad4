"""xDSL's `canonicalize`, with the patterns of fewbit's dialects."""

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from xdsl.transforms.canonicalize import CanonicalizePass

from fewbit.ir.context import make_context
from fewbit.ir.locations import place_of
from fewbit.ir.parse import parse_module
from fewbit.ir.walk import nested_ops

RunPasses = Callable[[str, str], str]

T = "tensor<2x3x4xf32>"


def chain(*ops: str, argument: str = T, result: str = T) -> str:
    """Return a function of a chain of ops; `{}` in an op stands for the value before it."""
    lines = [
        f"%{i + 1} = " + op.replace("{}", "%x" if i == 0 else f"%{i}") for i, op in enumerate(ops)
    ]
    lines += [f"func.return %{len(ops)} : {result}"]
    body = "\n".join(lines)
    return f"func.func @main(%x: {argument}) -> {result} {{\n{body}\n}}"


def op(name: str, attributes: str = "", types: str = f"({T}) -> {T}") -> str:
    return f"mico.{name}({{}}) {attributes} : {types}"


def ops_left(text: str) -> list[str]:
    return re.findall(r"= (mico\.\w+|graph\.transfer)", text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["relu", "relu"], ["relu"]),
        (["relu", "relu", "relu"], ["relu"]),
        (["relu", "relu6"], ["relu6"]),
        (["relu6", "relu"], ["relu6"]),
        (["relu6", "relu6"], ["relu6"]),
        (["relu", "relu6", "relu", "relu"], ["relu6"]),
        (["relu", "gelu", "relu"], ["relu", "gelu", "relu"]),
    ],
)
def test_relus(run_passes: RunPasses, before: list[str], after: list[str]):
    text = run_passes(chain(*(op(name) for name in before)), "canonicalize")
    assert ops_left(text) == [f"mico.{name}" for name in after]


def transpose(order: str, source: str, target: str) -> str:
    return op("transpose", f"{{permutation = {order}}}", f"(tensor<{source}>) -> tensor<{target}>")


def test_transposes_compose(run_passes: RunPasses):
    text = run_passes(
        chain(
            transpose("[1, 2, 0]", "2x3x4xf32", "3x4x2xf32"),
            transpose("[2, 1, 0]", "3x4x2xf32", "2x4x3xf32"),
            result="tensor<2x4x3xf32>",
        ),
        "canonicalize",
    )
    assert ops_left(text) == ["mico.transpose"]
    assert "permutation = [0, 2, 1]" in text


def test_transposes_that_undo_each_other_vanish(run_passes: RunPasses):
    text = run_passes(
        chain(
            transpose("[1, 2, 0]", "2x3x4xf32", "3x4x2xf32"),
            transpose("[2, 0, 1]", "3x4x2xf32", "2x3x4xf32"),
        ),
        "canonicalize",
    )
    assert "func.return %x" in text


def reshape(source: str, target: str, shape: str = "") -> str:
    attributes = f"{{shape = {shape}}}" if shape else ""
    return op("reshape", attributes, f"(tensor<{source}>) -> tensor<{target}>")


def test_reshapes_compose_and_vanish(run_passes: RunPasses):
    longer = [reshape("2x3x4xf32", "6x4xf32"), reshape("6x4xf32", "24xf32")]
    text = run_passes(chain(*longer, result="tensor<24xf32>"), "canonicalize")
    assert ops_left(text) == ["mico.reshape"]
    assert "shape = [24]" in text
    back = [*longer, reshape("24xf32", "2x3x4xf32")]
    assert "func.return %x" in run_passes(chain(*back), "canonicalize")


def test_flatten_of_a_reshape_is_a_reshape(run_passes: RunPasses):
    text = run_passes(
        chain(
            reshape("2x3x4xf32", "2x4x3xf32"),
            op("flatten", "", "(tensor<2x4x3xf32>) -> tensor<2x12xf32>"),
            result="tensor<2x12xf32>",
        ),
        "canonicalize",
    )
    assert ops_left(text) == ["mico.reshape"]


def test_dynamic_reshapes_stay(run_passes: RunPasses):
    """Equal types with `?` need not be equal shapes."""
    text = run_passes(
        chain(
            reshape("?x?xf32", "?x?xf32", "[-1, 0]"),
            argument="tensor<?x?xf32>",
            result="tensor<?x?xf32>",
        ),
        "canonicalize",
    )
    assert ops_left(text) == ["mico.reshape"]


def test_flatten_of_one_dimension_vanishes_though_dynamic(run_passes: RunPasses):
    text = run_passes(
        chain(
            op("flatten", "", "(tensor<?x?xf32>) -> tensor<?x?xf32>"),
            argument="tensor<?x?xf32>",
            result="tensor<?x?xf32>",
        ),
        "canonicalize",
    )
    assert ops_left(text) == []


def test_concat_of_one(run_passes: RunPasses):
    assert ops_left(run_passes(chain(op("concat", "{dim = 1}")), "canonicalize")) == []


def test_parts_of_a_bundle(run_passes: RunPasses):
    text = run_passes(
        """
        func.func @main(%w: tensor<2x4x!mico.int<4>>, %s: tensor<2xf32>)
            -> (tensor<2x4x!mico.int<4>>, tensor<2xf32>) {
          %q = mico.bundle(%w, %s) : (tensor<2x4x!mico.int<4>>, tensor<2xf32>)
            -> !mico.qtensor<tensor<2x4x!mico.int<4>>, scale: tensor<2xf32>>
          %v, %t = mico.unbundle(%q)
            : (!mico.qtensor<tensor<2x4x!mico.int<4>>, scale: tensor<2xf32>>)
            -> (tensor<2x4x!mico.int<4>>, tensor<2xf32>)
          func.return %v, %t : tensor<2x4x!mico.int<4>>, tensor<2xf32>
        }""",
        "canonicalize",
    )
    assert ops_left(text) == []
    assert "func.return %w, %s" in text


def test_transfers_are_shortened(run_passes: RunPasses):
    hop = "graph.transfer {{}} from <{}> to <{}> : {}"
    there = chain(hop.format("cpu", "npu", T), hop.format("npu", "gpu", T))
    assert "from <cpu> to <gpu>" in run_passes(there, "canonicalize")
    back = chain(hop.format("cpu", "npu", T), hop.format("npu", "cpu", T))
    assert ops_left(run_passes(back, "canonicalize")) == []


def test_unused_layers_go(run_passes: RunPasses):
    text = run_passes(
        """
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %a = mico.silu(%x) : (tensor<4xf32>) -> tensor<4xf32>
          %b = mico.silu(%a) : (tensor<4xf32>) -> tensor<4xf32>
          func.return %x : tensor<4xf32>
        }""",
        "canonicalize",
    )
    assert ops_left(text) == []


def test_arithmetic_folds_beside_layers(run_passes: RunPasses):
    text = run_passes(
        """
        func.func @main() -> i32 {
          %a = arith.constant 2 : i32
          %b = arith.addi %a, %a : i32
          func.return %b : i32
        }""",
        "canonicalize",
    )
    assert "arith.constant 4 : i32" in text
    assert "arith.addi" not in text


def refining(name: str, attributes: str, *types: str) -> str:
    """Return a chain of one kind of op through these types."""
    ops = [op(name, attributes, f"(tensor<{a}>) -> tensor<{b}>") for a, b in pairwise(types)]
    return chain(*ops, argument=f"tensor<{types[0]}>", result=f"tensor<{types[-1]}>")


@pytest.mark.parametrize(
    "text",
    [
        refining("relu", "", "?xf32", "?xf32", "4xf32"),
        refining("relu6", "", "?xf32", "?xf32", "4xf32"),
        refining("transpose", "{permutation = [1, 0]}", "2x3xf32", "3x?xf32", "5x3xf32"),
        refining("reshape", "", "2x3xf32", "?xf32", "4x2xf32"),
        chain(
            op("relu", "", "(tensor<2xf32>) -> tensor<?xf32>"),
            op("relu6", "", "(tensor<?xf32>) -> tensor<5xf32>"),
            argument="tensor<2xf32>",
            result="tensor<5xf32>",
        ),
    ],
)
def test_what_would_change_a_type_or_contradict_itself_stays(run_passes: RunPasses, text: str):
    assert ops_left(run_passes(text, "canonicalize")) == ops_left(text)


def test_parts_of_a_bundle_whose_types_differ_stay(run_passes: RunPasses):
    q = "!mico.qtensor<tensor<2x4x!mico.int<4>>, scale: tensor<2xf32>>"
    text = run_passes(
        f"""
        func.func @main(%w: tensor<2x4x!mico.int<4>>, %s: tensor<2xf32>)
            -> tensor<?x4x!mico.int<4>> {{
          %q = mico.bundle(%w, %s) : (tensor<2x4x!mico.int<4>>, tensor<2xf32>) -> {q}
          %v, %t = mico.unbundle(%q) : ({q}) -> (tensor<?x4x!mico.int<4>>, tensor<2xf32>)
          func.return %v : tensor<?x4x!mico.int<4>>
        }}""",
        "canonicalize",
    )
    assert "mico.unbundle" in text


@pytest.mark.parametrize(
    "second",
    [
        chain(op("relu"), op("relu6")),
        chain(
            transpose("[1, 2, 0]", "2x3x4xf32", "3x4x2xf32"),
            transpose("[2, 1, 0]", "3x4x2xf32", "2x4x3xf32"),
            result="tensor<2x4x3xf32>",
        ),
        chain(
            reshape("2x3x4xf32", "6x4xf32"), reshape("6x4xf32", "24xf32"), result="tensor<24xf32>"
        ),
        chain(
            f"graph.transfer {{}} from <cpu> to <npu> : {T}",
            f"graph.transfer {{}} from <npu> to <gpu> : {T}",
        ),
    ],
)
def test_what_takes_the_place_of_an_op_has_its_location_and_name(second: str):
    module = parse_module(second.replace("%2", "%kept"), "net.mlir")
    CanonicalizePass().apply(make_context(), module)
    (left,) = (o for o in nested_ops(module) if o.name.startswith(("mico.", "graph.")))
    assert place_of(left).file == "net.mlir"
    assert place_of(left).line == 3
    assert left.results[0].name_hint == "kept"
