"""The types of an ONNX model's tensors, as far as ONNX's shape inference knows them.

Inference leaves the results of a `Loop` open, because a body may change shapes from round to
round. Most keep them, so here the body is inferred with the types that its values begin with. Where
that is wrong, a cut that relies on it fails otherwise than the model, and is not taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

Types = dict[str, ValueInfoProto]


def types_of(model: ModelProto) -> Types:
    """Return the tensors whose types are known."""
    copy = ModelProto()
    copy.CopyFrom(model)
    known = _infer(copy)
    for node in model.graph.node:
        if node.op_type != "Loop" or known.keys() >= {name for name in node.output if name}:
            continue
        results = _results_of_loop(node, known, model)
        if results:
            copy.graph.value_info.extend(results)
            known = _infer(copy)
    return known


def _infer(model: ModelProto) -> Types:
    with suppress(Exception):  # a model that ONNX cannot read through still has its inputs
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    graph = model.graph
    known = {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}
    for tensor in graph.initializer:
        known[tensor.name] = _value(tensor.name, tensor.data_type, list(tensor.dims))
    return {name: value for name, value in known.items() if _is_known(value)}


def _is_known(value: ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type != 0 and value.type.tensor_type.HasField("shape")


def _results_of_loop(
    node: NodeProto, known: Mapping[str, ValueInfoProto], model: ModelProto
) -> list[ValueInfoProto]:
    """Return the types of a loop's results, if one round keeps those of the values it carries."""
    body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    carried = list(node.input)[2:]
    if any(name not in known for name in carried):
        return []
    number, condition, *inner = (value.name for value in body.input)
    given = [_value(number, TensorProto.INT64, []), _value(condition, TensorProto.BOOL, [])]
    given += [_rename(known[name], own) for name, own in zip(carried, inner, strict=True)]
    own = {value.name for value in given}
    given += [value for name, value in known.items() if name not in own]
    types = _infer(_model_of(body, given, model))
    results: list[ValueInfoProto] = []
    for at, (name, value) in enumerate(zip(node.output, body.output[1:], strict=True)):
        if not name or value.name not in types:
            continue
        type = types[value.name]
        results.append(_rename(type, name) if at < len(carried) else _stack(type, name))
    return results


def _model_of(body: GraphProto, inputs: list[ValueInfoProto], model: ModelProto) -> ModelProto:
    """Return a body as a model of its own; what it reads from outside is an input."""
    computed = {name for node in body.node for name in node.output}
    computed |= {tensor.name for tensor in body.initializer}
    given = [value for value in inputs if value.name not in computed]
    outputs = [helper.make_empty_tensor_value_info(value.name) for value in body.output]
    graph = helper.make_graph(body.node, "body", given, outputs, body.initializer)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def _value(name: str, element: int, shape: list[int]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def _rename(value: ValueInfoProto, name: str) -> ValueInfoProto:
    copy = ValueInfoProto()
    copy.CopyFrom(value)
    copy.name = name
    return copy


def _stack(value: ValueInfoProto, name: str) -> ValueInfoProto:
    """Return the type of the values of all rounds, one after another."""
    type = value.type.tensor_type
    sizes = [size.dim_value if size.HasField("dim_value") else None for size in type.shape.dim]
    return helper.make_tensor_value_info(name, type.elem_type, [None, *sizes])
