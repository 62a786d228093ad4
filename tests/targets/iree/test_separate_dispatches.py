"""Programs whose ops IREE 3.13 fuses wrongly, or fails to fuse, without barriers of ours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.export import Dim
from torch.nn.functional import (
    cosine_similarity,
    elu,
    interpolate,
    layer_norm,
    max_pool1d,
    max_pool2d,
)

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.runtime import Artifact


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


def sort_beside_lists_of_places(x: Tensor) -> tuple[Tensor, ...]:
    """Two sorts with the same places beside them, which IREE finds out when it knows the sizes."""
    return (2 * x).sort(0, descending=True)[1], x.sort(0)[0]


def several_reductions(x: Tensor) -> Tensor:
    """Several in a chain, with tensors between them for which the stack of a dispatch is no place."""
    return cosine_similarity(x[:, 0], x.sum(), dim=-1)


def truths_that_are_known(x: Tensor) -> Tensor:
    return torch.logical_xor(x, x).all(0)


def count_gathered(x: Tensor) -> Tensor:
    """The remainders are zeros, so that the rows that are counted over are one."""
    line = x[:, 0].reshape(1, -1)
    square = line.index_select(0, line.flatten().to(torch.int64) % 1)
    counts = torch.count_nonzero(torch.xlogy(square, square.abs()), 0)
    return counts < torch.triu(square, 1).swapaxes(0, -1)


def places_of_largest(x: Tensor) -> Tensor:
    """A sort of which nobody reads the values."""
    return (2 * x).topk(5, 0)[1].float()


def gather_from_a_column(x: Tensor) -> Tensor:
    return interpolate(x[None, None, :, :1], scale_factor=2)


def gather_from_every_other_column(x: Tensor) -> Tensor:
    """Rows of a slice: the whole has its elements apart, though the last slice does not."""
    return interpolate(x[None, None, :, ::2][:, :, 1:], scale_factor=2)


def places_in_windows(x: Tensor) -> tuple[Tensor, ...]:
    return max_pool2d(torch.stack([x, -x]), 2, return_indices=True)


def write_rows_beside(x: Tensor) -> tuple[Tensor, ...]:
    """A loop that begins with what is read after it as well."""
    y = x.reshape(3, 3, 7) + 1
    return y.index_fill(1, torch.tensor([0, 2, 2]), 0.25).amax(-1), y.cos()


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
        places_in_windows,
        write_rows_beside,
        join_elements,
        join_reshaped_elements,
    ],
    ids=lambda function: function.__name__,
)
def test_results_are_those_of_torch(function: Callable[[Tensor], Tensor]) -> None:
    manual_seed(0)
    x = torch.randn(9, 7)
    art = fewbit.compile(fewbit.import_model(Function(function), (x,)), "iree-cpu", name="net")
    check(art, function, x)
    check(art, function, -x)  # what the first run changes, the second one must not see


@pytest.mark.parametrize(
    "function",
    [
        outer,
        sort_beside,
        sort_beside_lists_of_places,
        several_reductions,
        truths_that_are_known,
        count_gathered,
        places_of_largest,
    ],
    ids=lambda f: f.__name__,
)
def test_sizes_are_known_behind_a_barrier(function: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(9, 7)
    program = fewbit.import_model(Function(function), (x,), dynamic_shapes=({0: Dim("n", min=5)},))
    art = fewbit.compile(program, "iree-cpu", name="net")
    check(art, function, x)
    check(art, function, torch.randn(6, 7))


def check(
    art: Artifact, function: Callable[[Tensor], Tensor | tuple[Tensor, ...]], x: Tensor
) -> None:
    expected = function(x)
    for found, right in zip(
        art.run(x.numpy()), expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        np.testing.assert_allclose(found, right.numpy(), atol=1e-5)


def replace_rows_beside(x: Tensor) -> tuple[Tensor, ...]:
    """A slice of what another result repeats."""
    places = x.nan_to_num(0.0, 9.0, -9.0).clamp(-99, 99).to(torch.int64) % 8
    chosen = nn.functional.embedding(places, torch.arange(24.0).reshape(8, 3))
    repeated = chosen.expand(2, *chosen.shape).clone()
    replaced = torch.slice_scatter(chosen, chosen.narrow(2, 0, 1), 2, 1, 2)
    return repeated, nn.functional.pad(replaced, [0, 1])


def test_a_slice_is_replaced_in_a_copy() -> None:
    manual_seed(0)
    x = 9 * torch.randn(7, 2, 5, 7)
    program = fewbit.import_model(Function(replace_rows_beside), (x,))
    check(fewbit.compile(program, "iree-cpu", name="net"), replace_rows_beside, x)


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
    result = fewbit.compile(program, "iree-cpu", name="net")(x)
    np.testing.assert_allclose(result[0, :, 0], x[0, :, 0] @ weight[:, :, 0], atol=1e-5)


def test_each_run_sorts_anew() -> None:
    """The indices that are sorted beside the values are constant, and stay what they are."""
    places = np.array([[[1, 0], [0, 1]], [[3, 1], [2, 0]], [[0, 0], [1, 1]], [[3, 0], [2, 1]]])
    nodes = [
        helper.make_node("GatherND", ["x", "places"], ["t"]),
        helper.make_node("TopK", ["t", "k"], ["y", "i"], axis=1, largest=0),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 2))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 2))],
        [numpy_helper.from_array(places, "places"), numpy_helper.from_array(np.array([2]), "k")],
    )
    art = fewbit.compile(fewbit.import_model(helper.make_model(graph)), "iree-cpu", name="net")
    x = np.random.default_rng(0).standard_normal((4, 2)).astype(np.float32)
    for _ in range(2):
        chosen = x[places[..., 0], places[..., 1]]
        np.testing.assert_array_equal(art.run(x)[0], np.sort(chosen, 1))
        x = -x
