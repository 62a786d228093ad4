"""Random ONNX graphs, node by node.

A graph grows node by node. Each kind of node looks for tensors that it can take among those there
are, and makes constants for the rest of its inputs; kinds that find none are passed over. Shapes
are small, odd, and contain ones. A kind says what its results are (`node`), or ONNX infers it, and
then nodes that ONNX refuses are left out (`add`). Tensors that nothing reads are the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import (
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    defs,
    helper,
    numpy_helper,
)
from onnx.shape_inference import InferenceError, infer_node_outputs

OPSET = 20
SIZES = (1, 2, 3, 4, 5, 7, 8)
MOST = 4096
"""Elements of the largest tensor."""
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
INT32, INT8, UINT8 = TensorProto.INT32, TensorProto.INT8, TensorProto.UINT8
INTEGERS = (INT64, INT32, INT8, UINT8)
Array = NDArray[Any]


@dataclass(frozen=True)
class Value:
    name: str
    shape: tuple[int, ...]
    type: int = FLOAT

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass
class Graph:
    """A graph that grows, and the random numbers that it grows by."""

    rng: np.random.Generator
    values: list[Value] = field(default_factory=list[Value])
    inputs: list[Value] = field(default_factory=list[Value])
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    constants: list[TensorProto] = field(default_factory=list[TensorProto])
    read: set[str] = field(default_factory=set[str])
    open_axis: int | None = None
    """The axis of all float inputs whose size the model leaves open, if there is one."""

    def add_input(self, shape: tuple[int, ...], type: int = FLOAT) -> None:
        value = Value(f"x{len(self.inputs)}", shape, type)
        self.inputs.append(value)
        self.values.append(value)

    def pick(self, suits: Callable[[Value], bool] = lambda v: v.type == FLOAT) -> Value | None:
        """Return a value that suits, more often a late one."""
        results = [value for value in self.values if suits(value)]
        if not results:
            return None
        return results[-1 - min(int(self.rng.geometric(0.4)) - 1, len(results) - 1)]

    def choice(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def size(self) -> int:
        return int(self.choice(SIZES))

    def constant(self, array: Array | np.generic) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape: int) -> str:
        return self.constant((self.rng.standard_normal(shape) * 0.5).astype(np.float32))

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def node(
        self,
        kind: str,
        inputs: Sequence[Value | str],
        shapes: Sequence[tuple[int, ...]],
        types: int | Sequence[int] = FLOAT,
        **attributes: Any,
    ) -> None:
        first = len(self.values)
        kinds = [types] * len(shapes) if isinstance(types, int) else types
        results = [
            Value(f"t{first + i}", shape, kind)
            for i, (shape, kind) in enumerate(zip(shapes, kinds, strict=True))
        ]
        names = [value if isinstance(value, str) else value.name for value in inputs]
        self.read.update(names)
        self.nodes.append(
            helper.make_node(kind, names, [result.name for result in results], **attributes)
        )
        self.values += results

    def add(
        self, kind: str, inputs: Sequence[Value | str], results: int = 1, **attributes: Any
    ) -> list[Value]:
        """Add a node whose results ONNX infers, and return them: none where it refuses the node."""
        names = [value if isinstance(value, str) else value.name for value in inputs]
        first = len(self.values)
        made = [f"t{first + i}" for i in range(results)]
        node = helper.make_node(kind, names, made, **attributes)
        found = self._infer(node)
        if not all(0 < prod(value.shape) <= MOST for value in found):
            return []
        if found:
            self.read.update(names)
            self.nodes.append(node)
            self.values += found
        return found

    def hidden_node(
        self, kind: str, inputs: Sequence[Value | str], result: str, **attributes: Any
    ) -> None:
        """Add a node whose result other kinds do not see, since the data decides its size."""
        names = [value if isinstance(value, str) else value.name for value in inputs]
        self.read.update(names)
        self.nodes.append(helper.make_node(kind, names, [result], **attributes))

    def _infer(self, node: NodeProto) -> list[Value]:
        types = {value.name: _type(value) for value in self.values if value.name in node.input}
        data = {tensor.name: tensor for tensor in self.constants if tensor.name in node.input}
        for name, tensor in data.items():
            types[name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        schema = defs.get_schema(node.op_type, OPSET)
        opset = [helper.make_opsetid("", OPSET)]
        try:
            results = infer_node_outputs(schema, node, types, data, opset_imports=opset)
        except InferenceError:
            return []
        found = [_known(name, results.get(name)) for name in node.output]
        return [value for value in found if value is not None] if None not in found else []

    def model(self) -> ModelProto:
        """Return the graph as a model."""
        made = {name for node in self.nodes for name in node.output}
        ends = [v for v in self.values if v.name in made and v.name not in self.read]
        used = [v for v in self.inputs if v.name in self.read]
        inputs = [_info(value, self.open_axis) for value in used]
        outputs = [_info(value) if self.open_axis is None else _open_info(value) for value in ends]
        graph = helper.make_graph(self.nodes, "random", inputs, outputs, self.constants)
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def _info(value: Value, open_axis: int | None = None) -> ValueInfoProto:
    shape: list[int | str] = list(value.shape)
    if open_axis is not None and value.type == FLOAT:
        shape[open_axis] = "n"
    return helper.make_tensor_value_info(value.name, value.type, shape)


def _open_info(value: Value) -> ValueInfoProto:
    return helper.make_tensor_value_info(value.name, value.type, [None] * value.rank)


def _type(value: Value) -> TypeProto:
    return helper.make_tensor_type_proto(value.type, value.shape)


def _known(name: str, type: TypeProto | None) -> Value | None:
    """Return a tensor of a type, if all of its sizes are known."""
    if type is None or not type.tensor_type.HasField("shape"):
        return None
    sizes = type.tensor_type.shape.dim
    if not all(size.HasField("dim_value") for size in sizes):
        return None
    return Value(name, tuple(size.dim_value for size in sizes), type.tensor_type.elem_type)
