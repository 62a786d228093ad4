"""Products, convolutions and gathers with constant weights as layers, in any layout."""

from __future__ import annotations

import numpy as np
import pytest

from fewbit.dialects.mico import BatchNormOp, BitConv2dOp, GetConstantOp
from fewbit.frontends.stablehlo import import_stablehlo
from fewbit.frontends.stablehlo.ops import TensorType
from fewbit.ir.layers import layers
from fewbit.quant.quantize import quantize
from tests.frontends.stablehlo.modules import imported, names

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def constant(name: str, array: np.ndarray) -> str:
    from fewbit.frontends.stablehlo.dense import dense_text

    type = TensorType(array.shape, {"f": "f32", "i": "i32"}[array.dtype.kind])
    return f"{name} = stablehlo.constant {dense_text(array, type)}\n"


DOTS = {
    "matrix": ((3, 4), (4, 5), "contracting_dims = [1] x [0]", "ik,kn->in"),
    "transposed weight": ((3, 4), (5, 4), "contracting_dims = [1] x [1]", "ik,nk->in"),
    "transposed input": ((4, 3), (4, 5), "contracting_dims = [0] x [0]", "ki,kn->in"),
    "heads": ((2, 3, 4), (4, 5, 6), "contracting_dims = [2] x [0]", "bik,knm->binm"),
    "two contracted": ((3, 4, 5), (4, 5, 6), "contracting_dims = [1, 2] x [0, 1]", "ikl,kln->in"),
    "vector": ((4,), (4, 5), "contracting_dims = [0] x [0]", "k,kn->n"),
}


def test_matrices_of_a_stack_are_layers_of_their_own() -> None:
    x, weight = floats(2, 3, 4), floats(2, 4, 5)
    body = constant("%w", weight) + (
        "%0 = stablehlo.dot_general %arg0, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]"
        " : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>"
    )
    program = imported(["2x3x4xf32"], body, "%0 : tensor<2x3x5xf32>")
    assert len(layers(program.module)) == 2
    expected = np.einsum("bik,bkn->bin", x, weight)
    np.testing.assert_allclose(program.run(x)[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("case", DOTS)
def test_products(case: str, side: str) -> None:
    shape, weight_shape, dims, formula = DOTS[case]
    x, weight = floats(*shape), floats(*weight_shape)
    expected = np.einsum(formula, x, weight)
    order = "%arg0, %w"
    if side == "left":
        order, dims = "%w, %arg0", " = ".join([dims[:16], " x ".join(dims[19:].split(" x ")[::-1])])
        formula = ",".join(formula.partition("->")[0].split(",")[::-1])
        rows = [c for c in DOTS[case][3].partition("->")[2] if c in formula.split(",")[1]]
        columns = [c for c in DOTS[case][3].partition("->")[2] if c not in rows]
        expected = np.einsum(f"{formula}->{''.join(columns + rows)}", weight, x)
    types = [TensorType(a.shape, "f32") for a in (x, weight)]
    types = types if side == "right" else types[::-1]
    result = TensorType(expected.shape, "f32")
    body = constant("%w", weight) + (
        f"%0 = stablehlo.dot_general {order}, {dims} : ({types[0]}, {types[1]}) -> {result}"
    )
    program = imported(["x".join(map(str, (*shape, "f32")))], body, f"%0 : {result}")
    assert "bitlinear" in names(program)
    np.testing.assert_allclose(program.run(x)[0], expected, rtol=1e-5, atol=1e-5)


def test_a_bias_of_several_dimensions_is_taken_in() -> None:
    x, weight, bias = floats(2, 4), floats(4, 3, 5), floats(3, 5)
    body = (
        constant("%w", weight)
        + constant("%b", bias)
        + "%0 = stablehlo.dot_general %arg0, %w, contracting_dims = [1] x [0] "
        ": (tensor<2x4xf32>, tensor<4x3x5xf32>) -> tensor<2x3x5xf32>\n"
        "%1 = stablehlo.broadcast_in_dim %b, dims = [1, 2] "
        ": (tensor<3x5xf32>) -> tensor<2x3x5xf32>\n"
        "%2 = stablehlo.add %1, %0 : tensor<2x3x5xf32>"
    )
    program = imported(["2x4xf32"], body, "%2 : tensor<2x3x5xf32>")
    assert names(program) == ["bitlinear", "reshape"]
    expected = np.einsum("ik,knm->inm", x, weight) + bias
    np.testing.assert_allclose(program.run(x)[0], expected, rtol=1e-5, atol=1e-5)


LAYOUTS = {
    "NHWC": ("[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", (0, 2, 3, 1), (2, 3, 1, 0), (0, 2, 3, 1)),
    "NCHW": ("[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", (0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)),
    "mixed": ("[f, 0, b, 1]x[i, 1, o, 0]->[0, b, 1, f]", (1, 2, 0, 3), (1, 3, 0, 2), (2, 0, 3, 1)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_of_any_layout(layout: str, groups: int) -> None:
    import torch

    numbers, x_order, w_order, y_order = LAYOUTS[layout]
    x, weight, bias = floats(2, 4, 7, 6), floats(6, 4 // groups, 3, 2), floats(6)
    padded = torch.nn.functional.pad(torch.tensor(x), (1, 0, 0, 2))
    y = torch.nn.functional.conv2d(
        padded, torch.tensor(weight), torch.tensor(bias), (2, 1), 0, (1, 2), groups
    )
    given, expected = x.transpose(x_order), y.numpy().transpose(y_order)
    data, kernel = (TensorType(a.shape, "f32") for a in (given, weight.transpose(w_order)))
    result = TensorType(expected.shape, "f32")
    body = (
        constant("%w", np.ascontiguousarray(weight.transpose(w_order)))
        + constant("%b", bias)
        + f"%0 = stablehlo.convolution(%arg0, %w) dim_numbers = {numbers}, "
        "window = {stride = [2, 1], pad = [[0, 2], [1, 0]], rhs_dilate = [1, 2]} "
        f"{{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} "
        f": ({data}, {kernel}) -> {result}\n"
        f"%1 = stablehlo.broadcast_in_dim %b, dims = [{y_order.index(1)}] : (tensor<6xf32>) -> {result}\n"
        f"%2 = stablehlo.add %0, %1 : {result}"
    )
    program = imported([str(data)[7:-1]], body, f"%2 : {result}")
    assert [n for n in names(program) if n != "transpose"] == ["bitconv2d"]
    if layout == "NCHW":
        assert "transpose" not in names(program)
    np.testing.assert_allclose(
        program.run(np.ascontiguousarray(given))[0], expected, rtol=1e-5, atol=1e-5
    )


def test_a_table_is_an_embedding() -> None:
    table = floats(7, 3)
    body = constant("%t", table) + (
        '%0 = "stablehlo.gather"(%t, %arg0) <{dimension_numbers = #stablehlo.gather<offset_dims = '
        "[1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
        "slice_sizes = array<i64: 1, 3>, indices_are_sorted = false}> "
        ": (tensor<7x3xf32>, tensor<4x1xi32>) -> tensor<4x3xf32>"
    )
    program = imported(["4x1xi32"], body, "%0 : tensor<4x3xf32>")
    assert "embedding" in names(program)
    ids = np.array([[1], [6], [99], [-5]], np.int32)
    assert (program.run(ids)[0] == table[[1, 6, 6, 0]]).all()
    quantize(program, "w4a8").verify()


def norm_module(batch_norm: str) -> bytes:
    vector, image = "tensor<4xf32>", "tensor<1x5x5x4xf32>"
    arguments = ", ".join(f"%{n}: {vector}" for n in ("gamma", "beta", "mean", "var"))
    return f"""
    func.func public @main(%x: tensor<1x5x5x2xf32>, %w: tensor<1x1x2x4xf32>, {arguments}) -> {image} {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{stride = [1, 1]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<1x5x5x2xf32>, tensor<1x1x2x4xf32>) -> {image}
      %e = stablehlo.constant dense<1.0e-3> : {vector}
      %1 = stablehlo.add %var, %e : {vector}
      %2 = stablehlo.rsqrt %1 : {vector}
      {batch_norm}
      return %y : {image}
    }}""".encode()


def spread(name: str, vector: str) -> str:
    return (
        f"{name} = stablehlo.broadcast_in_dim {vector}, dims = [3] "
        ": (tensor<4xf32>) -> tensor<1x5x5x4xf32>\n"
    )


IMAGE = "tensor<1x5x5x4xf32>"
NORMS = {
    "as JAX writes it": spread("%m", "%mean") + f"%3 = stablehlo.subtract %0, %m : {IMAGE}\n"
    + spread("%r", "%2") + f"%4 = stablehlo.multiply %3, %r : {IMAGE}\n"
    + spread("%g", "%gamma") + f"%5 = stablehlo.multiply %4, %g : {IMAGE}\n"
    + spread("%b", "%beta") + f"%y = stablehlo.add %5, %b : {IMAGE}\n",
    "as Keras writes it": "%3 = stablehlo.multiply %2, %gamma : tensor<4xf32>\n"
    "%4 = stablehlo.multiply %mean, %3 : tensor<4xf32>\n"
    "%5 = stablehlo.subtract %beta, %4 : tensor<4xf32>\n"
    + spread("%f", "%3") + f"%6 = stablehlo.multiply %0, %f : {IMAGE}\n"
    + spread("%o", "%5") + f"%y = stablehlo.add %6, %o : {IMAGE}\n",
    "as TensorFlow writes it": '%y = "stablehlo.batch_norm_inference"(%0, %gamma, %beta, %mean, %var)'
    " <{epsilon = 1.0e-3 : f32, feature_index = 3 : i64}> : "
    f"({IMAGE}{', tensor<4xf32>' * 4}) -> {IMAGE}",
}  # fmt: skip


@pytest.mark.parametrize("way", NORMS)
def test_batch_norms_are_recognized_by_what_they_compute(way: str) -> None:
    gamma, beta, mean = floats(4), floats(4), floats(4)
    var = RNG.random(4).astype(np.float32) + 0.1
    arrays = {
        "conv/kernel": floats(1, 1, 2, 4),
        "n/gamma": gamma,
        "n/beta": beta,
        "n/mean": mean,
        "n/var": var,
    }
    weights = {i + 1: item for i, item in enumerate(arrays.items())}
    program = import_stablehlo(norm_module(NORMS[way]), weights)
    (norm,) = (op for op in program.module.walk() if isinstance(op, BatchNormOp))
    owners = [value.owner for value in norm.operands[1:]]
    read = [o.symbol.root_reference.data for o in owners if isinstance(o, GetConstantOp)]
    assert read == ["n.gamma", "n.beta", "n.mean", "n.var"]
    assert norm.eps.value.data == 1e-3
    assert isinstance(norm.operands[0].owner, BitConv2dOp)
    x = floats(1, 5, 5, 2)
    y = x @ arrays["conv/kernel"][0, 0]
    expected = (y - mean) / np.sqrt(var + 1e-3) * gamma + beta
    np.testing.assert_allclose(program.run(x)[0], expected, rtol=1e-5, atol=1e-5)
    assert list(layers(program.module)) == ["conv"]


def test_arithmetic_that_is_no_batch_norm_is_kept_as_factor_and_offset() -> None:
    body = (
        spread("%g", "%gamma")
        + f"%3 = stablehlo.divide %0, %g : {IMAGE}\n"
        + (spread("%b", "%beta") + f"%y = stablehlo.subtract %b, %3 : {IMAGE}\n")
    )
    gamma, beta, kernel = floats(4), floats(4), floats(1, 1, 2, 4)
    given = [kernel, gamma, beta, floats(4), floats(4) ** 2]
    weights = {i + 1: (f"w{i}", array) for i, array in enumerate(given)}
    program = import_stablehlo(norm_module(body), weights)
    x = floats(1, 5, 5, 2)
    expected = beta - x @ kernel[0, 0] / gamma
    np.testing.assert_allclose(program.run(x)[0], expected, rtol=1e-5, atol=1e-5)


def test_a_result_that_is_used_twice_keeps_its_bias_outside() -> None:
    x, weight, bias = floats(2, 4), floats(4, 5), floats(5)
    body = (
        constant("%w", weight)
        + constant("%b", bias)
        + "%0 = stablehlo.dot_general %arg0, %w, contracting_dims = [1] x [0] "
        ": (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>\n"
        "%1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<5xf32>) -> tensor<2x5xf32>\n"
        "%2 = stablehlo.add %0, %1 : tensor<2x5xf32>\n"
        "%3 = stablehlo.multiply %0, %2 : tensor<2x5xf32>"
    )
    program = imported(["2x4xf32"], body, "%3 : tensor<2x5xf32>")
    assert names(program).count("bitlinear") == 1
    y = x @ weight
    np.testing.assert_allclose(program.run(x)[0], y * (y + bias), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_zeros_around_an_image_are_padding(layout: str) -> None:
    import torch

    numbers, x_order, w_order, _ = LAYOUTS[layout]
    x, weight = floats(1, 2, 5, 5), floats(3, 2, 3, 3)
    low, high = (np.array([0, 0, *side])[list(x_order)] for side in ((1, 0), (2, 1)))
    padded = torch.nn.functional.pad(torch.tensor(x), (0, 1, 1, 2))
    y = torch.nn.functional.conv2d(padded, torch.tensor(weight)).numpy().transpose(x_order)
    data, kernel, result = (
        TensorType(a.shape, "f32") for a in (x.transpose(x_order), weight.transpose(w_order), y)
    )
    wide = TensorType(padded.numpy().transpose(x_order).shape, "f32")
    body = (
        constant("%w", np.ascontiguousarray(weight.transpose(w_order)))
        + "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"%0 = stablehlo.pad %arg0, %z, low = {low.tolist()}, high = {high.tolist()}, "
        f"interior = [0, 0, 0, 0] : ({data}, tensor<f32>) -> {wide}\n"
        f"%1 = stablehlo.convolution(%0, %w) dim_numbers = {numbers}, window = {{stride = [1, 1]}} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
        f": ({wide}, {kernel}) -> {result}\n"
    )
    program = imported([str(data)[7:-1]], body, f"%1, %0 : {result}, {wide}")
    (conv,) = (op for op in program.module.walk() if isinstance(op, BitConv2dOp))
    assert conv.padding_pairs == ((1, 2), (0, 1))
    given = np.ascontiguousarray(x.transpose(x_order))
    first, second = program.run(given)
    np.testing.assert_allclose(first, y, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(second, padded.numpy().transpose(x_order))
