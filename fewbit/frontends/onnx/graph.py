"""A model file's graphs as plain data: nodes with decoded attributes, numbered from 1.

A node's number is its line in locations and messages: `model.onnx:12` is the file's 12th node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
    helper,
)

from fewbit.frontends.onnx.kinds import held_in, tensor_of
from fewbit.frontends.onnx.values import Known

_SCOPES = "pkg.torch.onnx.name_scopes"


@dataclass(frozen=True)
class Reference:
    """An attribute whose value the call of the function gives."""

    name: str


@dataclass(frozen=True, eq=False)
class Node:
    op: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    number: int
    module: str
    """The dotted path of the module that the node comes from, as far as its name tells."""
    proto: NodeProto
    overload: str = ""

    def graphs(self) -> Iterator[Graph]:
        for value in self.attributes.values():
            if isinstance(value, Graph):
                yield value


@dataclass(frozen=True, eq=False)
class Graph:
    nodes: tuple[Node, ...]
    inputs: tuple[ValueInfoProto, ...] = ()
    outputs: tuple[str, ...] = ()
    constants: dict[str, Known] = field(default_factory=dict[str, Known])

    def all_nodes(self) -> Iterator[Node]:
        """Those of inner graphs included."""
        for node in self.nodes:
            yield node
            for graph in node.graphs():
                yield from graph.all_nodes()

    def outer_names(self) -> set[str]:
        """Names that the graph uses and does not define."""
        defined = {value.name for value in self.inputs} | set(self.constants)
        used: set[str] = set()
        for node in self.nodes:
            used |= {name for name in node.inputs if name} - defined
            for graph in node.graphs():
                used |= graph.outer_names() - defined
            defined |= set(node.outputs)
        return used | ({*self.outputs} - defined)


class Reader:
    """Decodes graphs; counts nodes."""

    def __init__(self, folder: str = "", first: int = 1) -> None:
        self.folder = folder
        self.number = first

    def graph(self, proto: GraphProto) -> Graph:
        constants = {t.name: self._constant(t) for t in proto.initializer}
        for sparse in proto.sparse_initializer:
            constants[sparse.values.name] = self._sparse(sparse)
        nodes = tuple(self._node(node) for node in proto.node)
        outputs = tuple(value.name for value in proto.output)
        return Graph(nodes, tuple(proto.input), outputs, constants)

    def function(self, proto: FunctionProto) -> Graph:
        return Graph(tuple(self._node(node) for node in proto.node), (), tuple(proto.output))

    def _constant(self, proto: TensorProto) -> Known:
        held_in(proto.data_type)
        return Known(tensor_of(proto, self.folder), proto.data_type, proto.name)

    def _sparse(self, proto: SparseTensorProto) -> Known:
        """Spread out: programs have no sparse tensors."""
        import torch

        values, indices = self._constant(proto.values), self._constant(proto.indices)
        shape = list(proto.dims)
        dense = torch.zeros(shape, dtype=values.tensor.dtype)
        if indices.tensor.ndim == 1:
            dense.view(-1)[indices.tensor] = values.tensor
        else:
            dense[tuple(indices.tensor.T)] = values.tensor
        return Known(dense, values.kind, proto.values.name)

    def _node(self, proto: NodeProto) -> Node:
        number = self.number
        self.number += 1
        return Node(
            proto.op_type,
            "" if proto.domain == "ai.onnx" else proto.domain,
            proto.name,
            tuple(proto.input),
            tuple(proto.output),
            {a.name: self.attribute(a) for a in proto.attribute},
            number,
            module_of(proto),
            proto,
            proto.overload,
        )

    def attribute(self, proto: AttributeProto) -> Any:
        if proto.ref_attr_name:
            return Reference(proto.ref_attr_name)
        value = helper.get_attribute_value(proto)
        if isinstance(value, bytes):
            return value.decode(errors="replace")
        if isinstance(value, GraphProto):
            return self.graph(value)
        if isinstance(value, TensorProto):
            return self._constant(value) if value.data_type != TensorProto.STRING else value
        if isinstance(value, SparseTensorProto):
            return self._sparse(value)
        if isinstance(value, Sequence) and not isinstance(value, str):
            items = cast("Sequence[Any]", value)
            return [v.decode(errors="replace") if isinstance(v, bytes) else v for v in items]
        return value


def module_of(proto: NodeProto) -> str:
    """`layer1.0.conv` of `/layer1/layer1.0/conv/Conv`, or of what torch's exporter notes."""
    for entry in proto.metadata_props:
        if entry.key == _SCOPES:
            names = re.findall(r"'([^']*)'", entry.value)
            return names[-2] if len(names) >= 2 else ""
    path, slash, _ = proto.name.rpartition("/")
    if not slash:
        return ""
    return _join_parts([part for part in path.split("/") if part])


def _join_parts(parts: Sequence[str]) -> str:
    """Parts that repeat the one before, as torch's older exporter writes lists, are not doubled."""
    path = ""
    for part in parts:
        last = path.rpartition(".")[2]
        if path and part.startswith(f"{last}.") and last:
            part = part[len(last) + 1 :]
        path = f"{path}.{part}" if path else part
    return path
