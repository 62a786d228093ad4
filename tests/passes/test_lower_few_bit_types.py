from __future__ import annotations

import numpy as np
import pytest

from fewbit.errors import PassError
from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from tests.passes.lowering import lower


def test_signatures_calls_and_control_flow_are_given_bytes() -> None:
    few = "tensor<3x!mico.ternary>"
    module = parse_module(
        f"func.func private @f(%c: i1, %x: {few}) -> {few} {{\n"
        f"  %r = scf.if %c -> ({few}) {{\n"
        f"    %y = mico.relu(%x) : ({few}) -> {few}\n"
        f"    scf.yield %y : {few}\n  }} else {{\n    scf.yield %x : {few}\n  }}\n"
        f"  func.return %r : {few}\n}}\n"
        f"func.func @main(%c: i1, %x: {few}) -> {few} {{\n"
        f"  %y = func.call @f(%c, %x) : (i1, {few}) -> {few}\n"
        f"  func.return %y : {few}\n}}"
    )
    x = np.array([-1, 0, 1], np.int8)
    lower(module)
    text = print_module(module)
    assert "mico" not in text
    assert "unrealized_conversion_cast" not in text
    for condition, expected in ((True, [0, 0, 1]), (False, [-1, 0, 1])):
        (y,) = interpret(module, np.bool_(condition), x, function="main")
        assert y.tolist() == expected


def test_what_was_not_lowered_is_an_error_with_its_place() -> None:
    few = "tensor<3x!mico.int<4>>"
    module = parse_module(
        f"func.func @main(%x: {few}) -> {few} {{\n"
        f"  %y = mico.relu(%x) : ({few}) -> {few}\n"
        f"  func.return %y : {few}\n}}",
        "net.mlir",
    )
    with pytest.raises(PassError, match=r"1 ops still need few-bit types: mico\.relu") as caught:
        lower(module, "lower-few-bit-types")
    assert caught.value.place is not None
    assert caught.value.place.line == 2
    assert "lower-*" in str(caught.value.hint)
