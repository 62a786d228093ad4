"""Evaluates a graph node by node, in Python while torch traces.

What depends on constants and sizes alone is computed at once. All else is calls of torch's
functions, by the table. An op that the table lacks is expanded where ONNX defines it as a function
of others. Each node runs in a frame of its own, named after the file and the node's number, so that
a trace of torch knows the node as it knows a line of Python.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, cast

from onnx import FunctionProto, defs
from torch import Tensor

from fewbit.errors import Error, Place, UnsupportedError

# Importing the ops fills the table.
from fewbit.frontends.onnx import ops  # noqa: F401  # pyright: ignore[reportUnusedImport]
from fewbit.frontends.onnx.constants import Constants
from fewbit.frontends.onnx.functions import (
    default_attributes,
    defined_function,
    opsets_of,
    type_bytes,
    written_call,
)
from fewbit.frontends.onnx.graph import Graph, Node, Reader, Reference
from fewbit.frontends.onnx.kinds import (
    BOOL,
    SMALL_FLOATS,
    UINT64,
    held_in,
    name_of,
    natural_kind,
    wrap_around,
)
from fewbit.frontends.onnx.layers import GivenLayer
from fewbit.frontends.onnx.size_conditions import size_condition
from fewbit.frontends.onnx.sizes import SIZE_OPS
from fewbit.frontends.onnx.table import OPS, Call, Entry
from fewbit.frontends.onnx.validate import check_types
from fewbit.frontends.onnx.values import Known, Many, Rows, Sizes, Traced, Value, outside_trace

ON_SMALL_FLOATS = (
    "Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "Constant",
    "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose",
    "Gather", "Slice", "Concat", "Split", "Expand", "Tile",
)  # fmt: skip
"""Conversions, and what only moves numbers."""
FORMS = ("Cast", "DequantizeLinear", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Ops whose result of a constant is that constant in another form."""


@dataclass
class Scope:
    """The names that a node sees."""

    values: ChainMap[str, Value | None]
    opsets: Mapping[str, int]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    prefix: str = ""
    """Before names of constants, which are unique in one graph only."""

    def inner(self, prefix: str = "") -> Scope:
        return replace(self, values=self.values.new_child(), prefix=self.prefix + prefix)


class Evaluator:
    def __init__(
        self,
        source: str,
        constants: Constants,
        functions: Mapping[tuple[str, str, str], FunctionProto] | None = None,
    ) -> None:
        self.source = source
        self.constants = constants
        self.functions = functions or {}
        self.tracing = False
        """Whether torch is tracing; before, a first run finds the constants."""
        self.failed: Place | None = None
        """The node at which a trace ended."""
        self.given: dict[str, GivenLayer] = {}
        """Layers that the file has quantized, by name."""
        self.noted: dict[tuple[int, str], list[str]] = {}
        """The constants that branches read, by node; found before the trace."""
        self.settled: set[tuple[int, str]] = set()
        """Nodes whose branch the example's sizes choose; found before the trace."""
        self.written_out: set[tuple[int, str]] = set()
        """Loops whose rounds are written out one by one; found before the trace."""
        self._frames: dict[int, Callable[..., Any]] = {}
        self._folded: dict[Any, tuple[Any, Any]] = {}
        self._expanded: dict[Any, tuple[Graph, FunctionProto]] = {}

    def graph(self, graph: Graph, scope: Scope) -> list[Value | None]:
        for name, value in graph.constants.items():
            scope.values[name] = replace(value, name=scope.prefix + name)
        for node in graph.nodes:
            self._run(node, scope)
        return [scope.values.get(name) for name in graph.outputs]

    def tensor(self, value: Known | Traced | Sizes, folding: bool = False) -> Tensor:
        if isinstance(value, Traced):
            return value.tensor
        if isinstance(value, Sizes):
            return value.traced()
        return value.tensor if folding else self.constants.read(value, self.tracing)

    def _run(self, node: Node, scope: Scope) -> None:
        if node.number not in self._frames:
            self._frames[node.number] = _frame(self.source, node.number)
        try:
            results = self._frames[node.number](self._results, node, scope)
        except Error as error:
            raise error.at(**vars(self._place(node))) from None
        except Exception as error:
            if self.tracing:
                self.failed = self.failed or self._place(node)
                raise  # Torch has its own reasons, which the tracer explains.
            first = next((line for line in str(error).splitlines() if line.strip()), "")
            raise Error(
                f"{node.op} fails: {type(error).__name__}: {first}", place=self._place(node)
            ) from error
        roots = self._roots(node, scope)
        for name, value in zip(node.outputs, results, strict=False):
            if not name:
                continue
            if isinstance(value, Traced) and not value.roots:
                value = replace(value, roots=roots)
            scope.values[name] = _with_name(value, scope.prefix + name)

    def _roots(self, node: Node, scope: Scope) -> frozenset[str]:
        names = {*node.inputs, *(n for graph in node.graphs() for n in graph.outer_names())}
        values = (scope.values.get(name) for name in names)
        return frozenset(root for v in values if isinstance(v, Traced) for root in v.roots)

    def _place(self, node: Node) -> Place:
        return Place(file=self.source, line=node.number, layer=node.name or None)

    def _results(self, node: Node, scope: Scope) -> Sequence[Value | None]:
        inputs = [self._input(node, scope, name) for name in node.inputs]
        attributes = {
            name: scope.attributes.get(value.name) if isinstance(value, Reference) else value
            for name, value in node.attributes.items()
        }
        attributes = {name: value for name, value in attributes.items() if value is not None}
        local = self.functions.get((node.domain, node.op, node.overload))
        if local is not None:
            body = self._body(node, local)
            return self._function(body, local, inputs, attributes, scope)
        entry = OPS.get((node.domain, node.op))
        if entry is None:
            return self._without_entry(node, inputs, attributes, scope)
        return self._call_function(entry, node, inputs, attributes, scope)

    def _input(self, node: Node, scope: Scope, name: str) -> Value | None:
        if not name:
            return None
        if name not in scope.values:
            raise Error(f"{node.op} reads '{name}', which nothing before it defines")
        return scope.values[name]

    def _call_function(
        self,
        entry: Entry,
        node: Node,
        inputs: list[Value | None],
        attributes: dict[str, Any],
        scope: Scope,
    ) -> Sequence[Value | None]:
        _check_kinds(entry, node, inputs, scope.opsets.get(node.domain, 1))
        given = [value for value in inputs if value is not None]
        folding = entry.folds and all(_is_known(value) for value in given)
        version = scope.opsets.get(node.domain, 1)
        call = Call(self, node, scope, attributes, inputs, version, self._place(node), folding)
        if folding:
            return self._fold(entry, call)
        if any(isinstance(value, Sizes) for value in given) and node.op in SIZE_OPS:
            computed = SIZE_OPS[node.op](call)
            if computed is not None:
                return [computed]
        results = _as_values(entry, call, entry.run(call, *_tensors(entry, call)))
        return [_with_condition(results[0], call), *results[1:]] if results else results

    def _fold(self, entry: Entry, call: Call) -> Sequence[Value | None]:
        key = (id(call.node), call.version, *map(id, call.inputs))
        if key not in self._folded:
            with outside_trace():
                results = _as_values(entry, call, entry.run(call, *_tensors(entry, call)))
            self._folded[key] = results, (call.node, call.inputs)  # kept, so that ids stay theirs
        return self._folded[key][0]

    def _without_entry(
        self, node: Node, inputs: list[Value | None], attributes: dict[str, Any], scope: Scope
    ) -> Sequence[Value | None]:
        expanded = self._expansion(node, inputs, attributes, scope)
        if expanded is None:
            raise UnsupportedError(f"{node.op} is not imported")
        return self._function(*expanded, inputs, attributes, scope, defaults=node)

    def expand(self, call: Call) -> Sequence[Value | None]:
        """The call as ONNX defines the op in terms of others."""
        expanded = self._expansion(call.node, call.inputs, call.attributes, call.scope)
        if expanded is None:
            raise call.refusal("this form of it is not known")
        return self._function(
            *expanded, call.inputs, call.attributes, call.scope, defaults=call.node
        )

    def _expansion(
        self,
        node: Node,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Any],
        scope: Scope,
    ) -> tuple[Graph, FunctionProto] | None:
        types = [type_bytes(value) for value in inputs]
        call = written_call(node, attributes)
        key = (call, *types)
        if key not in self._expanded:
            proto = defined_function(node, scope.opsets.get(node.domain, 1), call, types)
            if proto is None:
                return None
            self._expanded[key] = self._body(node, proto), proto
        return self._expanded[key]

    def _body(self, node: Node, proto: FunctionProto) -> Graph:
        key = (node.number, proto.SerializeToString())
        if key not in self._expanded:
            with outside_trace():
                read = Reader().function(proto)
            numbered = tuple(
                replace(inner, number=node.number, module=node.module) for inner in read.nodes
            )
            self._expanded[key] = replace(read, nodes=numbered), proto
        return self._expanded[key][0]

    def _function(
        self,
        body: Graph,
        proto: FunctionProto,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Any],
        scope: Scope,
        defaults: Node | None = None,
    ) -> Sequence[Value | None]:
        with outside_trace():
            bound = {a.name: Reader().attribute(a) for a in proto.attribute_proto}
            if defaults is not None:
                bound |= default_attributes(defaults, scope.opsets.get(defaults.domain, 1))
        values: dict[str, Value | None] = dict.fromkeys(proto.input)
        values |= dict(zip(proto.input, inputs, strict=False))
        opsets = {"": defs.onnx_opset_version()} | dict(scope.opsets) | opsets_of(proto)
        name = next(
            (value.name for value in inputs if value is not None and value.name), proto.name
        )
        inner = Scope(
            ChainMap(values),
            opsets,
            bound | dict(attributes),
            f"{scope.prefix}{name}/{proto.name}/",
        )
        return self.graph(body, inner)


def _check_kinds(entry: Entry, node: Node, inputs: Sequence[Value | None], version: int) -> None:
    kinds = [None if v is None or isinstance(v, Many) else v.kind for v in inputs]
    check_types(node.op, node.domain, version, kinds)
    for value in inputs:
        if value is None or isinstance(value, Many):
            continue
        if value.kind == UINT64 and not entry.any_sign and not isinstance(value, Known):
            raise UnsupportedError(f"{node.op} cannot be imported: it is not computed on uint64")
        if value.kind in SMALL_FLOATS and node.op not in ON_SMALL_FLOATS:
            raise UnsupportedError(
                f"{node.op} cannot be imported: it is not computed on {name_of(value.kind)}"
            )


def _is_known(value: Value) -> bool:
    if isinstance(value, Many) and isinstance(value.items, Rows):
        return isinstance(value.items.whole, Known)
    if isinstance(value, Many):
        return all(isinstance(item, Known) for item in value.items)
    return isinstance(value, Known)


def _tensors(entry: Entry, call: Call) -> list[Tensor | None]:
    count = len(call.inputs) if entry.tensors is None else min(entry.tensors, len(call.inputs))
    return [call.optional(i) for i in range(count)]


def _as_values(entry: Entry, call: Call, results: Any) -> Sequence[Value | None]:
    several = cast("Sequence[Any]", results) if isinstance(results, tuple | list) else (results,)
    return [_as_value(entry, call, result) for result in several]


def _as_value(entry: Entry, call: Call, result: Any) -> Value | None:
    if isinstance(result, Known) and not result.origin:
        return replace(result, origin=_origin(call))
    if not isinstance(result, Tensor):
        return result
    kind = entry.gives or _first_kind(call.inputs)
    if kind is None or held_in(kind) is not result.dtype:
        kind = natural_kind(result.dtype)
    elif entry.wraps:
        result = wrap_around(result, kind)
    if not call.folding:
        return Traced(result, kind)
    return Known(result, kind, origin=_origin(call))


def _origin(call: Call) -> str:
    value = call.input(0)
    if not isinstance(value, Known) or call.op not in FORMS:
        return ""
    return value.origin or value.name


def _first_kind(inputs: Sequence[Value | None]) -> int | None:
    for value in inputs:
        if isinstance(value, Known | Traced | Sizes):
            return value.kind
    return None


def _with_condition(value: Value | None, call: Call) -> Value | None:
    if not isinstance(value, Traced) or value.kind != BOOL or value.condition is not None:
        return value
    return replace(value, condition=size_condition(call))


def _with_name(value: Value | None, name: str) -> Value | None:
    if value is None or value.name:
        return value
    return replace(value, name=name)


def _here(run: Any, node: Any, scope: Any) -> Any: return run(node, scope)  # fmt: skip


def _frame(source: str, number: int) -> Callable[..., Any]:
    """A function that calls its first argument, from 'line `number` of `source`'.

    Torch keeps frames of functions of this name, as those of a module's own code.
    """
    code = _here.__code__.replace(co_filename=source, co_firstlineno=number, co_name="forward")
    return FunctionType(code, {})


@contextmanager
def tracing(evaluator: Evaluator) -> Generator[None]:
    evaluator.tracing = True
    try:
        yield
    finally:
        evaluator.tracing = False
