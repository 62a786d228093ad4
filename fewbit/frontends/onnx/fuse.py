"""MatMul and the Add behind it as one layer with a bias, before a graph is evaluated."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from fewbit.frontends.onnx.graph import Graph, Node
from fewbit.frontends.onnx.ops.matmul import BIASED


def fuse_bias(graph: Graph) -> Graph:
    """The graph with fused nodes in the places of the Adds; inner graphs stay as they are."""
    constants = set(graph.constants) | {
        node.outputs[0] for node in graph.nodes if node.op == "Constant"
    }
    uses = Counter(graph.outputs)
    for node in graph.nodes:
        uses.update(node.inputs)
        for inner in node.graphs():
            uses.update(inner.outer_names())
    matmuls = {
        node.outputs[0]: node
        for node in graph.nodes
        if node.op == "MatMul" and not node.domain and uses[node.outputs[0]] == 1
    }
    fused: dict[str, Node] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        match = _matmul_and_bias(node, matmuls, constants)
        if match is None:
            nodes.append(node)
            continue
        matmul, bias = match
        fused[matmul.outputs[0]] = matmul
        inputs = (*matmul.inputs, bias)
        nodes.append(
            replace(matmul, op=BIASED, domain="fewbit", inputs=inputs, outputs=node.outputs)
        )
    kept = tuple(
        n for n in nodes if n.op == BIASED or (n.outputs[:1] != () and n.outputs[0] not in fused)
    )
    return replace(graph, nodes=kept)


def _matmul_and_bias(
    node: Node, matmuls: dict[str, Node], constants: set[str]
) -> tuple[Node, str] | None:
    if node.op != "Add" or node.domain or len(node.inputs) != 2:
        return None
    for matmul, bias in (node.inputs, node.inputs[::-1]):
        if matmul in matmuls and bias in constants:
            return matmuls[matmul], bias
    return None
