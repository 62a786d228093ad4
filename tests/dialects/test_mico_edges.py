"""Cases at the edge of the dialect: lost scales, huge constants, odd attributes, dynamic sizes."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block

from fewbit.dialects.mico import BitLinearOp, ConcatOp, ReluOp
from fewbit.errors import InterpretError, ParseError, UsageError, VerifyError
from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify

SCALED = """mico.constant @s : tensor<f32> = dense<0.5>
mico.constant @a : tensor<2x2x!mico.int<4>> = dense<1> scale @s
"""


def test_one_lost_scale_among_others_is_an_error_at_its_line() -> None:
    text = SCALED + "mico.constant @b : tensor<2x2x!mico.int<4>> = dense<1>\n"
    with pytest.raises(ParseError, match="without its scale") as caught:
        parse_module(text)
    assert caught.value.place.line == 3


def test_scale_of_the_usual_name_that_is_not_named() -> None:
    text = (
        "mico.constant @a.scale : tensor<f32> = dense<0.5>\n"
        "mico.constant @a : tensor<2x2x!mico.int<4>> = dense<1>\n"
    )
    with pytest.raises(ParseError, match=r"add: scale @a\.scale"):
        parse_module(text)


def test_huge_constant_in_text_is_refused_at_once() -> None:
    for shape in ("100000000000x", "2000000000x"):
        with pytest.raises(ParseError, match="weight store"):
            parse_module(f"mico.constant @a : tensor<{shape}!mico.int<4>> = dense<1>")


def test_constants_and_subgraphs_stand_at_the_top() -> None:
    inner = "mico.constant @a : tensor<1xf32> = dense<1.0>"
    with pytest.raises(VerifyError):
        verify(parse_module(f"func.func @f() {{\n{inner}\nfunc.return\n}}"))


def test_building_refuses_what_it_does_not_know() -> None:
    x, w = Block(arg_types=[TensorType(f32, [1, 4]), TensorType(f32, [2, 4])]).args
    with pytest.raises(UsageError, match="act_scal"):
        BitLinearOp.of(x, w, act_scal=x)
    with pytest.raises(UsageError, match="act_bit"):
        BitLinearOp.of(x, w, act_bit=8)
    with pytest.raises(UsageError, match="too many"):
        ReluOp.of(x, x)
    with pytest.raises(UsageError, match="weight"):
        BitLinearOp.of(x)
    with pytest.raises(Exception, match="dim"):
        ConcatOp.of(x, x)


@pytest.mark.parametrize(
    "attributes", ["{q.z = [true, false]}", "{q.z = [1 : i32, 2 : i8]}", '{"a.b c" = 1 : i32}']
)
def test_attributes_of_others_come_back_as_they_were(attributes: str) -> None:
    text = f"func.func @f(%x: tensor<2xf32>) {{\n%y = mico.relu(%x) {attributes} : (tensor<2xf32>) -> tensor<2xf32>\nfunc.return\n}}"
    module = parse_module(text)
    verify(module)
    printed = print_module(module)
    again = parse_module(printed)
    assert print_module(again) == printed
    assert module.is_structurally_equivalent(again)


def test_unknown_attribute_in_generic_form() -> None:
    text = 'func.func @f(%x: tensor<2xf32>) {\n%y = "mico.relu"(%x) {foo = 1 : i32} : (tensor<2xf32>) -> tensor<2xf32>\nfunc.return\n}'
    with pytest.raises(VerifyError, match="foo"):
        verify(parse_module(text))


@pytest.mark.parametrize(
    "text",
    [
        "%0 = arith.constant dense<[0.0, -0.0]> : tensor<2xf32>",
        "mico.constant @z : tensor<2xf32> = dense<[-0.0, 0.0]>",
    ],
)
def test_signs_of_zeros_survive(text: str) -> None:
    module = parse_module(text)
    again = parse_module(print_module(module))
    assert module.is_structurally_equivalent(again)
    assert print_module(again) == print_module(module)


def test_undefined_value_is_reported_at_its_use() -> None:
    with pytest.raises(ParseError, match="%z is used but not defined") as caught:
        parse_module("func.func @f() {\n\n  func.return %z : i32\n}\n")
    assert caught.value.place.line == 3


@pytest.mark.parametrize(
    "type",
    [
        "!mico.qtensor<2x4x!mico.int<4>, tensor<9x9x9xf32>>",
        "!mico.qtensor<2x4x!mico.int<4>, f32, tensor<7xf32>>",
        "!mico.qtensor<2x4x!mico.int<1>, f32, i32>",
        "!mico.kv_cache<tensor<1x2x3x4x!mico.int<4>>, tensor<99xf32>>",
    ],
)
def test_parts_that_do_not_fit_each_other(type: str) -> None:
    with pytest.raises(ParseError):
        parse_module(f"func.func private @f({type}) -> ()")


def test_dynamic_channels_are_not_numbers() -> None:
    text = (
        "func.func @f(%x: tensor<1x3x8x8xf32>, %w: tensor<?x1x3x3xf32>) {\n"
        "%y = mico.bitconv2d(%x, %w) {groups = 3} : (tensor<1x3x8x8xf32>, tensor<?x1x3x3xf32>) -> tensor<1x?x6x6xf32>\n"
        "func.return\n}"
    )
    verify(parse_module(text))


def test_shapes_that_only_the_run_knows_are_checked_there() -> None:
    reshape = parse_module(
        "func.func @main(%x: tensor<?x4xf32>) -> tensor<3x4xf32> {\n"
        "%y = mico.reshape(%x) {shape = [3, 4]} : (tensor<?x4xf32>) -> tensor<3x4xf32>\n"
        "func.return %y : tensor<3x4xf32>\n}",
        "net.mlir",
    )
    with pytest.raises(InterpretError) as caught:
        interpret(reshape, np.ones((4, 4), np.float32))
    assert caught.value.place.line == 2
    quantize = parse_module(
        "func.func @main(%x: tensor<?x4xf32>, %s: tensor<?xf32>) -> tensor<?x4x!mico.int<8>> {\n"
        "%y = mico.quantize(%x, %s) : (tensor<?x4xf32>, tensor<?xf32>) -> tensor<?x4x!mico.int<8>>\n"
        "func.return %y : tensor<?x4x!mico.int<8>>\n}"
    )
    with pytest.raises(InterpretError):
        interpret(quantize, np.ones((4, 4), np.float32), np.ones(2, np.float32))


def test_hint_of_the_accumulator_reaches_the_user() -> None:
    text = (
        "func.func @f(%x: tensor<1x131072xf32>, %w: tensor<1x131072x!mico.int<8>>, %s: f32) {\n"
        "%y = mico.bitlinear(%x, %w) weight_scale(%s) {act_bits = 8} : (tensor<1x131072xf32>, tensor<1x131072x!mico.int<8>>, f32) -> tensor<1x1xf32>\n"
        "func.return\n}"
    )
    with pytest.raises(VerifyError) as caught:
        verify(parse_module(text))
    assert caught.value.hint
