"""Random ONNX models: a seed is a model, `random_onnx(7)`.

In some of them, a size of the inputs is left open. Whether the rest of the model takes another
size, onnxruntime says: models that it does not run at one keep all of their sizes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from onnx import ModelProto

from tests.fuzz import onnx_integers, onnx_kinds, onnx_selections, onnx_sequences, onnx_windows
from tests.fuzz.onnx_graphs import BOOL, FLOAT, INT8, INT32, INT64, UINT8, Graph
from tests.fuzz.onnx_kinds import Kind

GROUPS: tuple[tuple[Kind, ...], ...] = (
    onnx_kinds.KINDS,
    onnx_kinds.KINDS,
    onnx_windows.KINDS,
    onnx_selections.KINDS,
    onnx_integers.KINDS,
    onnx_sequences.KINDS,
)
OPEN_SIZE = 2
"""What an open size is while the model grows."""


def random_onnx(seed: int, most_nodes: int = 12) -> ModelProto:
    """Return the model of a seed."""
    graph = Graph(np.random.default_rng(seed))
    open_axis = _add_inputs(graph)
    wanted = int(graph.rng.integers(1, most_nodes + 1))
    for _ in range(20 * wanted):
        if len(graph.nodes) >= wanted:
            break
        graph.choice(graph.choice(GROUPS))(graph)
    if open_axis is not None:
        graph.open_axis = open_axis
        if _takes(graph.model(), OPEN_SIZE + 1):
            return graph.model()
        graph.open_axis = None
    return graph.model()


def _add_inputs(graph: Graph) -> int | None:
    """Give a graph its inputs, and return the axis whose size may be left open."""
    rng = graph.rng
    shape = [graph.size() for _ in range(int(graph.choice((1, 2, 3, 4, 4, 5))))]
    open_axis = int(rng.integers(len(shape))) if rng.random() < 0.3 else None
    if open_axis is not None:
        shape[open_axis] = OPEN_SIZE
    graph.add_input(tuple(shape))
    if rng.random() < 0.3:
        graph.add_input(tuple(shape))
    for type in (INT64, INT64, INT32, INT8, UINT8, BOOL):
        if rng.random() < 0.1:
            graph.add_input(tuple(graph.size() for _ in range(int(rng.integers(4)))), type)
    return open_axis


def _takes(model: ModelProto, size: int) -> bool:
    """Return whether onnxruntime runs the model at a size that it leaves open."""
    runtime: Any = import_module("onnxruntime")
    runtime.set_default_logger_severity(4)
    inputs = {
        value.name: np.ones(
            [each.dim_value or size for each in value.type.tensor_type.shape.dim],
            NUMPY[value.type.tensor_type.elem_type],
        )
        for value in model.graph.input
    }
    try:
        session = runtime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        session.run(None, inputs)
    except Exception:  # its exceptions have no common class
        return False
    return True


NUMPY: dict[int, type[np.generic]] = {
    FLOAT: np.float32, INT64: np.int64, INT32: np.int32, INT8: np.int8, UINT8: np.uint8,
    BOOL: np.bool_,
}  # fmt: skip
