"""Small ONNX models for tests, and what ONNX's own evaluator says that they compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

node = helper.make_node
OPSET = 21


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[int | str | None]],
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray[Any, Any]] | None = None,
    kinds: Mapping[str, int] | None = None,
    opset: int = OPSET,
) -> Any:
    """A model of these nodes; inputs and outputs are floats unless `kinds` says otherwise."""
    kinds = kinds or {}

    def info(name: str, shape: Any) -> Any:
        return helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), shape)

    graph = helper.make_graph(
        list(nodes),
        "test",
        [info(name, shape) for name, shape in inputs.items()],
        [info(name, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    domains = {"": opset} | {n.domain: 1 for n in nodes if n.domain}
    opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(graph, opset_imports=opsets)


def graph(
    nodes: Sequence[Any],
    outputs: Sequence[str],
    inputs: Sequence[tuple[str, int, Sequence[int | str] | None]] = (),
    constants: Mapping[str, np.ndarray[Any, Any]] | None = None,
    kinds: Mapping[str, int] | None = None,
) -> Any:
    """A branch or a body; its results are floats unless `kinds` says otherwise."""
    kinds = kinds or {}
    infos = [helper.make_tensor_value_info(*entry) for entry in inputs]
    results = [
        helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), None)
        for name in outputs
    ]
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    return helper.make_graph(list(nodes), "inner", infos, results, tensors)


def expected(made: Any, *inputs: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    names = [value.name for value in made.graph.input]
    return ReferenceEvaluator(made).run(None, dict(zip(names, inputs, strict=True)))  # pyright: ignore


def floats(*shape: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
