"""Ops that ONNX itself defines as functions of others.

Some definitions depend on the call: on the types of its inputs and on its attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from onnx import FunctionProto, ModelProto, NodeProto, TypeProto, defs, helper

from fewbit.frontends.onnx.graph import Node, Reader
from fewbit.frontends.onnx.table import OPS
from fewbit.frontends.onnx.values import Many, Value


def opsets_of(proto: FunctionProto | ModelProto) -> dict[str, int]:
    return {("" if o.domain == "ai.onnx" else o.domain): o.version for o in proto.opset_import}


def written_call(node: Node, attributes: Mapping[str, Any]) -> bytes:
    """The node as in a file, with values in place of references to a function's attributes."""
    proto = NodeProto()
    proto.CopyFrom(node.proto)
    for attribute in proto.attribute:
        if attribute.ref_attr_name and attribute.name in attributes:
            attribute.CopyFrom(helper.make_attribute(attribute.name, attributes[attribute.name]))
    kept = [a for a in proto.attribute if not a.ref_attr_name]
    del proto.attribute[:]
    proto.attribute.extend(kept)
    return proto.SerializeToString()


def defined_function(
    node: Node, version: int, call: bytes, types: Sequence[bytes]
) -> FunctionProto | None:
    """The function as which ONNX defines an op, in the form for inputs of these types."""
    schema = _schema(node, version)
    if schema is None:
        return None
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= version]
        function = schema.get_function_with_opset_version(max(versions)) if versions else None
    elif schema.has_context_dependent_function:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        if not versions:
            return None
        function = schema.get_context_dependent_function_with_opset_version(
            max(versions), call, list(types)
        )
    else:
        return None
    proto = FunctionProto()
    proto.ParseFromString(
        function if isinstance(function, bytes) else cast(Any, function).SerializeToString()
    )
    return proto


def is_defined(node: Node, version: int) -> bool:
    """Return whether there is an entry for an op, or ONNX defines it by others."""
    if (node.domain, node.op) in OPS:
        return True
    schema = _schema(node, version)
    if schema is None:
        return False
    return schema.has_function or schema.has_context_dependent_function


def _schema(node: Node, version: int) -> Any:
    try:
        return defs.get_schema(node.op, version, node.domain)
    except defs.SchemaError:
        return None


def default_attributes(node: Node, version: int) -> dict[str, Any]:
    schema = defs.get_schema(node.op, version, node.domain)
    reader = Reader()
    return {
        name: reader.attribute(a.default_value)
        for name, a in schema.attributes.items()
        if a.default_value.type
    }


def type_bytes(value: Value | None) -> bytes:
    if value is None or isinstance(value, Many):
        return TypeProto().SerializeToString()
    shape = [size if isinstance(size, int) else None for size in value.shape]
    return helper.make_tensor_type_proto(value.kind, shape).SerializeToString()
