# pyright: basic
"""Inputs whose sizes do not fit together are refused, not read beyond their end."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import fewbit
from fewbit.errors import ShapeError
from fewbit.program.program import Program


class Sum(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a * 2 + b


class Product(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(a) + b)


class Joined(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cat([a, b], dim=1)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("model", [Sum(), Residual(), Joined()], ids=lambda m: type(m).__name__)
def test_batches_must_be_equal(model: nn.Module) -> None:
    batch = Dim("batch", min=2, max=64)
    example = (torch.randn(3, 4), torch.randn(3, 4))
    art = fewbit.compile(
        model.eval(), example_inputs=example, dynamic_shapes=({0: batch}, {0: batch}), name="net"
    )
    with torch.no_grad():
        expected = model(torch.ones(5, 4), torch.ones(5, 4)).numpy()
    np.testing.assert_allclose(art(ones(5, 4), ones(5, 4)), expected, atol=1e-6)
    for first, second in ((5, 2), (2, 5)):
        with pytest.raises(ShapeError):
            art(ones(first, 4), ones(second, 4))


def test_depths_must_be_equal() -> None:
    depth = Dim("depth", min=2, max=64)
    example = (torch.randn(3, 8), torch.randn(8, 5))
    shapes = ({1: depth}, {0: depth})
    art = fewbit.compile(Product(), example_inputs=example, dynamic_shapes=shapes, name="net")
    np.testing.assert_array_equal(art(ones(3, 7), ones(7, 5)), np.full((3, 5), 7, np.float32))
    with pytest.raises(ShapeError):
        art(ones(3, 7), ones(6, 5))


def test_a_lookup_stays_in_its_table() -> None:
    model = nn.Embedding(10, 4).eval()
    tokens = torch.tensor([1, 2])
    art = fewbit.compile(model, example_inputs=(tokens,), name="net")
    table = model.weight.detach().numpy()
    np.testing.assert_array_equal(art(np.array([3, 9])), table[[3, 9]])
    np.testing.assert_array_equal(art(np.array([-5, 10**12])), table[[0, 9]])


class Function(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "refused", "taken"),
    [
        (lambda x: x.narrow(1, 0, 3) + 0, (3, 2, 6), (3, 3, 6)),
        (lambda x: x[0] + x[1], (1, 4, 6), (2, 4, 6)),
        (lambda x: x[:, 0] * 2, (2, 0, 6), (2, 1, 6)),
    ],
)
def test_a_slice_must_lie_inside(function, refused: tuple, taken: tuple) -> None:
    shapes = {"x": {0: Dim.AUTO, 1: Dim.AUTO}}
    example = (torch.randn(3, 4, 6),)
    model = Function(function)
    art = fewbit.compile(model, example_inputs=example, dynamic_shapes=shapes, name="net")
    np.testing.assert_array_equal(art(ones(*taken)), function(torch.ones(taken)).numpy())
    with pytest.raises(ShapeError):
        art(ones(*refused))


def test_a_slice_is_as_long_as_there_are_elements() -> None:
    shapes = {"x": {0: Dim.AUTO, 1: Dim.AUTO}}
    example = (torch.randn(3, 4, 6),)
    model = Function(lambda x: x[:, :3] + 0)
    art = fewbit.compile(model, example_inputs=example, dynamic_shapes=shapes, name="net")
    for length in (0, 1, 2, 3, 5):
        assert art(ones(3, length, 6)).shape == (3, min(length, 3), 6)


def test_nothing_is_divided_by_an_empty_batch() -> None:
    shapes = {"x": {0: Dim.AUTO, 1: Dim.AUTO}}
    model = Function(lambda x: torch.stack([x, x * 2], 1))
    example = (torch.randn(3, 4, 6),)
    art = fewbit.compile(model, example_inputs=example, dynamic_shapes=shapes, name="net")
    assert art(ones(2, 4, 6)).shape == (2, 2, 4, 6)
    assert art(ones(0, 4, 6)).size == 0


def test_memory_that_no_machine_has_is_an_error() -> None:
    shapes = {"x": {0: Dim.AUTO, 1: Dim.AUTO}}
    model = Function(lambda x: (x @ x.transpose(1, 2)).softmax(-1) @ x)
    example = (torch.randn(3, 4, 6),)
    art = fewbit.compile(model, example_inputs=example, dynamic_shapes=shapes, name="net")
    inputs = art.runner._inputs()
    inputs.x_dim0 = inputs.x_dim1 = 1 << 30
    assert art.runner._arena_bytes(ctypes.byref(inputs)) > 1 << 60


NAMED = """
func.func @main(%x: tensor<?x4xf32>, %y: tensor<{rows}x4xf32>) -> tensor<?x4xf32> {{
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %y_open = tensor.cast %y : tensor<{rows}x4xf32> to tensor<?x4xf32>
  %z = linalg.add ins(%x, %y_open : tensor<?x4xf32>, tensor<?x4xf32>)
      outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %z : tensor<?x4xf32>
}}
"""
REDUCED = """
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %z = linalg.reduce ins(%x : tensor<?x4xf32>) outs(%y : tensor<?xf32>) dimensions = [1]
    (%a: f32, %s: f32) {
      %t = arith.addf %a, %s : f32
      linalg.yield %t : f32
    }
  func.return %z : tensor<?xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "y", "taken", "refused"),
    [
        (NAMED.format(rows="?"), (5, 4), (5, 4), (2, 4)),
        (NAMED.format(rows="2"), (2, 4), (2, 4), (5, 4)),
        (REDUCED, (5,), (5, 4), (7, 4)),
    ],
    ids=["named op", "fixed size", "reduction"],
)
def test_named_loops_have_one_size_too(text: str, y: tuple, taken: tuple, refused: tuple) -> None:
    art = fewbit.compile(Program.parse(text), name="net")
    assert art(ones(*taken), ones(*y)).shape[0] == taken[0]
    with pytest.raises(ShapeError):
        art(ones(*refused), ones(*y))


def test_two_open_sizes_of_one_input_may_have_to_be_equal() -> None:
    text = """
func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = tensor.dim %x, %zero : tensor<?x?xf32>
  %n = tensor.dim %x, %one : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %x : tensor<?x?xf32>, tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}
"""
    art = fewbit.compile(Program.parse(text), name="net")
    np.testing.assert_array_equal(art(ones(3, 3)), 2 * ones(3, 3))
    with pytest.raises(ShapeError):
        art(ones(3, 5))
