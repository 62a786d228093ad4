"""ONNX files of nodes in a row."""

from __future__ import annotations

from pathlib import Path

from onnx import helper


def write(path: Path, *kinds: str) -> Path:
    nodes = [helper.make_node(kind, [f"x{i}"], [f"x{i + 1}"]) for i, kind in enumerate(kinds)]
    ends = [helper.make_tensor_value_info(f"x{i}", 1, [2, 3]) for i in (0, len(kinds))]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path
