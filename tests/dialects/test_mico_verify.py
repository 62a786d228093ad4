"""What the verifiers of the mico dialect refuse, and where they say it is."""

from __future__ import annotations

import pytest

from fewbit.errors import ParseError, VerifyError
from fewbit.ir.parse import parse_module
from fewbit.ir.verify import verify

X = "tensor<2x8xf32>"
W4 = "tensor<4x8x!mico.int<4>>"


def function(body: str, *types: str) -> str:
    """Return a function on %0, %1, ... of these types, with `body` at line 2."""
    arguments = ", ".join(f"%{i} : {type}" for i, type in enumerate(types))
    return f"func.func @f({arguments}) {{\n{body}\nfunc.return\n}}"


LAYERS = [
    pytest.param(
        function(
            f"%y = mico.bitlinear(%0, %1) weight_scale(%2) {{weight_bits = 8 : i32}} "
            f": ({X}, {W4}, f32) -> tensor<2x4xf32>",
            X,
            W4,
            "f32",
        ),
        "weight_bits = 8, but the weight is tensor<4x8x!mico.int<4>>",
        id="bits differ from the type",
    ),
    pytest.param(
        function(
            f'%y = "mico.bitlinear"(%0, %1) <{{weight_bits = 4 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>}}> '
            f": ({X}, {W4}) -> tensor<2x4xf32>",
            X,
            W4,
        ),
        "a quantized weight needs its weight_scale",
        id="scale removed",
    ),
    pytest.param(
        function(
            f"%y = mico.bitlinear(%0, %1) weight_scale(%2) {{act_bits = 9 : i32}} "
            f": ({X}, {W4}, f32) -> tensor<2x4xf32>",
            X,
            W4,
            "f32",
        ),
        "act_bits = 9: a width is 1 to 8 bits",
        id="activation width of 9",
    ),
    pytest.param(
        function(
            f"%y = mico.bitlinear(%0, %1) weight_scale(%2) "
            f": ({X}, {W4}, tensor<3xf32>) -> tensor<2x4xf32>",
            X,
            W4,
            "tensor<3xf32>",
        ),
        "3 scales for 4 output channels",
        id="scales of another channel count",
    ),
    pytest.param(
        function(
            f"%y = mico.bitlinear(%0, %1) weight_scale(%2) "
            f": ({X}, {W4}, tensor<4x3xf32>) -> tensor<2x4xf32>",
            X,
            W4,
            "tensor<4x3xf32>",
        ),
        "do not divide 8 elements a channel into groups of one size",
        id="groups that do not divide",
    ),
    pytest.param(
        function(
            f"%y = mico.bitlinear(%0, %1) weight_scale(%2) : ({X}, {W4}, f32) -> tensor<2x5xf32>",
            X,
            W4,
            "f32",
        ),
        "the result has the shape 2x5, expected 2x4",
        id="result shape",
    ),
    pytest.param(
        function(
            "%y = mico.bitlinear(%0, %1) : (tensor<2x7xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>",
            "tensor<2x7xf32>",
            "tensor<4x8xf32>",
        ),
        "the input has 7 features, the weight takes 8",
        id="features differ",
    ),
    pytest.param(
        function(
            f"%y = mico.bitlinear(%0, %1, %2) : ({X}, tensor<4x8xf32>, tensor<8xf32>) "
            "-> tensor<2x4xf32>",
            X,
            "tensor<4x8xf32>",
            "tensor<8xf32>",
        ),
        "the bias has the shape 8, expected 4",
        id="bias shape",
    ),
    pytest.param(
        function(
            f"%y = mico.bitlinear(%0, %1) weight_scale(%2) : ({X}, tensor<4x8xf32>, f32) "
            "-> tensor<2x4xf32>",
            X,
            "tensor<4x8xf32>",
            "f32",
        ),
        "a float weight has no weight_bits, scale or zero point",
        id="scale of a float weight",
    ),
    pytest.param(
        function(
            f"%y = mico.bitlinear(%0, %1) weight_scale(%2) act_scale(%2) : ({X}, {W4}, f32, f32) "
            "-> tensor<2x4xf32>",
            X,
            W4,
            "f32",
        ),
        "activations stay float",
        id="act_scale without act_bits",
    ),
    pytest.param(
        function(
            "%y = mico.bitlinear(%0, %1) weight_scale(%2) {act_bits = 8, act_group = 4 : i32} : "
            f"({X}, {W4}, tensor<4x4xf32>) -> tensor<2x4xf32>",
            X,
            W4,
            "tensor<4x4xf32>",
        ),
        "act_group = 4, but the weight has no such groups",
        id="groups of activations that the weight lacks",
    ),
    pytest.param(
        function(
            "%y = mico.bitlinear(%0, %1) weight_scale(%2) {act_bits = 8 : i32} : "
            "(tensor<1x131072xf32>, tensor<4x131072x!mico.int<8>>, f32) -> tensor<1x4xf32>",
            "tensor<1x131072xf32>",
            "tensor<4x131072x!mico.int<8>>",
            "f32",
        ),
        "131072",
        id="accumulator overflow",
    ),
    pytest.param(
        function(f"%y = mico.bitlinear(%0, %1) : ({X}, {W4}) -> tensor<2x4xi32>", X, W4),
        "accumulators (an i32 result) come of integers times integers",
        id="accumulators of floats",
    ),
    pytest.param(
        function(
            "%y = mico.bitconv2d(%0, %1) {groups = 3} : "
            "(tensor<1x6x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>",
            "tensor<1x6x8x8xf32>",
            "tensor<4x2x3x3xf32>",
        ),
        "3 groups do not divide 4 output channels",
        id="groups and output channels",
    ),
    pytest.param(
        function(
            "%y = mico.bitconv2d(%0, %1) {groups = 2} : "
            "(tensor<1x6x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>",
            "tensor<1x6x8x8xf32>",
            "tensor<4x2x3x3xf32>",
        ),
        "the input has 6 channels, the weight takes 2 groups of 2",
        id="groups and input channels",
    ),
    pytest.param(
        function(
            "%y = mico.bitconv2d(%0, %1) {dilation = [4, 4]} : "
            "(tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>",
            "tensor<1x2x8x8xf32>",
            "tensor<4x2x3x3xf32>",
        ),
        "a window of 9 does not fit into 8",
        id="window too large",
    ),
    pytest.param(
        function(
            "%y = mico.bitconv2d(%0, %1) {stride = [0, 1]} : "
            "(tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>",
            "tensor<1x2x8x8xf32>",
            "tensor<4x2x3x3xf32>",
        ),
        "stride and dilation are at least 1",
        id="stride of 0",
    ),
    pytest.param(
        function(
            "%y = mico.bitconv1d(%0, %1) {padding = [1, 2, 3]} : "
            "(tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>",
            "tensor<1x2x8xf32>",
            "tensor<4x2x3xf32>",
        ),
        "padding has 3 entries, expected 2",
        id="padding entries",
    ),
    pytest.param(
        function(
            "%y = mico.embedding(%0, %1) : (tensor<3xi64>, tensor<8xf32>) -> tensor<3x8xf32>",
            "tensor<3xi64>",
            "tensor<8xf32>",
        ),
        "a table is rows x features",
        id="embedding table",
    ),
]

OTHERS = [
    pytest.param(
        function(
            "%y = mico.quantize(%0, %1) zero_point(%2) : (tensor<4xf32>, f32, i32) -> tensor<4x!mico.int<1>>",
            "tensor<4xf32>",
            "f32",
            "i32",
        ),
        "a zero point needs at least 2 bits, not 1",
        id="zero point of one bit",
    ),
    pytest.param(
        function(
            '%u, %s = mico.weight_quant(%0) {bits = 4, granularity = "channel"} : '
            "(tensor<4x8xf32>) -> (tensor<4x8x!mico.int<4>>, f32)",
            "tensor<4x8xf32>",
        ),
        "has the shape scalar, expected 4",
        id="granularity against the scale",
    ),
    pytest.param(
        function(
            "%u, %s = mico.weight_quant(%0) {bits = 4} : "
            "(tensor<4x8xf32>) -> (tensor<4x8x!mico.int<5>>, f32)",
            "tensor<4x8xf32>",
        ),
        "the result is tensor<4x8x!mico.int<5>>, expected tensor<4x8x!mico.int<4>>",
        id="weight_quant bits",
    ),
    pytest.param(
        function(
            '%u, %s = mico.weight_quant(%0) {bits = 4, mode = "median"} : '
            "(tensor<4x8xf32>) -> (tensor<4x8x!mico.int<4>>, f32)",
            "tensor<4x8xf32>",
        ),
        'mode is one of "max", "mean", not "median"',
        id="unknown mode",
    ),
    pytest.param(
        function("%y = mico.relu(%0) : (tensor<2xf32>) -> tensor<3xf32>", "tensor<2xf32>"),
        "the result has the shape 3, expected 2",
        id="relu shape",
    ),
    pytest.param(
        function(
            "%y = mico.relu(%0) : (tensor<2x!mico.int<1>>) -> tensor<2x!mico.int<1>>",
            "tensor<2x!mico.int<1>>",
        ),
        "one bit holds -1 and +1",
        id="relu of one bit",
    ),
    pytest.param(
        function(
            "%y = mico.add(%0, %1) : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>",
            "tensor<2x3xf32>",
            "tensor<4xf32>",
        ),
        "shapes 2x3 and 4 do not broadcast",
        id="broadcast",
    ),
    pytest.param(
        function(
            "%y = mico.concat(%0, %1) {dim = 0} : (tensor<2x3xf32>, tensor<2x4xf32>) "
            "-> tensor<4x3xf32>",
            "tensor<2x3xf32>",
            "tensor<2x4xf32>",
        ),
        "a concatenated tensor has the shape 2x4",
        id="concat shapes",
    ),
    pytest.param(
        function(
            "%y = mico.flatten(%0) {start_dim = 3} : (tensor<2x3xf32>) -> tensor<6xf32>",
            "tensor<2x3xf32>",
        ),
        "start_dim 3 is outside of a tensor of rank 2",
        id="flatten range",
    ),
    pytest.param(
        function("%y = mico.reshape(%0) : (tensor<2x3xf32>) -> tensor<7xf32>", "tensor<2x3xf32>"),
        "2x3 does not fill shape = [7]",
        id="reshape size",
    ),
    pytest.param(
        function(
            "%y = mico.transpose(%0) {permutation = [0, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>",
            "tensor<2x3xf32>",
        ),
        "permutation [0, 0] does not order the dimensions",
        id="permutation",
    ),
    pytest.param(
        function(
            "%y = mico.maxpool2d(%0) {kernel_size = [2, 2], padding = [2, 2]} : "
            "(tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>",
            "tensor<1x1x4x4xf32>",
        ),
        "padding is at most half of the kernel",
        id="pool padding",
    ),
    pytest.param(
        function(
            "%y = mico.batch_norm(%0, %1, %1, %1, %1) : (tensor<1x3x4xf32>, tensor<4xf32>, "
            "tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x3x4xf32>",
            "tensor<1x3x4xf32>",
            "tensor<4xf32>",
        ),
        "the weight has the shape 4, expected 3",
        id="batch norm parameters",
    ),
    pytest.param(
        function(
            "%y = mico.attention(%0, %1, %1) {query_bits = 8} : (tensor<1x2x3x4xf32>, "
            "tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x3x4xf32>",
            "tensor<1x2x3x4xf32>",
            "tensor<1x2x5x4xf32>",
        ),
        "query_bits and key_bits go together",
        id="attention widths",
    ),
    pytest.param(
        function(
            "%y = mico.attention(%0, %1, %1) : (tensor<1x3x3x4xf32>, "
            "tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> tensor<1x3x3x4xf32>",
            "tensor<1x3x3x4xf32>",
            "tensor<1x2x5x4xf32>",
        ),
        "heads of the key",
        id="attention heads",
    ),
    pytest.param(
        function(
            "%y = mico.requantize(%0, %1) : (tensor<2x3xi32>, tensor<2xf32>) "
            "-> tensor<2x3x!mico.int<8>>",
            "tensor<2x3xi32>",
            "tensor<2xf32>",
        ),
        "the multiplier has the shape 2, expected 3",
        id="requantize multiplier",
    ),
    pytest.param(
        function(
            "%y = mico.requantize(%0, %1) : (tensor<2x3xi32>, i32) -> tensor<2x3x!mico.int<8>>",
            "tensor<2x3xi32>",
            "i32",
        ),
        "an integer multiplier needs a shift",
        id="requantize shift",
    ),
]

CONSTANTS = [
    pytest.param(
        'func.func @f() {\n"mico.get_constant"() <{symbol = @w}> : () -> tensor<2xf32>\n'
        "func.return\n}",
        "no mico.constant is named @w",
        2,
        id="missing symbol",
    ),
    pytest.param(
        "mico.constant @w : tensor<2xf32> = dense<1.0>\nfunc.func @f() {\n"
        "%w = mico.get_constant @w : tensor<3xf32>\nfunc.return\n}",
        "@w is a tensor<2xf32>, read as tensor<3xf32>",
        3,
        id="read as another type",
    ),
    pytest.param(
        "func.func @w() {\nfunc.return\n}\nfunc.func @f() {\n"
        "%w = mico.get_constant @w : tensor<3xf32>\nfunc.return\n}",
        "@w is a func.func, not a mico.constant",
        5,
        id="symbol of another kind",
    ),
    pytest.param(
        '\n"mico.constant"() <{sym_name = "w", type = tensor<2x2x!mico.int<4>>, '
        'value = #mico.packed<"0x0102">}> : () -> ()',
        "a constant of few-bit integers needs a scale",
        2,
        id="constant without scale",
    ),
    pytest.param(
        '"mico.constant"() <{sym_name = "w", type = tensor<2x2x!mico.int<4>>, '
        'value = #mico.packed<"0x0102">, scale = @s}> : () -> ()',
        "no mico.constant is named @s",
        1,
        id="dangling scale",
    ),
    pytest.param(
        "mico.constant @w : tensor<2xf32> = dense<1.0>\nmico.constant @w : tensor<2xf32> = dense<2.0>",
        "w",
        2,
        id="defined twice",
    ),
    pytest.param(
        'mico.constant @s : tensor<f32> = dense<1.0>\n"mico.constant"() <{sym_name = "w", '
        'type = tensor<2x2x!mico.int<4>>, value = #mico.packed<"0x010203">, scale = @s}> : () -> ()',
        "3 packed bytes, but 2x2 at 4 bits is 2 bytes (2 rows of 1)",
        2,
        id="packed length",
    ),
]


@pytest.mark.parametrize(("text", "message"), [*LAYERS, *OTHERS])
def test_op_is_refused_at_its_line(text: str, message: str) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(parse_module(text, "bad.mlir"))
    assert message in caught.value.what
    assert (caught.value.place.file, caught.value.place.line) == ("bad.mlir", 2)


@pytest.mark.parametrize(("text", "message", "line"), CONSTANTS)
def test_constant_is_refused_at_its_line(text: str, message: str, line: int) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(parse_module(text, "bad.mlir"))
    assert message in caught.value.what
    assert caught.value.place.line == line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mico.constant @w : tensor<2x!mico.int<9>> = dense<1>", "!mico.int<9>: a width is 1 to 8"),
        ("mico.constant @w : tensor<2x!mico.int<0>> = dense<1>", "!mico.int<0>: a width is 1 to 8"),
        ('mico.constant @w : tensor<2x4x!mico.int<4>> = dense<"0x00">', "2x4 at 4 bits is 4 bytes"),
        ('mico.constant @w : tensor<2x!mico.int<4>> = dense<"0x0G">', "hexadecimal digits"),
        ("mico.constant @w : tensor<2x!mico.int<4>> = dense<...>", "expected the data"),
        ("mico.constant @w : tensor<2x!mico.int<4>> = dense<[1, 8]>", "does not fit 4 bits"),
        (
            "mico.constant @w : tensor<2x!mico.int<4>> = dense<[1, 300]>",
            "300 does not fit into 8 bits",
        ),
        ("mico.constant @w : tensor<2x2x!mico.int<4>> = dense<[1, 2, 3]>", "expected 2 integers"),
        ("mico.constant @w : tensor<?xf32> = dense<1.0>", "static shape"),
        ("mico.constant @w : f32 = dense<1.0>", "a constant is a tensor"),
        ('mico.constant @w : tensor<2xf32> = #mico.ref<"k", "abc">', "SHA-256"),
    ],
)
def test_constant_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        verify(parse_module(text))
    assert message in caught.value.what
    assert caught.value.place.line == 1


@pytest.mark.parametrize(
    ("type", "message"),
    [
        ("!mico.qtensor<4x8xf32, scale: f32>", "few-bit"),
        ("!mico.qtensor<4x8x!mico.int<4>, scale: f64>", "a scale is f32"),
        ("!mico.kv_cache<tensor<1x2x3xf32>>", "batch x heads x capacity x head size"),
        ("!mico.kv_cache<tensor<1x2x3x4x!mico.int<4>>>", "needs the type of its scales"),
        ("!mico.kv_cache<tensor<1x2x3x4xf32>, f32>", "has no scale"),
    ],
)
def test_type_is_refused(type: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_module(f"func.func private @f({type}) -> ()")
    assert message in caught.value.what
