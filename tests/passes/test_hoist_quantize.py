from __future__ import annotations

import numpy as np
import pytest

from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from tests.passes.conftest import RunPasses
from tests.passes.lowering import lower

X = "tensor<1x4x4x2xf32>"
PLACES = {
    "pool": ('kernel.pool2d(%x) {kind = "max", kernel_size = [3, 3], stride = [2, 2], '
             f"padding = [1, 1]}} : ({X}) -> ", "1x2x2x2"),
    "relu": (f"mico.relu(%x) : ({X}) -> ", "1x4x4x2"),
    "reshape": (f"mico.reshape(%x) {{shape = [4, 8]}} : ({X}) -> ", "4x8"),
    "flatten": (f"mico.flatten(%x) : ({X}) -> ", "1x32"),
    "transpose": (f"mico.transpose(%x) {{permutation = [0, 3, 1, 2]}} : ({X}) -> ", "1x2x4x4"),
    "concat": (f"mico.concat(%x, %x) {{dim = 1 : i32}} : ({X}, {X}) -> ", "1x8x4x2"),
}  # fmt: skip


def function(place: str, width: str) -> str:
    op, shape = PLACES[place]
    few = f"tensor<{shape}x{width}>"
    return f"""func.func @main(%x: {X}) -> {few} {{
      %step = arith.constant 0.31 : f32
      %0 = {op}tensor<{shape}xf32>
      %1 = mico.quantize(%0, %step) : (tensor<{shape}xf32>, f32) -> {few}
      func.return %1 : {few}
    }}"""


@pytest.mark.parametrize("width", ["!mico.int<8>", "!mico.int<2>", "!mico.int<1>"])
@pytest.mark.parametrize("place", PLACES)
def test_moves_up_and_keeps_the_bits(run_passes: RunPasses, place: str, width: str) -> None:
    text = function(place, width)
    after = run_passes(text, "hoist-quantize")
    stays = place == "relu" and width == "!mico.int<1>"
    assert ("mico.quantize(%x" in after) != stays
    x = np.random.default_rng(0).standard_normal((1, 4, 4, 2)).astype(np.float32)
    (expected,) = interpret(parse_module(text), x)
    for passes in (["hoist-quantize"], ["hoist-quantize", "lower-kernel"]):
        (made,) = interpret(lower(parse_module(text), *passes), x)
        np.testing.assert_array_equal(made, expected)
