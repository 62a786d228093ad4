# pyright: basic
"""Tensors of one element, which IREE 3.13 does not compile without rewrites of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from torch import Tensor

import fewbit
from fewbit.base.typed_torch import manual_seed
from tests.frontends.torch.agreement import Function

ZERO = torch.tensor(0)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_unsigned_numbers(shape: Sequence[int]) -> None:
    """A number of 8 bits without a sign comes in and goes out."""
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["f", "f"], ["s"]),
        helper.make_node("Cast", ["s"], ["y"], to=TensorProto.UINT8),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.UINT8, shape) for name in "xy")
    program = fewbit.import_model(helper.make_model(helper.make_graph(nodes, "net", [x], [y])))
    art = fewbit.compile(program, "iree-cpu", name="net")
    np.testing.assert_array_equal(art.run(np.full(shape, 100, np.uint8))[0], np.full(shape, 200))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.sum() > 0).unsqueeze(0),
        lambda x: torch.stack([x.sum() > 0, x.sum() < 0]),
        lambda x: (x.sum() > 0).expand(2, 3) & (x > 0),
    ],
)
def test_truth_values(function: Callable[[Tensor], Tensor]) -> None:
    check(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum().scatter_add(0, ZERO, x.sum()),
        lambda x: x.sum().scatter(-1, ZERO, 2.0),
        lambda x: x.sum().scatter_reduce(0, ZERO, x[0], "amax"),
    ],
)
def test_writes_into_scalars(function: Callable[[Tensor], Tensor]) -> None:
    check(function)


def check(function: Callable[[Tensor], Tensor]) -> None:
    manual_seed(0)
    x = torch.randn(3)
    art = fewbit.compile(fewbit.import_model(Function(function), (x,)), "iree-cpu", name="net")
    for given in (x, -x):
        np.testing.assert_allclose(art.run(given.numpy())[0], function(given).numpy(), rtol=1e-6)
