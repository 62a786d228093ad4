from __future__ import annotations

import re

import numpy as np
import pytest

from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.numerics import WIDTHS, Quantized, Width, pack
from fewbit.program.program import Program
from fewbit.program.references import check_references
from fewbit.program.store import WeightStore
from tests.passes.lowering import check, constants, element_text, lower

RNG = np.random.default_rng(0)


def integers(width: Width, *shape: int) -> Quantized:
    values = RNG.integers(width.qmin, width.qmax + 1, shape)
    values = np.where((values == 0) & width.is_binary, 1, values).astype(np.int8)
    return Quantized(values, np.ones((), np.float32), None, width)


def reading(type: str) -> str:
    return (
        f"func.func @main() -> {type} {{\n"
        f"  %w = mico.get_constant @w : {type}\n"
        f"  func.return %w : {type}\n}}\n"
    )


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_every_width_and_length(width: Width) -> None:
    for k in (1, 2, 3, 5, 7, 8, 9, 16, 25, 61):
        w = integers(width, 3, k)
        module = parse_module(constants("w", w) + reading(f"tensor<3x{k}x{element_text(width)}>"))
        (values,) = check(module, passes=("unpack-weights", "lower-few-bit-types"))
        np.testing.assert_array_equal(values, w.values)


@pytest.mark.parametrize("shape", [(5,), (2, 3, 5), (4, 1, 3, 3)])
def test_every_rank(shape: tuple[int, ...]) -> None:
    w = integers(Width.of(3), *shape)
    type = f"tensor<{'x'.join(map(str, shape))}x!mico.int<3>>"
    check(parse_module(constants("w", w) + reading(type)))


def test_a_scalar() -> None:
    text = "mico.constant @w : tensor<!mico.int<3>> = dense<-3>\n"
    (value,) = check(parse_module(text + reading("tensor<!mico.int<3>>")))
    assert value.shape == ()
    assert value == -3


def test_no_odd_integer_type_appears() -> None:
    for width in WIDTHS:
        text = constants("w", integers(width, 3, 13)) + reading(
            f"tensor<3x13x{element_text(width)}>"
        )
        printed = print_module(lower(parse_module(text)))
        assert "!mico" not in printed
        assert not re.search(r"(?<!\w)(\d*x)?i[2-7]\b", printed)


def test_stored_bytes_keep_their_hash() -> None:
    w = integers(Width.of(5), 4, 11)
    store = WeightStore()
    ref = store.add("layer.w", pack(w.values, 5))
    text = (
        "mico.constant @s : tensor<f32> = dense<1.0>\n"
        f'mico.constant @w : tensor<4x11x!mico.int<5>> = #mico.ref<"layer.w", "{ref.sha256}">'
        " scale @s\n" + reading("tensor<4x11x!mico.int<5>>")
    )
    program = Program.parse(text, store)
    lower(program.module)
    check_references(program.module, store)
    (values,) = program.run()
    np.testing.assert_array_equal(values, w.values)
