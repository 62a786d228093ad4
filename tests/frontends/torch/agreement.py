"""A function of tensors: what eager PyTorch, the interpreter and compiled code make of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

import fewbit
from fewbit.frontends import import_model
from fewbit.frontends.torch.types import array_of

TensorFunction = (
    Callable[[Tensor], Any]
    | Callable[[Tensor, Tensor], Any]
    | Callable[[Tensor, Tensor, Tensor], Any]
)
"""Lambdas need no annotation where one is expected."""


class Function(nn.Module):
    def __init__(self, function: TensorFunction) -> None:
        super().__init__()
        self.function: Callable[..., Any] = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def assert_agrees(
    function: nn.Module | TensorFunction, *inputs: Tensor, rtol: float = 1e-5, atol: float = 1e-5
) -> None:
    """Integers must be equal, floats close; shapes and types the same."""
    model = function if isinstance(function, nn.Module) else Function(function)
    with torch.no_grad():
        expected = [array_of(each) for each in tree_leaves(model.eval()(*inputs))]
    program = import_model(model, inputs)
    arrays = [array_of(each) for each in inputs]
    compiled = fewbit.compile(program)
    for results in (program.run(*arrays), compiled.runner(*arrays)):
        for result, wanted in zip(results, expected, strict=True):
            assert np.asarray(result).dtype == wanted.dtype
            assert np.shape(result) == wanted.shape
            pair = (np.asarray(a).astype(np.float64) for a in (result, wanted))
            if wanted.dtype.kind in "iub":
                np.testing.assert_array_equal(result, wanted)
            else:
                np.testing.assert_allclose(*pair, rtol=rtol, atol=atol)
