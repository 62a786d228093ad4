"""Static scales of programs: equal to those of the torch model, and of text alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fewbit.base.typed_torch import manual_seed
from fewbit.errors import Error, UsageError
from fewbit.frontends import import_model
from fewbit.ir.text import print_module
from fewbit.program.program import Program
from fewbit.quant import calibrate
from fewbit.quant.observer import Method
from fewbit.quant.program_calibration import calibrate_program
from fewbit.quant.quantize import quantize

TEXT = """
mico.constant @fc.weight : tensor<2x2xf32> = dense<[[1.0, -2.0], [0.5, 3.0]]>
func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %w = mico.get_constant @fc.weight : tensor<2x2xf32>
  %y = mico.bitlinear(%x, %w) : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
  func.return %y : tensor<?x2xf32>
}
"""


class Block(nn.Module):
    """A layer that runs twice, inside a module that runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.inner(self.inner(x) * 3))


Calibrated = tuple[nn.Module, Program, list[torch.Tensor]]


@pytest.fixture(scope="module")
def block() -> Calibrated:
    manual_seed(0)
    model = Block().eval()
    data = [torch.randn(5, 4) * (i + 1) for i in range(3)]
    return model, import_model(model, (data[0],)), data


@pytest.mark.parametrize("method", ["minmax", "percentile", "mse"])
def test_scales_equal_those_of_the_torch_model(block: Calibrated, method: Method) -> None:
    model, program, data = block
    expected = calibrate(model, data, "w4a8-static,head=w4a2-static", method)
    before = print_module(program.module)
    calibration = calibrate_program(
        program, [[x.numpy()] for x in data], "w4a8-static,head=w4a2-static", method
    )
    assert print_module(program.module) == before
    assert list(calibration) == ["inner.0", "head"]
    for name, scale in expected.items():
        assert calibration[name] == pytest.approx(scale, rel=1e-5)


def test_zero_points(block: Calibrated) -> None:
    model, program, data = block
    recipe = "w4a8-static-asym"
    calibration = calibrate_program(program, [[x.numpy()] for x in data], recipe)
    assert calibration.zero_points == calibrate(model, data, recipe).zero_points
    quantize(program, recipe, calibration).verify()


def test_a_program_in_text() -> None:
    program = Program.parse(TEXT)
    calibration = calibrate_program(program, [[np.array([[1.0, -4.0]], np.float32)]], "w8a8-static")
    assert calibration["fc"] == pytest.approx(4 / 127)
    quantized = quantize(program, "w8a8-static", calibration)
    (y,) = quantized.run(np.array([[1.0, -4.0]], np.float32))
    np.testing.assert_allclose(y, [[9.0, -11.5]], atol=0.1)


def test_scales_are_for_what_is_rotated(block: Calibrated) -> None:
    x = np.array([[1.0, -4.0]], np.float32)
    calibration = calibrate_program(Program.parse(TEXT), [[x]], "w8a8h2-static")
    assert calibration["fc"] == pytest.approx(5 / 2**0.5 / 127)
    model, program, data = block
    recipe = "w8a8h4-static"
    expected = calibrate(model, data, recipe)
    calibration = calibrate_program(program, [[x.numpy()] for x in data], recipe)
    assert dict(calibration) == pytest.approx(dict(expected), rel=1e-5)


def test_refused(block: Calibrated) -> None:
    _, program, data = block
    with pytest.raises(UsageError, match="no data"):
        calibrate_program(program, [], "w8a8-static")
    with pytest.raises(Error, match="NaN") as caught:
        calibrate_program(program, [[np.full((5, 4), np.nan, np.float32)]], "w8a8-static")
    assert caught.value.place.layer == "inner.0"
    with pytest.raises(UsageError, match="matches no layer"):
        calibrate_program(program, [[data[0].numpy()]], "w8a8-static,hed=w4a8")
