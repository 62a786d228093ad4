"""What a graph of Dynamo's takes and gives, and the graph with its weights built in.

Parameters and buffers become constants, as do numbers; what is left are the tensors of a call.
Sizes, inputs and views of inputs among the results are left to PyTorch: a copy is no view.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import fx, nn
from torch.fx.node import map_arg

_NAME = "fewbit_name"
"""A note of ours in the metadata of nodes."""


class Ports:
    """What a graph's inputs and outputs are to us."""

    def __init__(self, graph: fx.Graph) -> None:
        self.inputs = [node for node in graph.nodes if node.op == "placeholder"]
        self.frozen = dict(self._named_weights())
        self.constants = [
            i
            for i, node in enumerate(self.inputs)
            if not isinstance(value_of(node), torch.Tensor) or is_number(node)
        ]
        others = {*self.frozen, *self.constants}
        self.tensors = [i for i in range(len(self.inputs)) if i not in others]
        (self.output,) = (node for node in graph.nodes if node.op == "output")
        wanted = list(dict.fromkeys(self.output.all_input_nodes))
        self.computed = [node for node in wanted if self._is_computed(node)]
        self.uncompiled = [node for node in wanted if node not in self.computed]
        self._eager = _selection(graph, self.uncompiled) if self.uncompiled else None

    @property
    def symbolic(self) -> bool:
        """Whether a size is not known."""
        return any(self.dynamic_shapes)

    @property
    def dynamic_shapes(self) -> Any:
        """For `torch.export`: every size that is not known."""
        shapes = [value_of(self.inputs[i]).shape for i in self.tensors]
        automatic = torch.export.Dim.AUTO
        return tuple(
            {axis: automatic for axis, size in enumerate(shape) if not isinstance(size, int)}
            for shape in shapes
        )

    def _named_weights(self) -> list[tuple[int, str]]:
        named: dict[str, int] = {}
        for i, node in enumerate(self.inputs):
            if not _is_weight(node):
                continue
            name = _weight_name(node)
            while name in named:
                name += "_"
            named[name] = i
        return [(i, name) for name, i in named.items()]

    def _is_computed(self, node: fx.Node) -> bool:
        """Sizes, inputs, and views of inputs are left to PyTorch: a copy is no view."""
        value = value_of(node)
        if node.op in ("placeholder", "get_attr") or not isinstance(value, torch.Tensor):
            return False
        inputs = [value_of(each) for each in self.inputs]
        shared = [storage_of(each) for each in inputs if isinstance(each, torch.Tensor)]
        return storage_of(value) not in shared

    def key(self, args: Sequence[Any]) -> Any:
        """Return which weights are given, and which constants that are no sizes of inputs."""
        numbers = [args[i] for i in self.constants if self.size(self.inputs[i]) is None]
        plain = [n.item() if isinstance(n, torch.Tensor) else n for n in numbers]
        return tuple(id(args[i]) for i in self.frozen), tuple(plain)

    def size(self, node: fx.Node) -> tuple[int, int] | None:
        """The input, and the dimension of it, that a number is the size of."""
        for i in self.tensors:
            for axis, size in enumerate(value_of(self.inputs[i]).shape):
                if not isinstance(size, int) and str(size) == str(value_of(node)):
                    return i, axis
        return None

    def merge(self, compiled: Sequence[Any], args: Sequence[Any]) -> Any:
        """The graph's outputs, from compiled code and from PyTorch."""
        values = dict(zip(self.computed, compiled, strict=True))
        if self._eager is not None:
            values |= dict(zip(self.uncompiled, self._eager(*args), strict=True))
        return map_arg(self.output.args[0], lambda node: values[node])


def freeze(
    graph_module: fx.GraphModule, ports: Ports, args: Sequence[Any], *, dynamic: bool
) -> fx.GraphModule:
    """The graph with its weights and constants inside, and outputs that are computed."""
    graph = fx.Graph()
    known: dict[fx.Node, Any] = {}
    attributes: dict[str, Any] = {}
    for i in ports.tensors:
        known[ports.inputs[i]] = graph.placeholder(ports.inputs[i].name)
    for i, name in ports.frozen.items():
        # Tracing writes to buffers, and what it writes to shall not look changed.
        keep = isinstance(args[i], nn.Parameter) and not args[i].is_inference()
        attributes[name] = args[i] if keep else args[i].detach().clone()
        known[ports.inputs[i]] = graph.get_attr(name)
    for i in ports.constants:
        node, value = ports.inputs[i], args[i]
        size = ports.size(node) if dynamic else None
        if size is not None:
            sized = known[ports.inputs[size[0]]]
            known[node] = graph.call_function(torch.ops.aten.sym_size.int, (sized, size[1]))
        else:
            known[node] = value.item() if isinstance(value, torch.Tensor) else value
    for node in graph_module.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op == "call_method" and node.target == "item" and is_number(node.args[0]):
            known[node] = known[node.args[0]]
            continue
        if node.op in ("get_attr", "call_module"):
            attributes[node.target] = operator.attrgetter(node.target)(graph_module)
        known[node] = graph.node_copy(node, known.__getitem__)
    graph.output(tuple(known[node] for node in ports.computed))
    return fx.GraphModule(attributes, graph)


def _selection(graph: fx.Graph, nodes: Sequence[fx.Node]) -> fx.GraphModule:
    """Return the part of a graph that computes these nodes."""
    copy = fx.Graph()
    known: dict[fx.Node, fx.Node] = {}
    needed = set(nodes)
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(node.all_input_nodes)
    for node in graph.nodes:
        if node.op == "placeholder" or (node in needed and node.op != "output"):
            known[node] = copy.node_copy(node, known.__getitem__)
    copy.output(tuple(known[node] for node in nodes))
    return fx.GraphModule(cast(nn.Module, graph.owning_module), copy)


def value_of(node: fx.Node) -> Any:
    return node.meta.get("example_value")


def storage_of(tensor: torch.Tensor) -> int:
    return cast(Any, tensor.untyped_storage())._cdata


def _is_weight(node: fx.Node) -> bool:
    """Dynamo marks what belongs to modules: parameters, buffers, tensors in attributes."""
    return "_dynamo_static_input_type" in (node.meta.get("tensor_dict") or {})


def is_number(node: Any) -> bool:
    """Return whether this is a float, which Dynamo passes as a tensor for its item."""
    if not isinstance(node, fx.Node) or node.op != "placeholder":
        return False
    value = value_of(node)
    if not isinstance(value, torch.Tensor) or value.shape or value.dtype != torch.float64:
        return False
    return all(user.target == "item" for user in node.users)


def _weight_name(node: fx.Node) -> str:
    """`fc.weight`, of `L['self']._modules['fc']._parameters['weight']`.

    Dynamo forgets where an input came from when it is done, and parts are cut later.
    """
    if _NAME not in node.meta:
        source = getattr(node.meta.get("grapharg"), "source", None)
        parts = re.findall(r"_(?:modules|parameters|buffers)\['(\w+)'\]", _source_name(source))
        node.meta[_NAME] = ".".join(parts) or node.name
    return node.meta[_NAME]


def _source_name(source: Any) -> str:
    name: Any = getattr(source, "name", "")
    return str(name() if callable(name) else name)
