"""What a model file must be before anything is computed with it.

Protobuf only says that bytes are fields of a message. Whether data are as long as their dimensions
say, types exist, nodes have the inputs and attributes that ONNX defines and names are defined once,
is looked at here, for all graphs and functions of a file; what reads it later may rely on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from google.protobuf.message import Message
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
    defs,
)

from fewbit.errors import Error, UnsupportedError

WHOLE = "is the file whole, and made for this version of ONNX?"
BITS: dict[int, int] = {
    TensorProto.FLOAT: 32, TensorProto.DOUBLE: 64,
    TensorProto.FLOAT16: 16, TensorProto.BFLOAT16: 16, TensorProto.INT8: 8,
    TensorProto.INT16: 16, TensorProto.INT32: 32, TensorProto.INT64: 64,
    TensorProto.UINT8: 8, TensorProto.UINT16: 16, TensorProto.UINT32: 32, TensorProto.UINT64: 64,
    TensorProto.INT4: 4, TensorProto.UINT4: 4, TensorProto.INT2: 2, TensorProto.UINT2: 2,
    TensorProto.BOOL: 8, TensorProto.COMPLEX64: 64, TensorProto.COMPLEX128: 128,
    TensorProto.FLOAT8E4M3FN: 8, TensorProto.FLOAT8E4M3FNUZ: 8, TensorProto.FLOAT8E5M2: 8,
    TensorProto.FLOAT8E5M2FNUZ: 8, TensorProto.FLOAT8E8M0: 8, TensorProto.FLOAT4E2M1: 4,
}  # fmt: skip
"""How many bits an element takes in a file."""
LISTS: dict[int, tuple[str, int]] = {
    TensorProto.FLOAT: ("float_data", 32), TensorProto.COMPLEX64: ("float_data", 32),
    TensorProto.DOUBLE: ("double_data", 64), TensorProto.COMPLEX128: ("double_data", 64),
    TensorProto.INT64: ("int64_data", 64), TensorProto.UINT32: ("uint64_data", 32),
    TensorProto.UINT64: ("uint64_data", 64), TensorProto.STRING: ("string_data", 0),
}  # fmt: skip
"""Where numbers are listed one by one, and how many bits each stands for; others in int32_data."""
LONGEST = 2**31 - 1
"""The largest dimension: sizes and their products are computed with in 64 bits."""
MOST_ELEMENTS = 2**36
FLOATS = {"tensor(float)", "tensor(double)", "tensor(float16)", "tensor(bfloat16)"}
INTEGERS = (
    TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8,
    TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64, TensorProto.INT4, TensorProto.UINT4,
    TensorProto.INT2, TensorProto.UINT2, TensorProto.BOOL,
)  # fmt: skip


def validate(model: ModelProto) -> None:
    """Refuse a model that is not as ONNX says; the message names what is wrong."""
    check_texts(model)
    opsets = _opsets(model.opset_import)
    _check_functions(model.functions)
    _check_graph(model.graph, opsets, _local(model))
    for function in model.functions:
        own = {**opsets, **_opsets(function.opset_import)}
        for node in function.node:
            _check_node(node, own, _local(model))
        _check_once(_outputs(function.node), f"the function '{function.name}'")


def tensors_of(model: ModelProto) -> Iterator[TensorProto]:
    """All constants in a file."""
    yield from _graph_tensors(model.graph)
    for function in model.functions:
        yield from _node_tensors(function.node)


def check_data(tensor: TensorProto) -> None:
    """Return whether there are as many data as the dimensions ask for."""
    if tensor.data_type == TensorProto.UNDEFINED or tensor.data_type not in _kinds():
        raise _wrong(f"the constant '{tensor.name}' is of the type {tensor.data_type}, of no type")
    count, shape = _elements(tensor.dims, f"the constant '{tensor.name}'")
    if tensor.HasField("segment"):
        raise UnsupportedError(f"the constant '{tensor.name}' is a segment of one")
    if tensor.data_location == TensorProto.EXTERNAL:
        raise UnsupportedError(
            f"the data of '{tensor.name}' is in another file",
            hint="give the path of the model, with its files beside it",
        )
    field, bits = LISTS.get(tensor.data_type, ("int32_data", 0))
    kind = TensorProto.DataType.Name(tensor.data_type).lower()
    if tensor.HasField("raw_data") and tensor.data_type != TensorProto.STRING:
        wanted, actual = -(-count * BITS[tensor.data_type] // 8), len(tensor.raw_data)
        unit = "bytes"
    else:
        size = BITS.get(tensor.data_type, 0)
        # Elements of less than a byte are packed, in this list too.
        per_item = bits or (size if size >= 8 else 8)
        wanted = count if tensor.data_type == TensorProto.STRING else -(-count * size // per_item)
        actual, unit = len(getattr(tensor, field)), "numbers"
    if wanted != actual:
        raise _wrong(
            f"the constant '{tensor.name}' is {shape} of {kind}, which is {wanted} {unit}, and "
            f"has {actual}"
        )


def check_types(op: str, domain: str, version: int, kinds: Sequence[int | None]) -> None:
    """Refuse integers where ONNX defines an op on floats alone."""
    schema = schema_of(op, domain, version)
    if schema is None or not schema.inputs:
        return
    for number, kind in enumerate(kinds):
        formal = schema.inputs[min(number, len(schema.inputs) - 1)]
        if kind in INTEGERS and formal.types and set(formal.types) <= FLOATS:
            name = TensorProto.DataType.Name(kind).lower()  # pyright: ignore[reportArgumentType]
            raise _wrong(f"{op} takes floats as '{formal.name}', and is given {name}")


def schema_of(op: str, domain: str, version: int) -> Any:
    try:
        return defs.get_schema(op, version, domain)
    except defs.SchemaError:
        return None


def check_texts(message: Message) -> None:
    """Protobuf gives bytes where a text is not one."""
    for field, value in message.ListFields():
        items = value if field.is_repeated else [value]
        if field.type == field.TYPE_MESSAGE:
            for item in items:
                check_texts(item)
        elif field.type == field.TYPE_STRING and any(isinstance(item, bytes) for item in items):
            word = message.DESCRIPTOR.name.removesuffix("Proto").lower()
            raise _wrong(f"a text of the file is not in UTF-8: {field.name} of a {word}")


def _check_graph(graph: GraphProto, opsets: Mapping[str, int], local: set[tuple[str, str]]) -> None:
    for tensor in graph.initializer:
        check_data(tensor)
    for sparse in graph.sparse_initializer:
        _check_sparse(sparse)
    for info in graph.input:
        _check_info(info)
    what = f"the graph '{graph.name}'"
    named = [t.name for t in graph.initializer] + [s.values.name for s in graph.sparse_initializer]
    _check_once([*named, *_outputs(graph.node)], what)
    _check_once([info.name for info in graph.input], what)
    for node in graph.node:
        _check_node(node, opsets, local)


def _check_node(node: NodeProto, opsets: Mapping[str, int], local: set[tuple[str, str]]) -> None:
    domain = "" if node.domain == "ai.onnx" else node.domain
    what = f"the node '{node.name or node.op_type}'"
    if not node.op_type:
        raise _wrong(f"{what} names no op")
    _check_once([attribute.name for attribute in node.attribute], what)
    for attribute in node.attribute:
        _check_attribute(attribute, what, opsets, local)
    schema = schema_of(node.op_type, domain, opsets.get(domain, 1))
    if schema is None or (domain, node.op_type) in local:
        return
    for name, count, least, most in (
        ("inputs", len(node.input), schema.min_input, schema.max_input),
        ("outputs", len(node.output), schema.min_output, schema.max_output),
    ):
        if not least <= count <= most:
            raise _wrong(f"{what} has {count} {name}, and {node.op_type} has {least} to {most}")
    given = {attribute.name: attribute for attribute in node.attribute}
    for name, wanted in schema.attributes.items():
        if name not in given:
            if wanted.required:
                raise _wrong(f"{what} lacks the attribute '{name}' of {node.op_type}")
        elif given[name].type != int(wanted.type.value):
            kind = AttributeProto.AttributeType.Name(given[name].type)
            raise _wrong(
                f"the attribute '{name}' of {what} is of the kind {kind}, and {node.op_type} takes "
                f"{wanted.type.name}"
            )


def _check_attribute(
    attribute: AttributeProto, what: str, opsets: Mapping[str, int], local: set[tuple[str, str]]
) -> None:
    known = AttributeProto.AttributeType.values()
    if attribute.type == AttributeProto.UNDEFINED or attribute.type not in known:
        raise _wrong(f"the attribute '{attribute.name}' of {what} is of no kind")
    for tensor in _attribute_tensors(attribute):
        check_data(tensor)
    for sparse in _attribute_sparse(attribute):
        _check_sparse(sparse)
    for graph in _attribute_graphs(attribute):
        _check_graph(graph, opsets, local)


def _check_sparse(sparse: SparseTensorProto) -> None:
    name = sparse.values.name
    check_data(sparse.values)
    check_data(sparse.indices)
    count, shape = _elements(sparse.dims, f"the constant '{name}'")
    indices, held = list(sparse.indices.dims), prod(sparse.values.dims)
    fits = indices == [held] or indices == [held, len(sparse.dims)]
    if sparse.indices.data_type != TensorProto.INT64 or len(sparse.values.dims) != 1 or not fits:
        raise _wrong(f"the sparse constant '{name}' has {held} values, and other indices")
    from onnx import numpy_helper

    places = numpy_helper.to_array(sparse.indices)
    limits = [count] if places.ndim == 1 else list(sparse.dims)
    if places.size and ((places < 0).any() or (places.reshape(held, -1) >= limits).any()):
        raise _wrong(f"the sparse constant '{name}' has values outside of {shape}")


def _check_info(info: ValueInfoProto) -> None:
    what = f"the input '{info.name}'"
    if info.type.WhichOneof("value") != "tensor_type":
        return
    type = info.type.tensor_type
    if type.elem_type == TensorProto.UNDEFINED or type.elem_type not in _kinds():
        raise _wrong(f"{what} is of the type {type.elem_type}, of no type")
    # Some exporters write -1 for a size that is not known.
    _elements([max(d.dim_value, 0) or 1 for d in type.shape.dim], what)


def _elements(dims: Iterable[int], what: str) -> tuple[int, str]:
    """Return how many elements there are, and the shape as text."""
    sizes = list(dims)
    shape = "x".join(map(str, sizes)) or "()"
    if any(size < 0 for size in sizes):
        raise _wrong(f"{what} has the dimensions {shape}, and none can be negative")
    if any(size > LONGEST for size in sizes) or prod(sizes) > MOST_ELEMENTS:
        raise _wrong(f"{what} has the dimensions {shape}, which no memory holds")
    return prod(sizes), shape


def _check_functions(functions: Iterable[FunctionProto]) -> None:
    """Each is defined once, and none calls itself, also not by way of others."""
    bodies = {(f.domain, f.name, f.overload): f for f in functions}
    done: set[tuple[str, str, str]] = set()

    def visit(key: tuple[str, str, str], calling: tuple[tuple[str, str, str], ...]) -> None:
        if key in calling:
            raise _wrong(f"the function '{key[1]}' calls itself")
        if key in done or key not in bodies:
            return
        for node in _all_nodes(bodies[key].node):
            visit((node.domain, node.op_type, node.overload), (*calling, key))
        done.add(key)

    _check_once([f"{f.domain}.{f.name}.{f.overload}" for f in functions], "the model")
    for key in bodies:
        visit(key, ())


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in _attribute_graphs(attribute):
                yield from _all_nodes(graph.node)


def _graph_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            yield from _attribute_tensors(attribute)
            for sparse in _attribute_sparse(attribute):
                yield from (sparse.values, sparse.indices)
            for graph in _attribute_graphs(attribute):
                yield from _graph_tensors(graph)


def _attribute_tensors(attribute: AttributeProto) -> list[TensorProto]:
    return _payload(attribute, AttributeProto.TENSOR, attribute.t, attribute.tensors)


def _attribute_sparse(attribute: AttributeProto) -> list[SparseTensorProto]:
    kind, one = AttributeProto.SPARSE_TENSOR, attribute.sparse_tensor
    return _payload(attribute, kind, one, attribute.sparse_tensors)


def _attribute_graphs(attribute: AttributeProto) -> list[GraphProto]:
    return _payload(attribute, AttributeProto.GRAPH, attribute.g, attribute.graphs)


def _payload(attribute: AttributeProto, kind: int, one: Any, many: Iterable[Any]) -> list[Any]:
    """Return what an attribute has of a kind; nothing where a call of its function gives it."""
    if attribute.ref_attr_name:
        return []
    return [one] if attribute.type == kind else list(many)


def _outputs(nodes: Iterable[NodeProto]) -> list[str]:
    return [name for node in nodes for name in node.output if name]


def _check_once(names: Iterable[str], what: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise _wrong(f"'{twice[0]}' is defined twice in {what}")


def _opsets(listed: Iterable[Any]) -> dict[str, int]:
    for opset in listed:
        if not 0 < opset.version <= LONGEST:
            raise _wrong(f"the opset '{opset.domain}' is of version {opset.version}")
    return {("" if o.domain == "ai.onnx" else o.domain): o.version for o in listed}


def _local(model: ModelProto) -> set[tuple[str, str]]:
    return {(f.domain, f.name) for f in model.functions}


def _kinds() -> Sequence[int]:
    return TensorProto.DataType.values()


def _wrong(what: str) -> Error:
    return Error(what, hint=WHOLE)
