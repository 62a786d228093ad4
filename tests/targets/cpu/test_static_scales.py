"""Layers with static scales: bytes from one to the next, the interpreter's to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import fewbit
from fewbit.targets.compile import lower
from tests.targets.cpu.static_net import inputs, program


@pytest.mark.parametrize("recipe", ["w8a8-static", "w4a4-static"])
def test_bits_are_the_interpreters(recipe: str) -> None:
    quantized, x = program(recipe), inputs(2)
    np.testing.assert_array_equal(fewbit.compile(quantized, name="net")(x), quantized.run(x)[0])


def test_any_batch() -> None:
    quantized, x = program("w8a8-static", dynamic=True), inputs(3)
    np.testing.assert_array_equal(fewbit.compile(quantized, name="net")(x), quantized.run(x)[0])


def test_only_the_input_is_quantized_by_a_loop() -> None:
    text = lower(program("w8a8-static"), "kernel")
    assert text.count("mico.quantize") == 1
    assert text.count("step = ") == 6
