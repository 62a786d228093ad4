"""Smaller models of an ONNX model: other outputs, tensors as inputs, nodes left out.

A cut keeps what its outputs need and nothing else. A tensor becomes an input where ONNX's shape
inference knows its type; a node is left out where it has an input of its result's type, and no
other result that is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto, helper

from fewbit.reduce.onnx_types import types_of
from fewbit.reduce.search import halves_first


def read(path: Path) -> ModelProto:
    """Return the model of a file, with its weights, which may lie beside it."""
    loader: Any = onnx
    return loader.load(path)


def size_of(model: ModelProto) -> int:
    return len(model.graph.node)


def cuts_of(model: ModelProto) -> Iterator[ModelProto]:
    """Return smaller models, the largest cuts first."""
    types = types_of(model)
    outputs = [output.name for output in model.graph.output]
    if len(outputs) > 1:
        for output in outputs:
            yield _cut(model, types, outputs=[output])
    nodes = list(model.graph.node)
    for number in halves_first(len(nodes)):
        for output in _results(nodes[number]):
            if outputs != [output]:
                yield from _smaller(model, _cut(model, types, outputs=[output]))
    for number in halves_first(len(nodes)):
        known = [name for name in _results(nodes[number]) if name in types]
        if known and len(known) == len(_results(nodes[number])):
            yield from _smaller(model, _cut(model, types, inputs=known))
    for number, node in enumerate(nodes):
        if _reads_any(model.graph, _results(node)[1:]):
            continue
        for name in dict.fromkeys(node.input):
            if _has_same_type(types, name, node.output[0]):
                yield from _smaller(model, _leave_out(model, types, number, name))


def _smaller(model: ModelProto, cut: ModelProto) -> Iterator[ModelProto]:
    """Return the cut if it has fewer nodes, and they make all of its outputs."""
    outputs = {name for node in cut.graph.node for name in node.output}
    if size_of(cut) < size_of(model) and outputs.issuperset(o.name for o in cut.graph.output):
        yield cut


def _results(node: NodeProto) -> list[str]:
    return [name for name in node.output if name]


def _reads_any(graph: GraphProto, names: list[str]) -> bool:
    read = {output.name for output in graph.output}
    read |= {name for node in graph.node for name in _uses(node)}
    return not read.isdisjoint(names)


def _has_same_type(types: dict[str, ValueInfoProto], one: str, other: str) -> bool:
    if one not in types or other not in types:
        return False
    return types[one].type.SerializeToString() == types[other].type.SerializeToString()


def _leave_out(
    model: ModelProto, types: dict[str, ValueInfoProto], number: int, instead: str
) -> ModelProto:
    """Return the model without a node; an input of it takes the place of its result."""
    copy = ModelProto()
    copy.CopyFrom(model)
    node = copy.graph.node.pop(number)
    result = node.output[0]
    _rename_reads(copy.graph, result, instead)
    outputs = [instead if o.name == result else o.name for o in model.graph.output]
    return _cut(copy, types, outputs=outputs)


def _rename_reads(graph: GraphProto, old: str, new: str) -> None:
    """Read another tensor in place of one, in graphs within nodes, too."""
    for node in graph.node:
        for at, name in enumerate(node.input):
            if name == old:
                node.input[at] = new
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _rename_reads(inner, old, new)
    for output in graph.output:
        if output.name == old:
            output.name = new


def _cut(
    model: ModelProto,
    types: dict[str, ValueInfoProto],
    outputs: list[str] | None = None,
    inputs: list[str] | None = None,
) -> ModelProto:
    """Return what some outputs need, with some tensors as inputs."""
    graph = model.graph
    wanted = [output.name for output in graph.output] if outputs is None else outputs
    given = set(inputs or ())
    nodes = _needed(graph, wanted, given)
    used = {name for node in nodes for name in _uses(node)} | set(wanted)
    kept = [value for value in graph.input if value.name in used]
    kept += [types[name] for name in sorted(given & used)]
    results = {output.name: output for output in graph.output}
    smaller = helper.make_graph(
        nodes,
        graph.name or "reduced",
        kept,
        [_as_output(name, results, types) for name in dict.fromkeys(wanted)],
        [tensor for tensor in graph.initializer if tensor.name in used - given],
    )
    options: dict[str, Any] = {"opset_imports": model.opset_import, "functions": model.functions}
    return helper.make_model(smaller, ir_version=model.ir_version, **options)


def _as_output(
    name: str, results: dict[str, ValueInfoProto], types: dict[str, ValueInfoProto]
) -> ValueInfoProto:
    """Return a tensor as an output; one whose type is not known has its name alone."""
    if name in results:
        return results[name]
    return types[name] if name in types else helper.make_empty_tensor_value_info(name)


def _needed(graph: GraphProto, outputs: list[str], given: set[str]) -> list[NodeProto]:
    """Return the nodes that lead to the outputs, in their order."""
    wanted, kept = set(outputs) - given, list[NodeProto]()
    for node in reversed(graph.node):
        if wanted & set(_results(node)) - given:
            kept.append(node)
            wanted |= _uses(node) - given
    return kept[::-1]


def _uses(node: NodeProto) -> set[str]:
    """Return the names that a node reads, those in graphs within it, too."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        inner = [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs
        for graph in inner:
            names |= {name for each in graph.node for name in _uses(each)}
            names |= {output.name for output in graph.output}
    return names
