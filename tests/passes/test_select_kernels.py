from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from fewbit.dialects import kernel, mico
from fewbit.interpreter import interpret
from fewbit.ir.locations import place_of
from fewbit.ir.parse import parse_module
from fewbit.passes.kernel.select_kernels import SelectKernels
from tests.dialects.programs import OPS, functions
from tests.passes.conftest import RunPasses
from tests.passes.lowering import RANDOM, context, inputs_for, lower

LAYERS = [
    "mico.bitlinear",
    "mico.bitlinear (accumulators)",
    "mico.bitconv2d",
    "mico.bitconv1d",
    "mico.maxpool2d",
    "mico.avgpool2d",
    "mico.activation_quant",
]


@pytest.mark.parametrize("kind", LAYERS)
@RANDOM
@given(data=st.data())
def test_results_keep_their_bits(kind: str, data: st.DataObject) -> None:
    function = data.draw(functions("main", OPS[kind]))
    module = ModuleOp([function])
    inputs = inputs_for(function, np.random.default_rng(data.draw(st.integers(0, 1000))))
    before = interpret(module, *inputs)
    after = interpret(lower(module, "select-kernels"), *inputs)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(new, old)


X, W = "tensor<?x8xf32>", "tensor<4x8x!mico.int<4>>"


def linear(clauses: str, *types: str, x: str = X, w: str = W, y: str = "f32") -> str:
    """Return a linear layer on %0, %1 and what the clauses name."""
    given = (x, w, *types)
    arguments = ", ".join(f"%{i}: {type}" for i, type in enumerate(given))
    result = f"tensor<?x4x{y}>"
    return (
        f"func.func @main({arguments}) -> {result} {{\n"
        f"  %y = mico.bitlinear(%0, %1) {clauses} : ({', '.join(given)}) -> {result}\n"
        f"  func.return %y : {result}\n}}"
    )


SELECTED = [
    pytest.param(linear("", w="tensor<4x8xf32>"), id="float"),
    pytest.param(linear("weight_scale(%2)", "tensor<4xf32>"), id="few-bit weight"),
    pytest.param(linear("weight_scale(%2)", "tensor<4x2xf32>"), id="few-bit weight in groups"),
    pytest.param(
        linear("weight_scale(%2) weight_zero_point(%3)", "f32", "i32"), id="weight with zero point"
    ),
    pytest.param(linear("weight_scale(%2) {act_bits = 8}", "f32"), id="dynamic"),
    pytest.param(linear("weight_scale(%2) {act_bits = 8}", "tensor<4x2xf32>"), id="groups"),
    pytest.param(
        linear("weight_scale(%2) act_scale(%3) {act_bits = 8}", "f32", "f32"), id="static"
    ),
    pytest.param(
        linear("{act_bits = 8}", x="tensor<?x8x!mico.int<8>>", y="i32"), id="accumulators"
    ),
]
LEFT = [
    pytest.param(
        linear("weight_scale(%2) weight_zero_point(%3) {act_bits = 8}", "f32", "i32"),
        id="weight zero point",
    ),
    pytest.param(
        linear(
            "weight_scale(%2) act_scale(%3) act_zero_point(%4) {act_bits = 8}", "f32", "f32", "i32"
        ),
        id="zero point",
    ),
    pytest.param(linear("{act_bits = 8}", w="tensor<4x8xf32>"), id="integers times floats"),
    pytest.param(linear("", x="tensor<?x8xf16>", w="tensor<4x8xf16>", y="f16"), id="f16"),
]


@pytest.mark.parametrize("text", SELECTED)
def test_selected(run_passes: RunPasses, text: str) -> None:
    text = run_passes(text, "select-kernels")
    assert "kernel.matmul" in text
    assert "mico.bitlinear" not in text


@pytest.mark.parametrize("text", LEFT)
def test_left_as_it_is(run_passes: RunPasses, text: str) -> None:
    assert run_passes(text, "select-kernels") == run_passes(text, "canonicalize")


def test_dilated_pooling_and_pooling_of_accumulators_are_left(run_passes: RunPasses) -> None:
    image, sums = "tensor<1x2x8x8xf32>", "tensor<1x2x8x8xi32>"
    text = run_passes(
        f"func.func @main(%x: {image}, %u: {sums}) {{\n"
        f"  %0 = mico.maxpool2d(%x) {{kernel_size = [2, 2], dilation = [2, 2]}}"
        f" : ({image}) -> tensor<1x2x3x3xf32>\n"
        f"  %1 = mico.maxpool2d(%u) {{kernel_size = [2, 2]}}"
        f" : ({sums}) -> tensor<1x2x4x4xi32>\n"
        "  func.return\n}",
        "select-kernels",
    )
    assert text.count("mico.maxpool2d") == 2


def test_largest_of_few_bit_integers(run_passes: RunPasses) -> None:
    few, pooled = "tensor<1x2x8x8x!mico.int<4>>", "tensor<1x2x4x4x!mico.int<4>>"
    text = (
        f"func.func @main(%u: {few}) -> {pooled} {{\n"
        f"  %0 = mico.maxpool2d(%u) {{kernel_size = [2, 2]}} : ({few}) -> {pooled}\n"
        f"  func.return %0 : {pooled}\n}}"
    )
    after = run_passes(text, "select-kernels")
    assert "kernel.pool2d" in after
    u = np.random.default_rng(0).integers(-8, 8, (1, 2, 8, 8)).astype(np.int8)
    (made,), (right,) = (interpret(parse_module(t), u) for t in (after, text))
    np.testing.assert_array_equal(made, right)


@pytest.mark.parametrize(
    ("attributes", "result", "kept"),
    [
        ('bits = 8, mode = "mean"', "tensor<?x8x!mico.int<8>>", True),
        ("bits = 8", "tensor<?x8x!mico.int<8>>", False),
        ('bits = 2, mode = "mean"', "tensor<?x8x!mico.int<2>>", False),
        ("bits = 1", "tensor<?x8x!mico.int<1>>", False),
        ("bits = !mico.ternary", "tensor<?x8x!mico.ternary>", False),
    ],
)
def test_quantization_of_activations(
    run_passes: RunPasses, attributes: str, result: str, kept: bool
) -> None:
    text = run_passes(
        f"func.func @main(%x: {X}) -> {result} {{\n"
        f"  %u, %s = mico.activation_quant(%x) {{{attributes}}} : ({X}) -> ({result}, tensor<?xf32>)"
        f"\n  func.return %u : {result}\n}}",
        "select-kernels",
    )
    assert ("mico.activation_quant" in text) == kept
    assert ("kernel.quantize_rows" in text) != kept


def test_depthwise_and_one_dimension() -> None:
    x, w = "tensor<?x6x20xf32>", "tensor<6x1x5xf32>"
    module = parse_module(
        f"func.func @main(%x: {x}, %w: {w}) -> tensor<?x6x10xf32> {{\n"
        f"  %y = mico.bitconv1d(%x, %w) {{stride = [2], padding = [1, 2], groups = 6}}"
        f" : ({x}, {w}) -> tensor<?x6x10xf32>\n"
        "  func.return %y : tensor<?x6x10xf32>\n}"
    )
    SelectKernels().apply(context(), module)
    (op,) = (op for op in module.walk() if isinstance(op, kernel.Conv2dOp))
    assert mico.shape_of(op.weight.type) == (6, 1, 1, 5)
    assert op.padding_pairs == ((0, 0), (1, 2))
    assert op.groups.value.data == 6
    assert mico.shape_of(op.result.type)[1:] == (1, 10, 6)


def test_the_layer_s_name_stays_on_all_that_it_becomes() -> None:
    text = linear("weight_scale(%2) {act_bits = 8}", "f32")
    named = text.replace("tensor<?x4xf32>\n  func", 'tensor<?x4xf32> loc("model.fc")\n  func')
    module = parse_module(named)
    SelectKernels().apply(context(), module)
    names = ("kernel.quantize_rows", "kernel.matmul")
    ops = [op for op in module.walk() if op.name in names]
    assert len(ops) == 2
    assert {place_of(op).layer for op in ops} == {"model.fc"}


def test_scales_and_bias_of_integers_go_to_the_kernel() -> None:
    text = linear(
        "weight_scale(%3) act_scale(%4) {act_bits = 8}", "tensor<4xf16>", "tensor<4xf32>", "f32"
    ).replace("(%0, %1)", "(%0, %1, %2)")
    module = parse_module(text)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 8)).astype(np.float32), rng.integers(-8, 8, (4, 8)).astype(np.int8)
    bias, scale = rng.random(4).astype(np.float16), rng.random(4, np.float32)
    inputs = x, w, bias, scale, np.float32(0.02)
    before = interpret(module, *inputs)
    lower(module, "select-kernels")
    (op,) = (op for op in module.walk() if isinstance(op, kernel.MatmulOp))
    assert op.gives_floats
    assert op.bias is not None
    np.testing.assert_array_equal(interpret(module, *inputs)[0], before[0])
