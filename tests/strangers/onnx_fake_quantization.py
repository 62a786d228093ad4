"""w8a8 of an ONNX file, as another ONNX file: the formulas of docs/numerics.md as nodes.

Weights are replaced by their rounded values. Before a layer, nodes round what comes in: one scale for
each row, or for each sample of a convolution. onnxruntime computes the rest. Layers in branches are
layers like others.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

EPS, LARGEST = 1e-5, 127.0
PREFIX = "fake_quantization"


def quantize_dequantize(weight: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """Round to 8 bits, with one scale for all elements along these axes."""
    largest = np.maximum(np.abs(weight).max(axis=tuple(axes), keepdims=True), np.float32(EPS))
    scale = np.float32(LARGEST) / largest
    return (np.clip(np.rint(weight * scale), -LARGEST - 1, LARGEST) / scale).astype(weight.dtype)


def fake_quantize(model: Any) -> tuple[Any, set[str]]:
    """Return a model whose layers round, and the names of their weights."""
    onnx: Any = import_module("onnx")
    rounded = onnx.ModelProto()
    rounded.CopyFrom(model)
    return rounded, _Graph(onnx, rounded.graph, _opset(model)).rewrite()


def _opset(model: Any) -> int:
    return max(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))


MOVES = ("Concat", "Identity", "Slice", "Unsqueeze")
"""Ops by which exporters put the rows of an LSTM's weights in ONNX's order."""


class _Graph:
    def __init__(self, onnx: Any, graph: Any, opset: int, outer: _Graph | None = None) -> None:
        self.onnx, self.graph, self.opset = onnx, graph, opset
        self.prefix = f"{outer.prefix}.{len(outer.nodes)}.{graph.name}" if outer else PREFIX
        self.weights: dict[str, Any] = dict(outer.weights) if outer else {}
        self.weights |= {tensor.name: tensor for tensor in graph.initializer}
        self.makers: dict[str, Any] = dict(outer.makers) if outer else {}
        for node in graph.node:
            self.makers |= dict.fromkeys(node.output, node)
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.weights[node.output[0]] = node.attribute[0].t
        self.done: set[str] = outer.done if outer else set()
        self.nodes: list[Any] = []

    def rewrite(self) -> set[str]:
        for name, value in (("eps", EPS), ("largest", LARGEST), ("least", -LARGEST - 1)):
            array = np.array(value, np.float32)
            tensor = self.onnx.numpy_helper.from_array(array, f"{PREFIX}.{name}")
            self.graph.initializer.append(tensor)
        self._rewrite_nodes()
        return self.done

    def _rewrite_nodes(self) -> None:
        for node in list(self.graph.node):
            self._layer(node)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    _Graph(self.onnx, attribute.g, self.opset, self)._rewrite_nodes()
            self.nodes.append(node)
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)

    def _layer(self, node: Any) -> None:
        weight = self.weights.get(node.input[1]) if len(node.input) > 1 else None
        rank = 0 if weight is None else len(weight.dims)
        if node.op_type in ("MatMul", "Gemm") and rank >= 2:
            transposed = any(a.name == "transB" and a.i for a in node.attribute)
            self._round_weight(weight, [1] if transposed else [rank - 2])
            node.input[0] = self._round(node.input[0], [-1])
        elif node.op_type == "Conv" and weight is not None:
            self._round_weight(weight, range(1, rank))
            node.input[0] = self._round(node.input[0], range(1, rank))
        elif node.op_type == "LSTM":
            for name in node.input[1:3]:
                for weight in self._sources(name):
                    self._round_weight(weight, [-1])
            node.input[0] = self._round(node.input[0], [-1])
            if len(node.input) > 5 and node.input[5]:
                node.input[5] = self._round(node.input[5], [-1])
        elif node.op_type == "Gather" and node.input[0] in self.weights:
            table = self.weights[node.input[0]]
            if len(table.dims) == 2:
                self._round_weight(table, [1])

    def _sources(self, name: str) -> list[Any]:
        """Return the weights whose rows a value has, in whatever order."""
        if name in self.weights:
            return [self.weights[name]]
        node = self.makers.get(name)
        if node is None or node.op_type not in MOVES:
            return []
        moved = node.input if node.op_type == "Concat" else node.input[:1]
        return [weight for each in moved for weight in self._sources(each)]

    def _round_weight(self, tensor: Any, axes: Sequence[int]) -> None:
        array = self.onnx.numpy_helper.to_array(tensor)
        if array.dtype != np.float32 or tensor.name in self.done:
            return
        rounded = quantize_dequantize(array, axes)
        tensor.CopyFrom(self.onnx.numpy_helper.from_array(rounded, tensor.name))
        self.done.add(tensor.name)

    def _round(self, name: str, axes: Sequence[int]) -> str:
        """Add nodes that round a value, and return what the result is called."""
        largest = self._node("Max", self._largest(self._node("Abs", name), axes), f"{PREFIX}.eps")
        scale = self._node("Div", f"{PREFIX}.largest", largest)
        integers = self._node("Round", self._node("Mul", name, scale))
        clipped = self._node("Clip", integers, f"{PREFIX}.least", f"{PREFIX}.largest")
        return self._node("Div", clipped, scale)

    def _largest(self, name: str, axes: Sequence[int]) -> str:
        if self.opset < 18:
            return self._node("ReduceMax", name, axes=list(axes), keepdims=1)
        given = f"{self.prefix}.{len(self.nodes)}.axes"
        array = np.array(axes, np.int64)
        self.graph.initializer.append(self.onnx.numpy_helper.from_array(array, given))
        return self._node("ReduceMax", name, given, keepdims=1)

    def _node(self, op: str, *inputs: str, **attributes: Any) -> str:
        result = f"{self.prefix}.{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), [result], **attributes))
        return result
