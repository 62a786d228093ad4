"""Means of windows of which a part lies in the padding or beyond it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from torch import Tensor, nn
from torch.nn.functional import avg_pool1d, avg_pool2d

import fewbit
from fewbit.base.typed_torch import from_numpy

WINDOWS = [
    (kernel, stride, padding, ceil, counted)
    for (kernel, stride, padding), ceil, counted in product(
        [(4, 2, 2), (2, 2, 0), (3, 2, 1)], [False, True], [False, True]
    )
]


class Pools(nn.Module):
    """All kinds of windows on one tensor: channels-last images by kernels, rows by loops."""

    def forward(self, x: Tensor) -> list[Tensor]:
        pool = avg_pool2d if x.ndim == 4 else avg_pool1d
        return [pool(x, *window) for window in WINDOWS]


@pytest.mark.parametrize("shape", [(2, 3, 9, 7), (3, 9)], ids=["2d", "1d"])
def test_only_elements_that_count_are_counted(shape: tuple[int, ...]) -> None:
    x = from_numpy(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    results = fewbit.compile(fewbit.import_model(Pools(), (x,)), "iree-cpu", name="pools").run(
        x.numpy()
    )
    for window, result, expected in zip(WINDOWS, results, Pools()(x), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6, err_msg=str(window))
