"""The kernel dialect: its text, and what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType, f32, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue

from fewbit.dialects import kernel, mico
from fewbit.dialects.kernel import Kernel
from fewbit.dialects.mico.constraints import width_attr
from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.errors import VerifyError
from fewbit.ir.parse import parse_module
from fewbit.ir.verify import verify
from fewbit.numerics.approximations.activations import ACTIVATIONS
from tests.dialects.programs import Draw, Make, Values, extents, functions, widths
from tests.dialects.test_round_trip import check, relaxed

bounds = st.sampled_from([(None, None), (0.0, None), (None, 6.0), (0.0, 6.0), (-1.0, -1.0)])


def factors(draw: Draw) -> tuple[Attribute, Attribute]:
    if draw(st.booleans()):
        return f32, f32
    few = st.one_of(st.just(i8), widths.map(mico.few_bit_type))
    return draw(few), draw(few)


def contraction(
    draw: Draw,
    values: Values,
    op: type[kernel.ContractionOp],
    x: list[int],
    w: list[int],
    **named: object,
) -> Operation:
    left, right = factors(draw)
    operands = values.tensor(left, x), values.tensor(right, w)
    parts = dict(named)
    bare = op.of(*operands, **parts)  # pyright: ignore[reportArgumentType]
    if left != f32:
        if draw(st.booleans()):
            bare.erase()
            return sums(draw, values, op, operands, w, bare, **parts)
        rows = bare.rows_shape(tuple(x))
        leading = draw(st.integers(0, len(rows)))
        parts["x_scale"] = values.tensor(f32, rows[:leading])
        shapes = [None, [], w[:1]]
        if op is kernel.MatmulOp:
            shapes += [[w[0], groups] for groups in range(1, w[1] + 1) if w[1] % groups == 0]
        shape = draw(st.sampled_from(shapes))
        parts["weight_scale"] = values(f32) if shape is None else values.tensor(f32, shape)
    parts["minimum"], parts["maximum"] = draw(bounds)
    parts["activation"] = draw(st.sampled_from([None, *ACTIVATIONS]))
    if draw(st.booleans()):
        parts["bias"] = values.tensor(f32, w[:1])
    if draw(st.booleans()):
        parts["add"] = values.tensor(f32, mico.shape_of(bare.result.type))
    bare.erase()
    return op.of(*operands, **parts)  # pyright: ignore[reportArgumentType]


def sums(
    draw: Draw,
    values: Values,
    op: type[kernel.ContractionOp],
    operands: tuple[SSAValue, SSAValue],
    w: list[int],
    bare: kernel.ContractionOp,
    **parts: object,
) -> Operation:
    """Draw an integer contraction, perhaps with a bias and a multiplier."""
    types: list[Attribute] = [bare.result.type]
    if draw(st.booleans()):
        parts["bias"] = values.tensor(i32, w[:1])
    if draw(st.booleans()):
        shape = draw(st.sampled_from([None, [], w[:1]]))
        parts["multiplier"] = values(f32) if shape is None else values.tensor(f32, shape)
        low, high = draw(st.sampled_from([(None, None), (0.0, None), (-1.0, 1.0)]))
        parts["minimum"], parts["maximum"] = low, high
        width = draw(widths.filter(lambda width: not width.is_binary))
        types.append(TensorType(mico.few_bit_type(width), mico.shape_of(bare.result.type)))
    return op.of(*operands, result_types=types, **parts)  # pyright: ignore[reportArgumentType]


def matmul(draw: Draw, values: Values) -> Operation:
    n, k = draw(extents), draw(extents)
    rows = draw(st.lists(st.one_of(extents, st.just(DYNAMIC)), max_size=2))
    return contraction(draw, values, kernel.MatmulOp, [*rows, k], [n, k])


def conv2d(draw: Draw, values: Values) -> Operation:
    groups, per_group = draw(extents), draw(extents)
    window, stride, dilation = ([draw(st.integers(1, 2)) for _ in range(2)] for _ in range(3))
    spatial = [draw(st.one_of(st.just(DYNAMIC), st.integers(3, 8))) for _ in range(2)]
    x = [draw(st.one_of(st.just(DYNAMIC), extents)), *spatial, groups * per_group]
    weight = [groups * draw(st.integers(1, 2)), per_group, *window]
    padding = [draw(st.integers(0, 2)) for _ in range(4)]
    attributes = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return contraction(draw, values, kernel.Conv2dOp, x, weight, **attributes)


def pool2d(draw: Draw, values: Values) -> Operation:
    x = values.tensor(f32, [draw(extents), draw(st.integers(3, 8)), DYNAMIC, draw(extents)])
    return kernel.Pool2dOp.of(
        x,
        kind=draw(st.sampled_from(kernel.KINDS)),
        kernel_size=[2, 3],
        padding=[draw(st.integers(0, 1)) for _ in range(4)],
        ceil_mode=draw(st.booleans()),
        count_include_pad=draw(st.booleans()),
    )


def quantize_rows(draw: Draw, values: Values) -> Operation:
    shape = draw(st.lists(st.one_of(extents, st.just(DYNAMIC)), min_size=1, max_size=3))
    return kernel.QuantizeRowsOp.of(
        values.tensor(f32, shape),
        bits=width_attr(draw(widths)),
        granularity=draw(st.sampled_from(kernel.GRANULARITIES)),
    )


OPS: dict[str, Make] = {
    "kernel.matmul": matmul,
    "kernel.conv2d": conv2d,
    "kernel.pool2d": pool2d,
    "kernel.quantize_rows": quantize_rows,
}


def test_every_op_is_made() -> None:
    assert {op.name for op in Kernel.operations} == set(OPS)


@pytest.mark.parametrize("kind", OPS)
@relaxed
@given(data=st.data())
def test_text_to_ir_to_text(kind: str, data: st.DataObject) -> None:
    check(ModuleOp([data.draw(functions("f", OPS[kind]))]))


def test_widths_that_no_kernel_quantizes_to() -> None:
    module = parse_module(
        f"func.func @f(%x: {X}) {{\n"
        f"  %u, %s = kernel.quantize_rows(%x) {{bits = 9}}"
        f" : ({X}) -> (tensor<2x8x!mico.int<8>>, tensor<2xf32>)\n"
        "  func.return\n}"
    )
    with pytest.raises(VerifyError, match="1 to 8 bits"):
        verify(module)


def test_padding_for_both_sides_and_defaults() -> None:
    module = parse_module(
        "func.func @f(%x: tensor<1x4x4x2xf32>, %w: tensor<3x2x3x3xf32>) {\n"
        "  %y = kernel.conv2d(%x, %w) {padding = [1, 2]}"
        " : (tensor<1x4x4x2xf32>, tensor<3x2x3x3xf32>) -> tensor<1x4x6x3xf32>\n"
        "  func.return\n}"
    )
    (op,) = (op for op in module.walk() if isinstance(op, kernel.Conv2dOp))
    assert op.padding_pairs == ((1, 1), (2, 2))
    assert op.groups.value.data == 1


X, W, I8 = "tensor<2x8xf32>", "tensor<4x8xf32>", "tensor<2x8xi8>"
W4 = "tensor<4x8x!mico.int<4>>"
IMAGE, POOLED = "tensor<1x4x4x6xf32>", "tensor<1x2x2x6xf32>"


@pytest.mark.parametrize(
    ("op", "types", "result", "message"),
    [
        ("matmul(%0, %1)", (X, W4), "tensor<2x4xf32>", "floats by floats or integers by integers"),
        ("matmul(%0, %1)", (X, W), "tensor<2x5xf32>", "the result has the shape 2x5"),
        ("matmul(%0, %1)", (X, W), "tensor<2x4xi32>", "the result is tensor<2x4xi32>"),
        ("matmul(%0, %1)", (X, "tensor<4x9xf32>"), "tensor<2x4xf32>", "a row of the input"),
        ("matmul(%0, %1)", (X, "tensor<8xf32>"), "tensor<2x4xf32>", "a weight of N x K"),
        (
            "matmul(%0, %1) x_scale(%2) weight_scale(%3)",
            (I8, W4, "tensor<2xf32>", "tensor<4x3xf32>"),
            "tensor<2x4xf32>",
            "3 groups do not divide a row of 8",
        ),
        (
            "conv2d(%0, %1) x_scale(%2) weight_scale(%3)",
            ("tensor<1x4x4x6xi8>", "tensor<4x6x1x1xi8>", "f32", "tensor<4x2xf32>"),
            "tensor<1x4x4x4xf32>",
            "the weight's scale",
        ),
        (
            "matmul(%0, %1) bias(%2)",
            (X, W, "tensor<5xf32>"),
            "tensor<2x4xf32>",
            "the bias has the shape 5",
        ),
        (
            "matmul(%0, %1) add(%2)",
            (X, W, "tensor<4xf32>"),
            "tensor<2x4xf32>",
            "what is added has the shape 4",
        ),
        (
            "matmul(%0, %1) {minimum = 6.0, maximum = 0.0}",
            (X, W),
            "tensor<2x4xf32>",
            "is above maximum",
        ),
        (
            'matmul(%0, %1) {activation = "relu"}',
            (X, W),
            "tensor<2x4xf32>",
            "activation",
        ),
        (
            'matmul(%0, %1) {activation = "gelu"}',
            (I8, W4),
            "tensor<2x4xi32>",
            "an activation is of floats",
        ),
        (
            "matmul(%0, %1) {minimum = 0.0}",
            (I8, W4),
            "tensor<2x4xi32>",
            "bare sums of integers have no add",
        ),
        (
            "matmul(%0, %1) x_scale(%2) weight_scale(%3)",
            (X, W, "f32", "f32"),
            "tensor<2x4xf32>",
            "floats have no x_scale",
        ),
        (
            "matmul(%0, %1) weight_scale(%2)",
            (I8, W4, "f32"),
            "tensor<2x4xi32>",
            "both x_scale and weight_scale, or neither",
        ),
        (
            "matmul(%0, %1) x_scale(%2) weight_scale(%3)",
            (I8, W4, "f32", "f32"),
            "tensor<2x4xi32>",
            "the result is tensor<2x4xi32>, expected tensor<2x4xf32>",
        ),
        (
            "matmul(%0, %1) x_scale(%2) weight_scale(%3)",
            (I8, W4, "tensor<2x8xf32>", "f32"),
            "tensor<2x4xf32>",
            "the input's scale has the shape 2x8, expected 2",
        ),
        (
            "matmul(%0, %1) x_scale(%2) weight_scale(%3)",
            (I8, W4, "f32", "tensor<3x2xf32>"),
            "tensor<2x4xf32>",
            "the weight's scale has the shape 3, expected 4",
        ),
        (
            "conv2d(%0, %1) x_scale(%2) weight_scale(%3)",
            ("tensor<1x4x4x6xi8>", "tensor<3x6x1x1xi8>", "tensor<1x4xf32>", "f32"),
            "tensor<1x4x4x3xf32>",
            "the input's scale has the shape 1x4, expected 1",
        ),
        (
            "matmul(%0, %1) bias(%2)",
            (I8, W4, "tensor<4xf32>"),
            "tensor<2x4xi32>",
            "such a contraction has a bias of i32",
        ),
        (
            "matmul(%0, %1) bias(%2)",
            (X, W, "tensor<4xi32>"),
            "tensor<2x4xf32>",
            "such a contraction has a bias of f32",
        ),
        (
            "matmul(%0, %1)",
            ("tensor<1x200000xi8>", "tensor<1x200000xi8>"),
            "tensor<1x1xi32>",
            "overflow",
        ),
        (
            "conv2d(%0, %1)",
            (IMAGE, "tensor<3x5x3x3xf32>"),
            POOLED,
            "the input has 6 channels, the weight takes 1 groups of 5",
        ),
        ("conv2d(%0, %1)", (IMAGE, W), POOLED, "O x C/groups x kh x kw"),
        (
            "conv2d(%0, %1) {groups = 2}",
            (IMAGE, "tensor<3x3x3x3xf32>"),
            POOLED,
            "2 groups do not divide 3 output channels",
        ),
        ('pool2d(%0) {kind = "least", kernel_size = [2, 2]}', (IMAGE,), POOLED, '"max", "average"'),
        ('pool2d(%0) {kind = "max", kernel_size = [2, 2]}', (X,), POOLED, "pools N x H x W x C"),
        (
            'pool2d(%0) {kind = "max", kernel_size = [2, 2], padding = [2, 2]}',
            (IMAGE,),
            "tensor<1x4x4x6xf32>",
            "at most half",
        ),
    ],
)
def test_refused(op: str, types: tuple[str, ...], result: str, message: str) -> None:
    arguments = ", ".join(f"%{i} : {type}" for i, type in enumerate(types))
    text = f"%y = kernel.{op} : ({', '.join(types)}) -> {result}"
    module = parse_module(f"func.func @f({arguments}) {{\n{text}\nfunc.return\n}}")
    with pytest.raises(VerifyError, match=message) as caught:
        verify(module)
    assert caught.value.place is not None
    assert caught.value.place.line == 2


def multiplied(
    op: str, types: tuple[str, ...], few: str = "!mico.int<4>", sums: str = "i32"
) -> str:
    arguments = ", ".join(f"%{i} : {type}" for i, type in enumerate(types))
    results = f"(tensor<2x4x{sums}>, tensor<2x4x{few}>)"
    text = f"%y, %q = kernel.{op} : ({', '.join(types)}) -> {results}"
    return f"func.func @f({arguments}) {{\n{text}\nfunc.return\n}}"


TIMES = "matmul(%0, %1) multiplier(%2)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (multiplied(TIMES, (I8, W4, "tensor<3xf32>")), "the multiplier has the shape 3"),
        (multiplied(TIMES, (I8, W4, "f32"), "!mico.int<1>"), "of more than one bit"),
        (multiplied(TIMES, (I8, W4, "f32"), sums="f32"), "the result is tensor<2x4xf32>"),
        (multiplied(TIMES, (X, W, "f32"), sums="f32"), "a multiplier is for sums of integers"),
        (multiplied(f"{TIMES} {{maximum = 8.0}}", (I8, W4, "f32")), "8.0 is not an integer of 4"),
        (multiplied(f"{TIMES} {{minimum = 0.5}}", (I8, W4, "f32")), "0.5 is not an integer of 4"),
        (multiplied("matmul(%0, %1)", (I8, W4)), "has 2 results, expected 1"),
    ],
)
def test_refused_multipliers(text: str, message: str) -> None:
    with pytest.raises(VerifyError, match=message):
        verify(parse_module(text))
