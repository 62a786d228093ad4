"""Nodes of a traced graph written anew in other types than the trace has.

Programs hold neither complex nor unsigned tensors to compute with. Such values are held in other
tensors, and each op on them is replaced by ops on what holds them. A replacement is written with
`Builder.call`, which gives each new node its value, as the trace would, and the place in the model
of the node that it replaces.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, TensorArgument
from torch.fx import Graph, GraphModule, Node
from torch.utils._pytree import tree_map_only

KEPT_META = ("nn_module_stack", "stack_trace", "source_fn_stack", "custom")


class Builder:
    """Writes nodes before one that they replace."""

    def __init__(self, graph: Graph, node: Node, mode: FakeTensorMode) -> None:
        self.graph = graph
        self.node = node
        self.mode = mode

    def call(self, op: Any, *args: Any, **kwargs: Any) -> Node:
        """A node that computes `op` of nodes and numbers."""
        with self.graph.inserting_before(self.node):
            node = self.graph.call_function(op, args, kwargs)
        values = tree_map_only(Node, _value_of, (args, kwargs))
        with self.mode, torch.no_grad():
            node.meta["val"] = op(*values[0], **values[1])
        node.meta |= {key: self.node.meta[key] for key in KEPT_META if key in self.node.meta}
        return node


def _value_of(node: Node) -> Any:
    return node.meta["val"]


def mode_of(graph: Graph) -> FakeTensorMode:
    """The mode in which the values of a graph were traced."""
    for node in graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None:
            return mode
    return FakeTensorMode()


def with_graph(
    program: ExportedProgram,
    module: GraphModule,
    signature: ExportGraphSignature,
    state: dict[str, Any],
    limits: Any = None,
) -> ExportedProgram:
    """A program with another graph, what that graph refers to, and the ranges of its sizes."""
    known = cast(Any, program).range_constraints
    return ExportedProgram(
        module,
        module.graph,
        signature,
        state,
        known if limits is None else limits,
        program.module_call_graph,
        program.example_inputs,
        program.constants,
        verifiers=program.verifiers,
    )


def rename_outputs(program: ExportedProgram) -> None:
    """Say in the signature which nodes are returned now."""
    (returned,) = program.graph.output_node().args
    for spec, node in zip(program.graph_signature.output_specs, cast(Any, returned), strict=True):
        if isinstance(node, Node) and isinstance(spec.arg, TensorArgument):
            spec.arg = TensorArgument(name=node.name)
