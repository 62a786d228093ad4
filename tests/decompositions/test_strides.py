"""Views by strides, diagonals and scalars agree with PyTorch's, interpreted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fewbit.base.typed_torch import manual_seed
from fewbit.frontends import import_model
from tests.frontends.torch.agreement import Function

FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], tuple[int, ...]]] = {
    "windows": (lambda x: x.as_strided((3, 2), (1, 2), 1), (4, 3)),
    "of_a_transposed": (lambda x: x.T.contiguous().as_strided((2, 2), (1, 3)), (4, 3)),
    "repeated": (lambda x: x.as_strided((2, 3), (0, 1)), (7,)),
    "of_a_sum": (lambda x: torch.as_strided_copy(x + 1, (2, 2), (2, 1), 2), (4, 3)),
    "written": (lambda x: torch.as_strided_scatter(x, x[:2, :2], (2, 2), (1, 3)), (4, 3)),
    "diagonal": (lambda x: torch.diagonal_scatter(x, x[:2, 0], 1), (4, 3)),
    "diagonals": (lambda x: torch.diagonal_scatter(x, x[:, :, 1], -1, 2, 0), (3, 3, 4)),
    "scalar": (lambda x: x.max(0)[0] + x.cumsum(0) + x.topk(1)[0] + x.median(0)[0], ()),
    "products": (lambda x: x.cumprod(0) + x.sort()[0] + x.nanmedian(), ()),
    "places": (lambda x: x.argmax(0) + x.gather(0, x.argmin(0)), ()),
    "one_sample": (lambda x: F.conv_transpose1d(x, x[:, :2, None] + x[0, :3], stride=2), (3, 5)),
    "spread_out": (
        lambda x: F.conv_transpose1d(x, x[:, None, :3] + x[0, 0], stride=2, dilation=2),
        (3, 5),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_torch(name: str) -> None:
    function, shape = FUNCTIONS[name]
    manual_seed(0)
    x = torch.randn(shape)
    (result,) = import_model(Function(function), (x,)).run(x.numpy())
    expected = function(x).numpy()
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, atol=1e-5)
