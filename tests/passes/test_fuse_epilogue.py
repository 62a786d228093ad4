from __future__ import annotations

import numpy as np
import pytest

from fewbit.dialects import kernel, mico
from fewbit.interpreter import interpret
from fewbit.ir.locations import place_of
from fewbit.ir.parse import parse_module
from tests.passes.conftest import RunPasses
from tests.passes.lowering import lower

X, W, Y = "tensor<?x8xf32>", "tensor<4x8xf32>", "tensor<?x4xf32>"
MATMUL = f"%p = kernel.matmul(%x, %w) : ({X}, {W}) -> {Y}\n"
RELU = f"%y = mico.relu(%p) : ({Y}) -> {Y}\n"


def function(body: str) -> str:
    arguments = f"%x: {X}, %w: {W}, %r: {Y}, %b: tensor<4xf32>"
    return f"func.func @main({arguments}) -> {Y} {{\n{body}func.return %y : {Y}\n}}"


FUSED = [
    pytest.param(MATMUL + RELU, "{minimum = 0.000000e+00 : f64}", id="relu"),
    pytest.param(
        MATMUL + f"%y = mico.relu6(%p) : ({Y}) -> {Y}\n",
        "{minimum = 0.000000e+00 : f64, maximum = 6.000000e+00 : f64}",
        id="relu6",
    ),
    pytest.param(MATMUL + f"%y = mico.add(%p, %r) : ({Y}, {Y}) -> {Y}\n", "add(%r)", id="add"),
    pytest.param(MATMUL + f"%y = mico.add(%r, %p) : ({Y}, {Y}) -> {Y}\n", "add(%r)", id="add to"),
    pytest.param(
        MATMUL + f"%s = mico.add(%p, %r) : ({Y}, {Y}) -> {Y}\n%y = mico.relu(%s) : ({Y}) -> {Y}\n",
        "add(%r) {minimum = 0.000000e+00 : f64}",
        id="add and relu",
    ),
    pytest.param(
        MATMUL + f"%y = mico.silu(%p) : ({Y}) -> {Y}\n", '{activation = "silu"}', id="silu"
    ),
    pytest.param(
        MATMUL + f"%y = mico.gelu(%p) : ({Y}) -> {Y}\n", '{activation = "gelu"}', id="gelu"
    ),
    pytest.param(
        MATMUL + f'%y = mico.gelu(%p) {{approximate = "tanh"}} : ({Y}) -> {Y}\n',
        '{activation = "gelu_tanh"}',
        id="gelu by tanh",
    ),
    pytest.param(
        MATMUL + f"%s = mico.add(%p, %r) : ({Y}, {Y}) -> {Y}\n"
        f"%t = mico.silu(%s) : ({Y}) -> {Y}\n%y = mico.relu(%t) : ({Y}) -> {Y}\n",
        'add(%r) {activation = "silu", minimum = 0.000000e+00 : f64}',
        id="add, silu and relu",
    ),
]

LEFT = [
    pytest.param(
        MATMUL + RELU.replace("%y", "%q") + f"%y = mico.add(%q, %p) : ({Y}, {Y}) -> {Y}\n",
        "mico.relu",
        id="read twice",
    ),
    pytest.param(
        MATMUL + f"%y = mico.add(%p, %b) : ({Y}, tensor<4xf32>) -> {Y}\n",
        "mico.add",
        id="broadcast",
    ),
    pytest.param(
        MATMUL + RELU.replace("%y", "%q") + f"%y = mico.add(%q, %r) : ({Y}, {Y}) -> {Y}\n",
        "mico.add",
        id="add behind a bound",
    ),
    pytest.param(
        MATMUL + f"%q = mico.gelu(%p) : ({Y}) -> {Y}\n%y = mico.add(%q, %r) : ({Y}, {Y}) -> {Y}\n",
        "mico.add",
        id="add behind an activation",
    ),
    pytest.param(
        MATMUL + f"%q = mico.gelu(%p) : ({Y}) -> {Y}\n%y = mico.silu(%q) : ({Y}) -> {Y}\n",
        "mico.silu",
        id="two activations",
    ),
    pytest.param(
        MATMUL + RELU.replace("%y", "%q") + f"%y = mico.silu(%q) : ({Y}) -> {Y}\n",
        "mico.silu",
        id="an activation behind a bound",
    ),
    pytest.param(MATMUL + f"%y = mico.add(%p, %p) : ({Y}, {Y}) -> {Y}\n", "mico.add", id="twice"),
]


@pytest.mark.parametrize(("body", "written"), FUSED)
def test_fused(run_passes: RunPasses, body: str, written: str) -> None:
    text = run_passes(function(body), "fuse-epilogue")
    assert written in text
    assert "mico." not in text
    assert text.count("kernel.") == 1


@pytest.mark.parametrize(("body", "kept"), LEFT)
def test_left(run_passes: RunPasses, body: str, kept: str) -> None:
    assert kept in run_passes(function(body), "fuse-epilogue")


@pytest.mark.parametrize("body", [p.values[0] for p in (*FUSED, *LEFT)])
def test_results_keep_their_bits(body: object) -> None:
    module = parse_module(function(str(body)))
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=s).astype(np.float32) for s in ((3, 8), (4, 8), (3, 4), (4,))]
    before = interpret(module, *inputs)
    after = interpret(lower(module, "fuse-epilogue"), *inputs)
    np.testing.assert_array_equal(after[0], before[0])


def test_a_reshape_moves_behind() -> None:
    image, row = "tensor<?x1x5x4xf32>", "tensor<?x5x4xf32>"
    module = parse_module(
        f"func.func @main(%x: tensor<?x1x5x3xf32>, %w: tensor<4x3x1x1xf32>, %r: {row}) -> {row} {{\n"
        f"  %p = kernel.conv2d(%x, %w) : (tensor<?x1x5x3xf32>, tensor<4x3x1x1xf32>) -> {image}\n"
        f"  %q = mico.reshape(%p) {{shape = [-1, 5, 4]}} : ({image}) -> {row}\n"
        f"  %s = mico.add(%q, %r) : ({row}, {row}) -> {row}\n"
        f"  %y = mico.relu(%s) : ({row}) -> {row}\n"
        f"  func.return %y : {row}\n}}"
    )
    rng = np.random.default_rng(0)
    shapes = (2, 1, 5, 3), (4, 3, 1, 1), (2, 5, 4)
    inputs = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    before = interpret(module, *inputs)
    lower(module, "fuse-epilogue")
    (op,) = (op for op in module.walk() if isinstance(op, kernel.Conv2dOp))
    assert op.add is not None
    assert op.bounds == (0, None)
    assert not any(isinstance(op, mico.AddOp | mico.ReluOp) for op in module.walk())
    np.testing.assert_array_equal(interpret(module, *inputs)[0], before[0])


def test_the_fused_op_stands_behind_all_that_it_reads() -> None:
    """The residual is computed behind the matmul, so the fused op stands behind both."""
    body = f"{MATMUL}%q = mico.gelu(%r) : ({Y}) -> {Y}\n%y = mico.add(%p, %q) : ({Y}, {Y}) -> {Y}\n"
    named = function(body.replace(f"-> {Y}\n%q", f'-> {Y} loc("head")\n%q'))
    module = lower(parse_module(named), "fuse-epilogue")
    (op,) = (op for op in module.walk() if isinstance(op, kernel.MatmulOp))
    assert op.add is not None
    assert place_of(op).layer == "head"


def test_scaled_sums_of_integers() -> None:
    module = parse_module(
        f"func.func @main(%x: tensor<?x8xi8>, %w: tensor<4x8xi8>, %s: tensor<?xf32>, %t: f32,"
        f" %b: tensor<4xf32>, %r: {Y}) -> {Y} {{\n"
        "  %p = kernel.matmul(%x, %w) x_scale(%s) weight_scale(%t) bias(%b)"
        f" : (tensor<?x8xi8>, tensor<4x8xi8>, tensor<?xf32>, f32, tensor<4xf32>) -> {Y}\n"
        f"  %q = mico.add(%r, %p) : ({Y}, {Y}) -> {Y}\n"
        f"  %y = mico.relu6(%q) : ({Y}) -> {Y}\n  func.return %y : {Y}\n}}"
    )
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((3, 8), (4, 8)))
    s, b, r = (rng.random(shape, np.float32) for shape in ((3,), (4,), (3, 4)))
    inputs = x, w, s, np.float32(0.001), b, r
    before = interpret(module, *inputs)
    lower(module, "fuse-epilogue")
    (op,) = (op for op in module.walk() if op.name.startswith(("kernel.", "mico.")))
    assert isinstance(op, kernel.MatmulOp)
    assert op.x_scale is not None
    assert op.add is not None
    assert op.bounds == (0, 6)
    np.testing.assert_array_equal(interpret(module, *inputs)[0], before[0])


def test_bare_sums_of_integers_are_left(run_passes: RunPasses) -> None:
    x, w, acc = "tensor<2x8xi8>", "tensor<4x8xi8>", "tensor<2x4xi32>"
    text = (
        f"func.func @main(%x: {x}, %w: {w}) -> {acc} {{\n"
        f"  %p = kernel.matmul(%x, %w) : ({x}, {w}) -> {acc}\n"
        f"  %y = mico.relu(%p) : ({acc}) -> {acc}\n  func.return %y : {acc}\n}}"
    )
    assert run_passes(text, "fuse-epilogue") == run_passes(text, "canonicalize")
