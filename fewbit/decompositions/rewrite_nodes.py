"""Ops taken apart node by node, without a second trace of the model.

`ExportedProgram.run_decompositions` traces a whole program twice more, though the table concerns
few of its nodes. Here each node that the table takes apart is traced by itself, once for all nodes
that are called alike (`expansions`), and its ops take its place. An op that works in place is the
op that returns its result, and what else shares the memory is computed anew (`views`). Sizes that
are computed on the way are computed once, from those of inputs. Whatever does not fit (graphs
within graphs, sizes that depend on data) is left to torch, which traces it as a whole.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
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
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves, tree_map_only

from fewbit.decompositions.composite_ops import split_table
from fewbit.decompositions.expansions import (
    SYMBOLIC,
    Expansions,
    NeedsTraceError,
    Table,
    drop_unused,
    is_plain,
    operands_of,
    sizes_of,
    symbols_of,
)
from fewbit.decompositions.rebuild import KEPT_META, with_graph
from fewbit.decompositions.views import (
    PUT_ITEMS,
    PUTS,
    SAME,
    View,
    can_repeat,
    functional,
    is_write,
    viewed_operand,
)

_ALIKE: dict[Any, Any] = {torch.ops.aten.lift_fresh_copy.default: torch.ops.aten.clone.default}
"""Ops that torch has beside others for the sake of its tracers."""


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
            return _Rewriting(program, Expansions(others, whole), mode.shape_env).run()
        except NeedsTraceError:
            return None


def _is_plain(program: ExportedProgram) -> bool:
    """Return whether all sizes follow from those of inputs, and no node has a graph of its own."""
    specs = program.graph_signature
    results = {OutputKind.USER_OUTPUT, OutputKind.BUFFER_MUTATION}
    if any(spec.kind not in results for spec in specs.output_specs):
        return False
    kinds = {InputKind.CUSTOM_OBJ, InputKind.TOKEN}
    if any(spec.kind in kinds for spec in specs.input_specs):
        return False
    inputs = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"]
    known = _own_symbols(inputs)
    return all(is_plain(node, known) for node in program.graph.nodes)


def _own_symbols(inputs: Sequence[Any]) -> set[Any]:
    """Symbols that are the size of an input, or a number that is given."""
    symbols: set[Any] = set()
    for value in inputs:
        sizes = sizes_of(value.shape if isinstance(value, Tensor) else (value,))
        symbols |= {size for size in sizes if getattr(size, "is_Symbol", False)}
    return symbols


class _Rewriting:
    """A new graph, written while the old one is read."""

    def __init__(self, program: ExportedProgram, expansions: Expansions, sizes: Any) -> None:
        self.program = program
        self.expansions = expansions
        self.shape_env = sizes
        self.graph = Graph()
        self.place: Node | None = None
        """The old node that is rewritten."""
        self.values: dict[Node, Any] = {}
        """By each old node, its view, or several in a structure."""
        self.sharers: dict[View, list[Node]] = {}
        """By each owner of memory, the old nodes whose values lie in it."""
        self.last_use = {
            each: i for i, node in enumerate(program.graph.nodes) for each in node.all_input_nodes
        }

    def run(self) -> ExportedProgram:
        changed: dict[str, Node] = {}
        for number, node in enumerate(self.program.graph.nodes):
            self.place = node
            if node.op == "call_function":
                self._set(node, self._rewrite(node, number))
            elif node.op == "placeholder":
                # Signatures refer to inputs by their names, some of which torch would change.
                copied = self._copy(node, self.values)
                self._set(node, copied)
                copied.node.name, copied.node.target = node.name, node.target
            else:
                changed = self._changed_buffers()
                returned = self._copy(node, self.values).node
                returned.args = ((*changed.values(), *cast(Any, returned.args[0])),)
        drop_unused(self.graph)
        module = GraphModule(self.program.graph_module, self.graph)
        module.meta.update(self.program.graph_module.meta)
        inputs = [node.meta.get("val") for node in self.program.graph.nodes]
        limits = self._share_sizes(module) if symbols_of(inputs) else None
        signature = self._signature(list(changed))
        return with_graph(self.program, module, signature, self.program.state_dict, limits)

    def _set(self, node: Node, value: Any) -> None:
        self.values[node] = value
        for each in tree_leaves(value):
            if isinstance(each, View):
                self.sharers.setdefault(each.root, []).append(node)

    def _changed_buffers(self) -> dict[str, Node]:
        """The new values of buffers that were written, by name."""
        changed: dict[str, Node] = {}
        specs = self.program.graph_signature
        inputs = [node for node in self.program.graph.nodes if node.op == "placeholder"]
        for spec, node in zip(specs.input_specs, inputs, strict=True):
            view: View = self.values[node]
            if not view.writes:
                continue
            if spec.kind is not InputKind.BUFFER or spec.target is None:
                raise NeedsTraceError
            changed[spec.target] = view.node
        if changed and specs.buffers_to_mutate:
            raise NeedsTraceError
        return changed

    def _signature(self, changed: list[str]) -> ExportGraphSignature:
        old = self.program.graph_signature
        (returned,) = self.graph.output_node().args
        names = [node.name if isinstance(node, Node) else None for node in cast(Any, returned)]
        outputs = [
            OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(str(name)), target)
            for name, target in zip(names, changed, strict=False)
        ]
        for spec, name in zip(old.output_specs, names[len(changed) :], strict=True):
            arg = spec.arg if name is None else type(cast(Any, spec.arg))(name)
            outputs.append(OutputSpec(spec.kind, arg, spec.target))
        return ExportGraphSignature(list(old.input_specs), outputs)

    def _share_sizes(self, module: GraphModule) -> Any:
        """Compute each size once and assert what is needed of sizes; return the ranges known."""
        from torch.export import exported_program as torch_export
        from torch.fx.passes.runtime_assert import insert_deferred_runtime_asserts

        insert_deferred_runtime_asserts(module, self.shape_env, "rewritten nodes", export=True)
        drop_unused(module.graph)
        update = cast(Any, torch_export)._get_updated_range_constraints
        return update(module, cast(Any, self.program).range_constraints)

    def _read(self, value: Any) -> Any:
        """Nodes in place of views."""
        return tree_map_only(View, self._now, value)

    def _now(self, view: View) -> Node:
        """The node that has a view's value after all writes so far."""
        if view.seen < view.root.writes and view.parent is not None:
            if not can_repeat(view):
                raise NeedsTraceError
            source = self._now(view.parent)
            maker = view.made
            node = self.graph.create_node(
                maker.op, maker.target, (source, *maker.args[1:]), maker.kwargs, name=maker.name
            )
            node.meta = {**self._place_meta(), "val": maker.meta["val"]}
            view.set(node)
        return view.node

    def _place_meta(self) -> dict[str, Any]:
        meta = {} if self.place is None else self.place.meta
        return {key: meta[key] for key in KEPT_META if key in meta}

    def _rewrite(self, node: Node, number: int) -> Any:
        op: Any = _ALIKE.get(node.target, node.target)
        if op is operator.getitem:
            source, index = cast(Any, node.args)
            given = self.values[source]
            return self._copy(node, self.values) if isinstance(given, View) else given[index]
        if not isinstance(op, OpOverload) or isinstance(node.meta.get("val"), SYMBOLIC):
            return self._copy(node, self.values)
        if op in SAME:
            return self.values[cast(Node, node.args[0])]
        if is_write(node):
            return self._write(node, self.values, number)
        return self._call(cast(Any, op), node, self.values)

    def _call(self, op: OpOverload, node: Node, values: Mapping[Node, Any]) -> Any:
        """Call an op as a node calls its own, and return one view or several."""
        if not self.expansions.takes_apart(op):
            return self._copy(node, values, op)
        args, kwargs = map_arg((node.args, node.kwargs), lambda each: values[each])
        return self._expand(op, args, kwargs)

    def _copy(self, node: Node, values: Mapping[Node, Any], op: OpOverload | None = None) -> View:
        args, kwargs = map_arg((node.args, node.kwargs), lambda each: self._read(values[each]))
        name = node.name if op in (None, node.target) else cast(Any, op).overloadpacket.__name__
        copied = self.graph.create_node(node.op, op or node.target, args, kwargs, name)
        kept = dict(node.meta) if values is self.values else self._place_meta()
        copied.meta = {**kept, "val": node.meta.get("val")}
        parent = values[cast(Node, node.args[0])] if viewed_operand(copied) is not None else None
        is_new = node.target is operator.getitem and isinstance(parent, View) and not parent.parent
        return View(copied, parent if isinstance(parent, View) and not is_new else None)

    def _expand(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Write the ops that a call becomes."""
        expansion = self.expansions.find(function, args, kwargs)
        operands = iter(operands_of(args, kwargs))
        inside: dict[Node, Any] = {}
        for each in expansion.nodes:
            if each.op == "placeholder":
                inside[each] = next(operands)
            elif each.op == "output":
                return map_arg(each.args[0], lambda result: inside[result])
            elif each.target in SAME:
                inside[each] = inside[cast(Node, each.args[0])]
            elif is_write(each):
                inside[each] = self._write(each, inside)
            else:
                inside[each] = self._copy(each, inside)
        raise NeedsTraceError

    def _write(self, node: Node, values: Mapping[Node, Any], number: int | None = None) -> View:
        """Let a view be what a node writes into it; `number` is the node's place."""
        view = values[node.args[0]] if isinstance(node.args[0], Node) else None
        op = functional(cast(OpOverload, node.target))
        if op is None or not isinstance(view, View):
            raise NeedsTraceError
        result = self._call(op, node, values)
        if not isinstance(result, View) or not _are_alike(result.value, view.value):
            raise NeedsTraceError
        written = self._now(result)
        if number is not None and self._is_alone(view, number):
            sharers = self.sharers[view.root]
            _check_layout(written, view)
            view.own()
            self.sharers[view] = [old for old in sharers if view in tree_leaves(self.values[old])]
            view.set(written)
        else:
            self._put_back(view, written)
        return view

    def _is_alone(self, view: View, number: int) -> bool:
        """Return whether no other view of a tensor is looked at after this node changes it."""
        if view.root.made.op == "placeholder":
            return False
        sharers = self.sharers[view.root]
        read_later = (old for old in sharers if self.last_use.get(old, -1) > number)
        return not any(
            each is not view and isinstance(each, View) and each.root is view.root
            for old in read_later
            for each in tree_leaves(self.values[old])
        )

    def _put_back(self, view: View, written: Node) -> None:
        """Give a view a new value, and all of which it is a part."""
        steps = [(view, written)]
        while view.parent is not None:
            view, written = self._put(view, view.parent, written)
            steps.append((view, written))
        _check_layout(written, view)
        view.writes += 1
        for each, node in steps:
            each.set(node)

    def _put(self, view: View, whole: View, part: Node) -> tuple[View, Node]:
        """Return what a view is a part of, and its value with another part in place of the view."""
        maker, args, puts = view.made, view.made.args[1:], PUTS
        if maker.target is operator.getitem and whole.parent is not None:
            maker, args, puts = whole.made, (*args, *whole.made.args[1:]), PUT_ITEMS
            whole = whole.parent
        function = puts.get(maker.target)
        if function is None:
            raise NeedsTraceError
        args, kwargs = map_arg((args, maker.kwargs), cast(Any, View))
        result = self._expand(function, (whole, View(part), *args), kwargs)
        return whole, self._now(result)


def _check_layout(written: Node, view: View) -> None:
    """Refuse another order in memory than a tensor had when its views were traced."""
    new, old = written.meta["val"], view.value
    layouts = zip(sizes_of(old.shape), sizes_of(new.stride()), sizes_of(old.stride()), strict=True)
    if any(size != 1 and a != b for size, a, b in layouts):
        raise NeedsTraceError


def _are_alike(a: Any, b: Any) -> bool:
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return False
    return sizes_of(a.shape) == sizes_of(b.shape) and a.dtype == b.dtype
