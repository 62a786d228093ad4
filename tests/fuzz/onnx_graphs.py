"""Random ONNX graphs, node by node.

A graph grows node by node. Each kind of node looks for tensors that it can take among those there
are, and makes constants for the rest of its inputs; kinds that find none are passed over. Shapes
are small, odd, and contain ones. The last tensors that nothing reads are the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

OPSET = 20
SIZES = (1, 2, 3, 4, 5, 7, 8)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
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

    def add_input(self, shape: tuple[int, ...], type: int = FLOAT) -> None:
        value = Value(f"x{len(self.inputs)}", shape, type)
        self.inputs.append(value)
        self.values.append(value)

    def pick(self, suits: Callable[[Value], bool] = lambda v: v.type == FLOAT) -> Value | None:
        """Return a value that suits, more often a late one."""
        found = [value for value in self.values if suits(value)]
        if not found:
            return None
        return found[-1 - min(int(self.rng.geometric(0.4)) - 1, len(found) - 1)]

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

    def model(self) -> ModelProto:
        made = {name for node in self.nodes for name in node.output}
        ends = [v for v in self.values if v.name in made and v.name not in self.read]
        used = [v for v in self.inputs if v.name in self.read]
        graph = helper.make_graph(
            self.nodes, "random", list(map(_info, used)), list(map(_info, ends)), self.constants
        )
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def _info(value: Value) -> ValueInfoProto:
    return helper.make_tensor_value_info(value.name, value.type, value.shape)
