# pyright: basic
"""Programs whose ops IREE 3.13 fuses wrongly, or fails to fuse, without barriers of ours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.nn.functional import elu, interpolate, layer_norm, max_pool1d

import fewbit


class Function(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor | tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, ...]:
        return self.function(x)


def outer(x: Tensor) -> Tensor:
    sums = x.sum(1)
    return sums[:, None] * sums[None, :]


def outer_of_functions(x: Tensor) -> Tensor:
    largest = x.amax(1)
    return largest.sigmoid()[:, None] - largest[None, :]


def product_with_transposed(x: Tensor) -> Tensor:
    largest = x.amax(1, keepdim=True)
    return largest @ largest.T


def differences_of_pooled(x: Tensor) -> Tensor:
    pooled = max_pool1d(x[None], 2)
    return pooled[..., None] - pooled[..., None, :]


def sort_beside(x: Tensor) -> tuple[Tensor, ...]:
    y = elu(x)
    return y.log_softmax(-1), y + x, y.topk(5, -1)[0]


def sort_part(x: Tensor) -> tuple[Tensor, ...]:
    y = layer_norm(x @ x.T, (9,))
    return y.clamp(-0.7, 0.9), y.chunk(2, 1)[1].sort(0)[0]


def sort_twice(x: Tensor) -> tuple[Tensor, ...]:
    """Two sorts whose indices begin alike, and one that is a part of another."""
    return *x.topk(3, 0), *x.sort(0), *x.topk(5, 0)


def gather_from_a_column(x: Tensor) -> Tensor:
    return interpolate(x[None, None, :, :1], scale_factor=2)


def gather_from_every_other_column(x: Tensor) -> Tensor:
    """Rows of a slice: the whole has its elements apart, though the last slice does not."""
    return interpolate(x[None, None, :, ::2][:, :, 1:], scale_factor=2)


def join_elements(x: Tensor) -> Tensor:
    return torch.cat([x[0, :1], x[1, 2:3]])[:, None, None][:1]


def join_reshaped_elements(x: Tensor) -> Tensor:
    return torch.cat([x[0, :1, None, None], x[1:3, :1, None]])


@pytest.mark.parametrize(
    "function",
    [
        outer,
        outer_of_functions,
        product_with_transposed,
        differences_of_pooled,
        sort_beside,
        sort_part,
        sort_twice,
        gather_from_a_column,
        gather_from_every_other_column,
        join_elements,
        join_reshaped_elements,
    ],
    ids=lambda function: function.__name__,
)
def test_results_are_those_of_torch(function: Callable[[Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    x = torch.randn(9, 7)
    art = fewbit.compile(fewbit.import_model(Function(function), (x,)), "iree-cpu", name="net")
    expected = function(x)
    for found, right in zip(
        art.run(x.numpy()), expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        np.testing.assert_allclose(found, right.numpy(), atol=1e-5)


def test_a_slice_of_single_elements_is_convolved() -> None:
    """Zeros between elements are cut off behind the last, which is the first here."""
    random = np.random.default_rng(0)
    x, weight = (random.standard_normal(s).astype(np.float32) for s in ((1, 8, 1), (8, 2, 1)))
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2])
    graph = helper.make_graph(
        [node],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 8, 1))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 2, 1))],
        [numpy_helper.from_array(weight, "w")],
    )
    program = fewbit.import_model(helper.make_model(graph))
    found = fewbit.compile(program, "iree-cpu", name="net")(x)
    np.testing.assert_allclose(found[0, :, 0], x[0, :, 0] @ weight[:, :, 0], atol=1e-5)
