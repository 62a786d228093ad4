"""Graphs in parts: those that can be compiled, and between them those that PyTorch runs.

An error of the importer names the ops that it does not know: the graph is cut before and behind
them. Any other error says only that something in the graph is not supported, so the graph is cut
in two, and the part that fails once more in two, until what is left to PyTorch is small.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.fx.passes.split_module import split_module
from torch.utils._python_dispatch import TorchDispatchMode

from fewbit.torch_backend.ports import storage_of, value_of

EAGER = "fewbit_eager"
"""A note of ours in the metadata of parts."""


def calls_in(graph_module: fx.GraphModule) -> list[fx.Node]:
    """Return the nodes that compute something."""
    return [node for node in graph_module.graph.nodes if node.op.startswith("call")]


def split_at_ops(
    graph_module: fx.GraphModule, ops: Sequence[str], args: Sequence[Any]
) -> fx.GraphModule | None:
    """Return the graph as parts, in turn without and with these ops; None if no node has them."""
    bad, mutates = _look_for(graph_module, set(ops), args)
    calls = calls_in(graph_module)
    if not bad or len(bad) == len(calls):
        return None
    place: dict[fx.Node, int] = {}
    part = 0
    for node in calls:
        if node.target is operator.getitem and node.args[0] in place:
            place[node] = place[node.args[0]]
            continue
        if place and (node in bad) != (part % 2 == 1):
            part += 1
        elif not place and node in bad:
            part = 1
        place[node] = part
    parts = _cut(graph_module, place, mutates)
    if parts is None:
        return None
    for name, child in parts.named_children():
        number = name.rpartition("_")[2]
        if isinstance(child, fx.GraphModule) and number.isdigit() and int(number) % 2 == 1:
            child.meta[EAGER] = True
    return parts


def split_in_two(graph_module: fx.GraphModule, args: Sequence[Any]) -> fx.GraphModule | None:
    """Return the graph as two parts of about as many calls; None where it is no more than one."""
    calls = [node for node in calls_in(graph_module) if node.target is not operator.getitem]
    if len(calls) < 2:
        return None
    _, mutates = _look_for(graph_module, set(), args)
    second = set(calls[len(calls) // 2 :])
    place: dict[fx.Node, int] = {}
    for node in calls_in(graph_module):
        source = node.args[0] if node.target is operator.getitem else None
        known = place.get(source) if isinstance(source, fx.Node) else None
        place[node] = int(node in second) if known is None else known
    return _cut(graph_module, place, mutates)


def _cut(
    graph_module: fx.GraphModule, place: dict[fx.Node, int], mutates: bool
) -> fx.GraphModule | None:
    """Return the parts; None where a write in place would be lost between them.

    Compiled code gives arrays of their own. If two results of a part share memory, and one of them
    is written to in another part, the other would not see it.
    """
    # Writes in place are no edges of the graph, so parts must be called in the order of its nodes.
    parts = split_module(
        graph_module, graph_module, lambda node: place.get(node, 0), keep_original_order=True
    )
    if mutates and any(_shares_memory(child) for child in parts.children()):
        return None
    return parts


def _shares_memory(part: nn.Module) -> bool:
    if not isinstance(part, fx.GraphModule):
        return False
    (output,) = (node for node in part.graph.nodes if node.op == "output")
    given = [node for node in part.graph.nodes if node.op == "placeholder"]
    nodes = dict.fromkeys((*output.all_input_nodes, *given))
    tensors = [v for v in map(value_of, nodes) if isinstance(v, torch.Tensor)]
    return len({storage_of(tensor) for tensor in tensors}) < len(tensors)


def _look_for(
    graph_module: fx.GraphModule, ops: set[str], args: Sequence[Any]
) -> tuple[set[fx.Node], bool]:
    """Return the nodes that call one of these ATen ops, and whether any op writes in place.

    This is found by running the graph on copies.
    """
    nodes: set[fx.Node] = set()
    mutates = False

    class Record(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            nonlocal mutates
            called.add(str(function))
            mutates = mutates or function._schema.is_mutable
            return function(*args, **(kwargs or {}))

    class Attribute(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            called.clear()
            result = super().run_node(n)
            if called & ops and n.op.startswith("call"):
                nodes.add(n)
            return result

    called: set[str] = set()
    copies = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]
    with torch.no_grad(), Record():
        Attribute(graph_module).run(*copies)
    return nodes, mutates


class Call(nn.Module):
    """A part of a graph that stands in for the module that it was."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)
