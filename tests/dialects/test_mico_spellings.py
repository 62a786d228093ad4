"""Older spellings of the dialect parse, and one canonical form is printed."""

from __future__ import annotations

import pytest
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError as SpanError

from fewbit.dialects.mico import BitConv2dOp, BitLinearOp
from fewbit.errors import ParseError
from fewbit.ir.context import make_context
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify
from fewbit.models import lenet_text


def canonical(body: str, *types: str) -> list[str]:
    """Return the lines of a function's body as printed."""
    arguments = ", ".join(f"%a{i} : {type}" for i, type in enumerate(types))
    module = parse_module(f"func.func @f({arguments}) {{\n{body}\nfunc.return\n}}")
    verify(module)
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    return [line.strip() for line in text.splitlines()[2:-3]]


def test_integers_without_type_become_i32() -> None:
    types = ("tensor<1x256xf32>", "tensor<64x256x!mico.int<4>>", "tensor<64xf32>", "f32")
    signature = f"({', '.join(types)}) -> tensor<1x64xf32>"
    plain, typed = (
        canonical(
            f"%y = mico.bitlinear(%a0, %a1, %a2) weight_scale(%a3) "
            f"{{weight_bits = 4{suffix}, act_bits = 8{suffix}}} : {signature}",
            *types,
        )
        for suffix in ("", " : i32")
    )
    assert plain == typed
    assert "{weight_bits = 4 : i32, act_bits = 8 : i32}" in plain[0]


def test_single_type_without_parentheses() -> None:
    bare = canonical("%y = mico.relu(%a0) : tensor<2xf32> -> tensor<2xf32>", "tensor<2xf32>")
    assert bare == ["%y = mico.relu(%a0) : (tensor<2xf32>) -> tensor<2xf32>"]


def test_weight_without_scale_stands_for_itself() -> None:
    lines = canonical(
        "%y = mico.bitlinear(%a0, %a1) : (tensor<1x8xf32>, tensor<4x8x!mico.int<4>>) "
        "-> tensor<1x4xf32>",
        "tensor<1x8xf32>",
        "tensor<4x8x!mico.int<4>>",
    )
    assert lines[0] == "%unit_scale = arith.constant 1.000000e+00 : f32"
    assert "weight_scale(%unit_scale)" in lines[1]


def test_weight_of_weight_quant_takes_its_scale() -> None:
    lines = canonical(
        '%q, %s = mico.weight_quant(%a1) {bits = 4 : i32, mode = "max"} : (tensor<4x8xf32>) '
        "-> (tensor<4x8x!mico.int<4>>, f32)\n"
        "%y = mico.bitlinear(%a0, %q) : (tensor<1x8xf32>, tensor<4x8x!mico.int<4>>) "
        "-> tensor<1x4xf32>",
        "tensor<1x8xf32>",
        "tensor<4x8xf32>",
    )
    assert 'granularity = "tensor"' in lines[0]
    assert "weight_scale(%s)" in lines[1]


def test_quantized_tensor_as_weight_is_taken_apart() -> None:
    lines = canonical(
        "%y = mico.bitlinear(%a0, %a1) : (tensor<1x8xf32>, "
        "!mico.qtensor<4x8x!mico.int<4>, scale: f32>) -> tensor<1x4xf32>",
        "tensor<1x8xf32>",
        "!mico.qtensor<4x8x!mico.int<4>, scale: f32>",
    )
    assert "mico.unbundle(%a1)" in lines[0]
    assert "!mico.qtensor<tensor<4x8x!mico.int<4>>, f32, none>" in lines[0]


def test_padding_for_both_sides_and_defaults() -> None:
    (line,) = canonical(
        "%y = mico.bitconv2d(%a0, %a1) {padding = [1, 2]} : "
        "(tensor<1x1x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x8x10xf32>",
        "tensor<1x1x8x8xf32>",
        "tensor<4x1x3x3xf32>",
    )
    assert "padding = [1, 1, 2, 2]" in line
    assert "stride = [1, 1]" in line
    assert "dilation = [1, 1]" in line
    assert "groups = 1 : i32" in line


def test_misspelt_attribute_is_refused() -> None:
    with pytest.raises(ParseError, match="did you mean 'stride'"):
        canonical(
            "%y = mico.bitconv2d(%a0, %a1) {strides = [2, 2]} : "
            "(tensor<1x1x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x8x10xf32>",
            "tensor<1x1x8x8xf32>",
            "tensor<4x1x3x3xf32>",
        )


def test_integers_as_data() -> None:
    text = print_module(
        parse_module(
            "mico.constant @w : tensor<2x3x!mico.int<4>> = dense<[[1, -8, 7], [0, 0, -1]]>"
        )
    )
    assert 'dense<"0x8107000F">' in text
    splat = print_module(parse_module("mico.constant @w : tensor<2x3x!mico.int<1>> = dense<-1>"))
    assert 'dense<"0x0707">' in splat


def test_lenet_parses_as_it_was_written() -> None:
    module = parse_module(lenet_text(), "lenet.mlir")
    verify(module)
    text = print_module(module)
    again = parse_module(text)
    verify(again)
    assert print_module(again) == text
    layers = [op for op in module.walk() if isinstance(op, BitLinearOp | BitConv2dOp)]
    assert [str(layer.weight_width) for layer in layers] == ["8", "6", "6", "4", "4"]


def test_lenet_with_the_wrong_type_is_refused_at_its_line() -> None:
    text = lenet_text()
    right = "(tensor<1x84xf32>) -> tensor<1x10xf32>"
    assert text.count(right) == 1
    with pytest.raises(ParseError) as caught:
        parse_module(text.replace(right, "(tensor<1x10xf32>) -> tensor<1x10xf32>"), "lenet.mlir")
    line = next(i for i, line in enumerate(text.splitlines(), 1) if "%fc3 =" in line)
    assert caught.value.place.line == line
    assert "tensor<1x84xf32>" in caught.value.what
    assert caught.value.excerpt is not None
    assert "%relu4" in caught.value.excerpt


def test_unknown_constant_names_a_close_one() -> None:
    text = lenet_text().replace("@conv1_weight,", "@conv1_wieght,")
    with pytest.raises(ParseError, match="did you mean @conv1_weight"):
        parse_module(text)


def test_canonical_form_is_read_by_plain_xdsl() -> None:
    text = print_module(parse_module(lenet_text()))
    module = Parser(make_context(), text).parse_module()
    module.verify()
    assert print_module(module) == text


def test_plain_xdsl_says_that_it_needs_our_parser() -> None:
    with pytest.raises(SpanError, match="fewbit-opt"):
        Parser(make_context(), lenet_text()).parse_module()
