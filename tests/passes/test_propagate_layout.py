from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg

from fewbit.dialects import mico
from fewbit.dialects.traits import Elementwise, MovesData
from fewbit.interpreter import interpret
from fewbit.ir.locations import place_of
from fewbit.ir.parse import parse_module
from fewbit.passes.kernel.propagate_layout import PropagateLayout
from tests.dialects.programs import OPS, functions, with_property
from tests.dialects.test_kernel import OPS as KERNELS
from tests.passes.conftest import RunPasses
from tests.passes.lowering import RANDOM, assert_same, context, inputs_for, lower

ANY_LAYOUT = [
    *with_property(Elementwise),
    *with_property(MovesData),
    "mico.batch_norm",
    "mico.activation_quant",
    "mico.quantize",
    "mico.dequantize",
    "mico.requantize",
    "mico.softmax",
    "kernel.quantize_rows",
]


def transpose_arguments(function: func.FuncOp) -> None:
    """Make the arguments of rank 3 and more channels-last, and transpose them first."""
    block = function.body.block
    for argument in list(block.args):
        shape = mico.shape_of(argument.type)
        if len(shape) < 3:
            continue
        element = mico.element_type(argument.type)
        transposed = TensorType(element, (shape[0], *shape[2:], shape[1]))
        given = block.insert_arg(transposed, argument.index)
        order = (0, len(shape) - 1, *range(1, len(shape) - 1))
        op = mico.TransposeOp.of(given, permutation=order, result_types=[argument.type])
        first = block.first_op
        assert first is not None
        block.insert_op_before(op, first)
        argument.replace_all_uses_with(op.result)
        block.erase_arg(argument)
    outputs = function.function_type.outputs.data
    types = [argument.type for argument in block.args]
    function.properties["function_type"] = FunctionType.from_lists(types, outputs)


@pytest.mark.parametrize("kind", ANY_LAYOUT)
@RANDOM
@given(data=st.data())
def test_what_is_computed_stays(kind: str, data: st.DataObject) -> None:
    function = data.draw(functions("main", (OPS | KERNELS)[kind]))
    assume(any(len(mico.shape_of(a.type)) > 2 for a in function.args))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    inputs = [np.moveaxis(x, 1, -1) if x.ndim > 2 else x for x in inputs_for(function, rng)]
    transpose_arguments(function)
    module = ModuleOp([function])
    before = interpret(module, *inputs)
    after = interpret(lower(module, "propagate-layout"), *inputs)
    for old, new in zip(before, after, strict=True):
        assert_same(new, old)


T, U = "tensor<?x4x6x3xf32>", "tensor<?x3x4x6xf32>"
DOWN = f"%0 = mico.transpose(%x) {{permutation = [0, 3, 1, 2]}} : ({T}) -> {U}\n"
UP = f"%2 = mico.transpose(%1) {{permutation = [0, 2, 3, 1]}} : ({U}) -> {T}\n"


def between(op: str, *arguments: str) -> str:
    """Return %1, an op on %0, between a transpose and its inverse."""
    given = ", ".join((f"%x: {T}", *arguments))
    return f"func.func @main({given}) -> {T} {{\n{DOWN}{op}\n{UP}func.return %2 : {T}\n}}"


GENERIC = f"""
    %n = arith.constant 0 : index
    %d = tensor.dim %0, %n : {U}
    %e = tensor.empty(%d) : {U}
    %1 = linalg.generic {{
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a)>,
                       affine_map<(a, b, c, d) -> (b)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]
    }} ins(%0, %s, %c : {U}, tensor<?xf32>, tensor<3xf32>) outs(%e : {U}) {{
    ^bb0(%p: f32, %q: f32, %r: f32, %o: f32):
      %f = arith.mulf %p, %q : f32
      %g = arith.addf %f, %r : f32
      linalg.yield %g : f32
    }} -> {U}"""

CANCELLED = [
    pytest.param(between(f"%1 = mico.gelu(%0) : ({U}) -> {U}"), id="unary"),
    pytest.param(between(f"%1 = mico.add(%0, %0) : ({U}, {U}) -> {U}"), id="binary"),
    pytest.param(
        between(
            f"%1 = mico.mul(%0, %c) : ({U}, tensor<3x1x1xf32>) -> {U}", "%c: tensor<3x1x1xf32>"
        ),
        id="channels",
    ),
    pytest.param(
        between(f"%1 = mico.mul(%c, %0) : (tensor<f32>, {U}) -> {U}", "%c: tensor<f32>"),
        id="scalar",
    ),
    pytest.param(
        between(
            f"%1 = mico.batch_norm(%0, %c, %c, %c, %c) : ({U}{', tensor<3xf32>' * 4}) -> {U}",
            "%c: tensor<3xf32>",
        ),
        id="batch norm",
    ),
    pytest.param(between(GENERIC, "%s: tensor<?xf32>", "%c: tensor<3xf32>"), id="loops"),
    pytest.param(
        between(
            f"%d = mico.reshape(%0) {{shape = [-1, 3, 24]}} : ({U}) -> tensor<?x3x24xf32>\n"
            f"%e = mico.relu(%d) : (tensor<?x3x24xf32>) -> tensor<?x3x24xf32>\n"
            f"%1 = mico.reshape(%e) {{shape = [-1, 3, 4, 6]}} : (tensor<?x3x24xf32>) -> {U}"
        ),
        id="image as a row and back",
    ),
]


@pytest.mark.parametrize("text", CANCELLED)
def test_pairs_cancel(run_passes: RunPasses, text: str) -> None:
    assert "mico.transpose" not in run_passes(text, "propagate-layout")
    module = parse_module(text)
    rng = np.random.default_rng(0)
    inputs = [
        rng.random([2 if size < 0 else size for size in mico.shape_of(type)], np.float32)
        for type in next(
            op for op in module.walk() if isinstance(op, func.FuncOp)
        ).function_type.inputs
    ]
    before = interpret(module, *inputs)
    after = interpret(lower(module, "propagate-layout"), *inputs)
    np.testing.assert_array_equal(after[0], before[0])


def test_an_operand_that_is_not_transposed_gets_the_inverse(run_passes: RunPasses) -> None:
    text = run_passes(
        between(f"%1 = mico.add(%0, %r) : ({U}, {U}) -> {U}", f"%r: {U}"), "propagate-layout"
    )
    assert text.count("mico.transpose(%r)") == text.count("mico.transpose(") == 1


def test_concat_joins_the_same_dimension() -> None:
    joined, back = "tensor<?x6x4x6xf32>", "tensor<?x4x6x6xf32>"
    module = parse_module(
        f"func.func @main(%x: {T}) -> {back} {{\n{DOWN}"
        f"  %1 = mico.concat(%0, %0) {{dim = 1}} : ({U}, {U}) -> {joined}\n"
        f"  %2 = mico.transpose(%1) {{permutation = [0, 2, 3, 1]}} : ({joined}) -> {back}\n"
        f"  func.return %2 : {back}\n}}"
    )
    lower(module, "propagate-layout")
    (op,) = (op for op in module.walk() if isinstance(op, mico.ConcatOp))
    assert op.dim.value.data == 3
    assert not any(isinstance(op, mico.TransposeOp) for op in module.walk())


def test_a_mean_reads_the_image_as_it_lies() -> None:
    row = "tensor<2x3xf32>"
    x, u = T.replace("?", "2"), U.replace("?", "2")
    module = parse_module(
        f"func.func @main(%x: {x}) -> {row} {{\n"
        f"  %0 = mico.transpose(%x) {{permutation = [0, 3, 1, 2]}} : ({x}) -> {u}\n"
        f"  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {row}\n"
        f"  %f = linalg.fill ins(%z : f32) outs(%e : {row}) -> {row}\n"
        "  %1 = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>,"
        " affine_map<(a, b, c, d) -> (a, b)>],"
        ' iterator_types = ["parallel", "parallel", "reduction", "reduction"]}'
        f" ins(%0 : {u}) outs(%f : {row}) {{\n"
        "  ^bb0(%p: f32, %q: f32):\n    %s = arith.addf %p, %q : f32\n    linalg.yield %s : f32\n"
        f"  }} -> {row}\n  func.return %1 : {row}\n}}"
    )
    x = np.random.default_rng(0).random((2, 4, 6, 3), np.float32)
    lower(module, "propagate-layout")
    (op,) = (op for op in module.walk() if isinstance(op, linalg.GenericOp))
    assert [kind.data.value for kind in op.iterator_types] == [
        "parallel",
        "reduction",
        "reduction",
        "parallel",
    ]
    np.testing.assert_allclose(interpret(module, x)[0], x.sum(axis=(1, 2)), rtol=1e-5)


def test_loops_that_count_are_left(run_passes: RunPasses) -> None:
    op = GENERIC.replace("%f = arith.mulf", "%i = linalg.index 1 : index\n%f = arith.mulf")
    text = run_passes(between(op, "%s: tensor<?xf32>", "%c: tensor<3xf32>"), "propagate-layout")
    assert text.count("mico.transpose") == 2


def test_flattened_images_keep_their_transpose(run_passes: RunPasses) -> None:
    flat = "tensor<?x72xf32>"
    text = run_passes(
        f"func.func @main(%x: {T}) -> {flat} {{\n{DOWN}"
        f"  %1 = mico.flatten(%0) : ({U}) -> {flat}\n  func.return %1 : {flat}\n}}",
        "propagate-layout",
    )
    assert text.count("mico.transpose") == 1


def test_a_single_pixel_is_reshaped(run_passes: RunPasses) -> None:
    x, u, flat = "tensor<?x1x1x5xf32>", "tensor<?x5x1x1xf32>", "tensor<?x5xf32>"
    text = run_passes(
        f"func.func @main(%x: {x}) -> {flat} {{\n"
        f"  %0 = mico.transpose(%x) {{permutation = [0, 3, 1, 2]}} : ({x}) -> {u}\n"
        f"  %1 = mico.flatten(%0) : ({u}) -> {flat}\n  func.return %1 : {flat}\n}}",
        "propagate-layout",
    )
    assert "mico.transpose" not in text
    assert text.count("mico.reshape") == 1


def test_transposes_of_attention_stay(run_passes: RunPasses) -> None:
    x, y = "tensor<2x5x4x3xf32>", "tensor<2x4x5x3xf32>"
    text = (
        f"func.func @main(%x: {x}) -> {y} {{\n"
        f"  %0 = mico.transpose(%x) {{permutation = [0, 2, 1, 3]}} : ({x}) -> {y}\n"
        f"  %1 = mico.silu(%0) : ({y}) -> {y}\n  func.return %1 : {y}\n}}"
    )
    assert run_passes(text, "propagate-layout") == run_passes(text, "canonicalize")


def test_names_stay() -> None:
    named = between(f'%1 = mico.relu(%0) : ({U}) -> {U} loc("stem.act")')
    module = parse_module(named)
    PropagateLayout().apply(context(), module)
    (relu,) = (op for op in module.walk() if isinstance(op, mico.ReluOp))
    assert place_of(relu).layer == "stem.act"
