# pyright: basic
"""Distinct elements, in PyTorch and ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper

import fewbit
from fewbit.errors import UnsupportedError
from fewbit.frontends.onnx import import_onnx
from tests.frontends.torch.agreement import assert_agrees


@pytest.mark.parametrize(
    "x", [torch.tensor([[3, 1, 3], [2, 1, 3]]), torch.tensor([1.5]), torch.tensor([2.0, -1, 2])]
)
def test_torch(x: torch.Tensor) -> None:
    assert_agrees(lambda x: torch.unique(x, return_inverse=True, return_counts=True), x)


def model(is_sorted: int, **attributes: Any) -> Any:
    names = ["y", "first", "inverse", "counts"]
    node = helper.make_node("Unique", ["x"], names, sorted=is_sorted, **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])
    kinds = [TensorProto.FLOAT, *[TensorProto.INT64] * 3]
    outputs = [
        helper.make_tensor_value_info(n, k, [None]) for n, k in zip(names, kinds, strict=True)
    ]
    graph = helper.make_graph([node], "g", [x], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("is_sorted", [0, 1])
def test_onnx(is_sorted: int) -> None:
    x = np.array([[2, 1, np.nan, 1], [np.nan, 5, 1, -3]], np.float32)
    wanted = np.unique(x, True, True, True)
    if not is_sorted:
        order = np.argsort(wanted[1])
        y, first, _, counts = (each[order] if len(each) == len(order) else each for each in wanted)
        wanted = (y, first, np.argsort(order)[wanted[2]], counts)
    program = import_onnx(model(is_sorted))
    for results in (program.run(x), fewbit.compile(program).runner(x)):
        for result, each in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(result, each.reshape(-1))


def test_slices_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="Unique cannot be imported: slices along an axis"):
        import_onnx(model(1, axis=0))
