"""Ops taken apart node by node, without a second trace of the model.

`ExportedProgram.run_decompositions` traces a whole program twice more, though the table concerns
few of its nodes. Where all sizes are static, each node that the table takes apart is traced by
itself here, once for all nodes that are called alike, and its ops take its place. An op that works
in place is the op that returns its result, provided that nothing looks at the changed tensor
through another view of it. Whatever does not fit (dynamic sizes, graphs within graphs, writes into
parts of tensors) is left to torch, which traces it as a whole.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves

from fewbit.decompositions.composite_ops import split_table
from fewbit.decompositions.rebuild import KEPT_META, with_graph

_COMPOSITE = cast(Any, torch)._C.DispatchKey.CompositeImplicitAutograd
Table = Mapping[Any, Callable[..., Any]]


def rewrite_nodes(program: ExportedProgram, table: Table) -> ExportedProgram | None:
    """The program with its ops taken apart, functional; None if it must be traced as a whole."""
    if not _is_plain(program):
        return None
    from torch.export import exported_program as torch_export

    private = cast(Any, torch_export)
    changed, others = split_table(table)
    mode = private._detect_fake_mode_from_gm(program.graph_module)
    if mode is None:
        return None
    with mode, private._override_composite_implicit_decomp(changed), torch.no_grad():
        kept = private._special_op_to_preserve_cia
        whole = frozenset(op for op, function in changed.items() if function is kept)
        try:
            return _Rewriting(program, others, whole).run()
        except _NeedsTraceError:
            return None


class _NeedsTraceError(Exception):
    """A node that cannot be rewritten by itself."""


def _is_plain(program: ExportedProgram) -> bool:
    """Whether sizes are static, nothing outlives a call, and no node has a graph of its own."""
    specs = program.graph_signature
    if any(spec.kind is not OutputKind.USER_OUTPUT for spec in specs.output_specs):
        return False
    kinds = {InputKind.CUSTOM_OBJ, InputKind.TOKEN}
    if any(spec.kind in kinds for spec in specs.input_specs):
        return False
    return all(map(_is_plain_node, program.graph.nodes))


def _is_plain_node(node: Node) -> bool:
    if node.op == "call_function":
        known = isinstance(node.target, OpOverload) or node.target is operator.getitem
        if not known or _has_effect(node):
            return False
    elif node.op not in ("placeholder", "output"):
        return False
    return all(map(_is_static, tree_leaves(node.meta.get("val"))))


def _has_effect(node: Node) -> bool:
    """Whether an op is there for something else than its results; to check a type is nothing."""
    if node.op != "call_function" or node.target is torch.ops.aten._assert_tensor_metadata.default:
        return False
    return node.meta.get("val") is None


def _is_static(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not any(isinstance(size, torch.SymInt) for size in cast(Any, value).shape)
    return not isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


class _Rewriting:
    """A new graph, written while the old one is read."""

    def __init__(self, program: ExportedProgram, table: Table, whole: frozenset[Any]) -> None:
        self.program = program
        self.expansions = Expansions(table, whole)
        self.graph = Graph()
        self.values: dict[Node, Any] = {}
        self.owners: dict[Node, Node] = {}
        """By each new node, that whose memory it may share."""
        self.sharers: dict[Node, list[Node]] = {}
        """By each such owner, the old nodes whose values lie in its memory."""
        self.last_use = {
            each: i for i, node in enumerate(program.graph.nodes) for each in node.all_input_nodes
        }

    def run(self) -> ExportedProgram:
        for number, node in enumerate(self.program.graph.nodes):
            if node.op == "call_function":
                self._set(node, self._rewrite(node, number))
            elif node.op == "placeholder":
                # Signatures refer to inputs by their names, some of which torch would change.
                copied = self._copy(node)
                self._set(node, copied)
                copied.name, copied.target = node.name, node.target
            else:
                self._copy(node)
        self.graph.eliminate_dead_code()
        module = GraphModule(self.program.graph_module, self.graph)
        module.meta.update(self.program.graph_module.meta)
        return with_graph(self.program, module, self._signature(), self.program.state_dict)

    def _signature(self) -> ExportGraphSignature:
        old = self.program.graph_signature
        by_name = {node.name: node for node in self.program.graph.nodes}
        outputs: list[OutputSpec] = []
        for spec in old.output_specs:
            arg = spec.arg
            if isinstance(arg, TensorArgument):
                arg = TensorArgument(self.values[by_name[arg.name]].name)
            outputs.append(OutputSpec(spec.kind, arg, spec.target))
        return ExportGraphSignature(list(old.input_specs), outputs)

    def _set(self, node: Node, value: Any) -> None:
        self.values[node] = value
        for each in tree_leaves(value):
            if isinstance(each, Node):
                self.sharers.setdefault(self.owners[each], []).append(node)

    def _copy(self, node: Node) -> Node:
        copied = self.graph.node_copy(node, lambda each: self.values[each])
        self._note_owner(copied)
        return copied

    def _note_owner(self, node: Node) -> None:
        source = _source(node)
        self.owners[node] = node if source is None else self.owners.get(source, source)

    def _rewrite(self, node: Node, number: int) -> Any:
        if node.target is operator.getitem:
            source, index = cast(Any, node.args)
            made = self.values[source]
            return self._copy(node) if isinstance(made, Node) else made[index]
        op = cast(OpOverload, node.target)
        if not _is_write(node):
            return self._write(node, op)
        changed = node.args[0]
        if not isinstance(changed, Node) or not self._is_alone(changed, number):
            raise _NeedsTraceError
        result = self._write(node, _functional(op))
        if not isinstance(result, Node) or not _are_alike(result, changed):
            raise _NeedsTraceError
        before = self.values[changed]
        for old in list(self.sharers[self.owners[before]]):
            if self.values[old] is before:
                self._set(old, result)
        return result

    def _is_alone(self, changed: Node, number: int) -> bool:
        """Whether no other view of a tensor is looked at after this node changes it."""
        value = self.values[changed]
        if not isinstance(value, Node):
            return False
        owner = self.owners[value]
        if owner.op == "placeholder":
            return False
        read_later = (old for old in self.sharers[owner] if self.last_use.get(old, -1) > number)
        return not any(
            each is not value and self.owners.get(each) is owner
            for old in read_later
            for each in tree_leaves(self.values[old])
        )

    def _write(self, node: Node, op: OpOverload) -> Any:
        """Return the op's results, as one node or several that take its place."""
        expansion = self.expansions.find(op, node)
        if expansion is None:
            copied = self._copy(node)
            copied.target = op
            return copied
        tensors = iter(node.all_input_nodes)
        inside: dict[Node, Any] = {}
        for each in expansion.nodes:
            if each.op == "placeholder":
                inside[each] = self.values[next(tensors)]
            elif each.op == "output":
                return map_arg(each.args[0], lambda result: inside[result])
            elif each.op == "call_function":
                inside[each] = self._inline(each, node, inside)
            else:
                raise _NeedsTraceError
        raise _NeedsTraceError

    def _inline(self, each: Node, place: Node, inside: Mapping[Node, Any]) -> Node:
        copied = self.graph.node_copy(each, lambda argument: inside[argument])
        copied.meta = {key: place.meta[key] for key in KEPT_META if key in place.meta}
        copied.meta["val"] = each.meta.get("val")
        self._note_owner(copied)
        return copied


class Expansions:
    """What ops become by a table of decompositions, traced once for all calls that are alike."""

    def __init__(self, table: Table, whole: frozenset[Any]) -> None:
        self.table = table
        self.whole = whole
        self.known: dict[Any, Graph] = {}

    def find(self, op: OpOverload, node: Node) -> Graph | None:
        """The ops that a node becomes, placeholders for its operands; None if it stays."""
        if op not in self.table and (op in self.whole or not _is_composite(op)):
            return None
        key = _key(op, node)
        if key not in self.known:
            self.known[key] = self._trace(op, node)
        return self.known[key]

    def _trace(self, op: OpOverload, node: Node) -> Graph:
        from torch._dispatch.python import enable_python_dispatcher

        operands = node.all_input_nodes
        values = [each.meta["val"] for each in operands]

        def call(*tensors: Tensor) -> Any:
            given = dict(zip(operands, tensors, strict=True))
            args, kwargs = map_arg((node.args, node.kwargs), lambda each: given[each])
            return op(*args, **kwargs)

        with enable_python_dispatcher():
            graph = make_fx(call, decomposition_table=self.table)(*values).graph
        # What a mask chooses is counted inside, though sizes of operands and results are static.
        if any(_is_write(each) or not _is_plain_node(each) for each in graph.nodes):
            raise _NeedsTraceError
        return graph


def _key(op: OpOverload, node: Node) -> Any:
    numbers = {each: i for i, each in enumerate(node.all_input_nodes)}
    values = [each.meta["val"] for each in numbers]
    if not all(isinstance(value, Tensor) for value in values):
        raise _NeedsTraceError
    types = tuple((tuple(v.shape), v.stride(), v.dtype, v.requires_grad) for v in values)
    args = map_arg((node.args, node.kwargs), lambda each: f"%{numbers[each]}")
    return op, repr(args), types


def _is_composite(op: OpOverload) -> bool:
    return cast(Any, op).has_kernel_for_dispatch_key(_COMPOSITE)


def _is_write(node: Node) -> bool:
    target: Any = node.target
    return isinstance(target, OpOverload) and cast(Any, target)._schema.is_mutable


def _functional(op: OpOverload) -> OpOverload:
    """The op that returns what another writes into its first operand."""
    schema = cast(Any, op)._schema
    written = [argument for argument in schema.arguments if _writes(argument)]
    packet = getattr(getattr(torch.ops, op.namespace), schema.name.split("::")[1][:-1], None)
    found = getattr(packet, schema.overload_name or "default", None)
    if not schema.name.endswith("_") or written != [schema.arguments[0]] or found is None:
        raise _NeedsTraceError
    return found


def _writes(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _are_alike(new: Node, old: Node) -> bool:
    a, b = new.meta.get("val"), old.meta.get("val")
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return False
    return a.shape == b.shape and a.dtype == b.dtype


def _source(node: Node) -> Node | None:
    """The operand whose memory a node's result may share: that of views, and of parts of a list."""
    if node.op != "call_function":
        return None
    if node.target is not operator.getitem:
        schema = cast(Any, node.target)._schema
        if not any(argument.alias_info is not None for argument in schema.arguments):
            return None
    source = node.args[0]
    return source if isinstance(source, Node) else None
