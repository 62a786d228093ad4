"""Weights that a model computes from its parameters in every call, computed once, by PyTorch.

Weight norm, spectral norm in eval mode and weight standardization give a layer a weight that
depends on parameters alone. It is one constant here, so that it is quantized as any other, and it
is the tensor that the model itself would use, to the bit: the trace is folded before its ops are
taken apart. Only what a layer reads is folded. A tensor that is merely moved, such as `w.T`, is
left to the passes, and so is one that would be much larger than what it was computed from.
"""

from __future__ import annotations

import copy
import operator
import re
from collections.abc import Iterator, Mapping
from itertools import count
from math import prod
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from fewbit.decompositions.rebuild import with_graph
from fewbit.decompositions.sizes import is_static

ATEN = "aten::"
LAYERS = frozenset(
    f"{ATEN}{name}"
    for name in (
        *("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "embedding"),
        *("conv1d", "conv2d", "conv3d", "convolution"),
        *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    )
)
"""Ops of which one operand may be a weight."""
MOVES = frozenset(
    f"{ATEN}{name}"
    for name in (
        *("t", "transpose", "permute", "numpy_T", "view", "reshape", "flatten", "unflatten"),
        *("squeeze", "unsqueeze", "slice", "select", "narrow", "split", "chunk", "unbind"),
        *("split_with_sizes", "alias", "clone", "contiguous", "detach", "expand", "cat", "stack"),
    )
)
"""Ops that compute nothing."""
GROWTH = 8
"""How many times larger than its parameters a folded weight may be."""
_CONSTANTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_PARAMETRIZED = re.compile(r"(^|\.)parametrizations\.(\w+)\.original\d*$")


def fold_weights(program: ExportedProgram) -> ExportedProgram:
    """Return the program with computed weights as parameters; the same one if it has none."""
    constants = _constants(program)
    known = _known(program.graph, constants)
    if not any(True for _ in _weights(program.graph, known)):
        return program
    return _Folding(program, constants).run()


def _constants(program: ExportedProgram) -> dict[str, Tensor]:
    """Tensors that no call changes, by the placeholder that stands for them."""
    mutated = set(program.graph_signature.buffers_to_mutate.values())
    tensors: dict[str, Tensor] = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind in _CONSTANTS and spec.target is not None and spec.target not in mutated:
            data = program.state_dict.get(spec.target, program.constants.get(spec.target))
            if isinstance(data, Tensor):
                tensors[spec.arg.name] = data.detach()
    return tensors


def _known(graph: Graph, constants: Mapping[str, Tensor]) -> set[Node]:
    """Nodes that depend on constants alone; none where an op writes into one of them."""
    known: set[Node] = set()
    for node in graph.nodes:
        if node.op == "placeholder":
            if node.name in constants:
                known.add(node)
        elif _is_function(node) and node.all_input_nodes:
            if all(argument in known for argument in node.all_input_nodes):
                known.add(node)
        elif _is_mutation(node) and any(argument in known for argument in node.all_input_nodes):
            return set()
    return known


def _is_function(node: Node) -> bool:
    """Return whether a node gives tensors that follow from its operands."""
    if node.target is operator.getitem:
        return True
    if _schema(node) is None or _is_mutation(node):
        return False
    if torch.Tag.nondeterministic_seeded in cast(Any, node.target).tags:
        return False
    values = node.meta.get("val")
    each = cast("list[Any]", values) if isinstance(values, list | tuple) else [values]
    return all(isinstance(v, Tensor) and all(map(is_static, v.shape)) for v in each)


def _is_mutation(node: Node) -> bool:
    schema = _schema(node)
    return schema is not None and bool(schema.is_mutable)


def _name_of(node: Node) -> str:
    schema = _schema(node)
    return "" if schema is None else schema.name


def _schema(node: Node) -> Any:
    """The signature of an op; None where a node is something else."""
    return getattr(node.target, "_schema", None)


def _weights(graph: Graph, known: set[Node]) -> Iterator[Node]:
    """Computed nodes that a layer reads, and that are not much larger than their sources."""
    for node in graph.nodes:
        if node not in known or node.op == "placeholder" or not _is_float(node):
            continue
        readers = [user for user in node.users if user not in known]
        if not any(_name_of(user) in LAYERS for user in readers) or not _is_computed(node):
            continue
        sources = _sources(node)
        if _elements(node) <= GROWTH * sum(map(_elements, sources)):
            yield node


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, Tensor) and value.is_floating_point()


def _is_computed(node: Node) -> bool:
    """Return whether anything but moves lies between a node and the parameters."""
    return any(each.op != "placeholder" and not _is_move(each) for each in _slice(node))


def _is_move(node: Node) -> bool:
    return node.target is operator.getitem or _name_of(node) in MOVES


def _slice(node: Node) -> Iterator[Node]:
    """All nodes that a node is computed from, itself included."""
    seen, stack = {node}, [node]
    while stack:
        each = stack.pop()
        yield each
        stack += [argument for argument in each.all_input_nodes if argument not in seen]
        seen.update(each.all_input_nodes)


def _sources(node: Node) -> list[Node]:
    return [each for each in _slice(node) if each.op == "placeholder"]


def _elements(node: Node) -> int:
    value = node.meta.get("val")
    return prod(value.shape) if isinstance(value, Tensor) else 0


class _Folding:
    """A copy of a program, in which weights become parameters."""

    def __init__(self, program: ExportedProgram, constants: Mapping[str, Tensor]) -> None:
        self.program = program
        self.constants = dict(constants)
        self.module = _copy(program.graph_module)
        self.state = dict(program.state_dict)
        self.specs = list(program.graph_signature.input_specs)
        self.values: dict[Node, Any] = {}

    def run(self) -> ExportedProgram:
        graph = self.module.graph
        with torch.no_grad():
            for node in list(_weights(graph, _known(graph, self.constants))):
                name = self._name(node)
                self._fold(node, self._evaluate(node).clone(), name)
        outputs = list(self.program.graph_signature.output_specs)
        signature = ExportGraphSignature(self.specs, outputs)
        return with_graph(self.program, self.module, signature, self.state)

    def _evaluate(self, node: Node) -> Any:
        if node.op == "placeholder":
            return self.constants[node.name]
        if node not in self.values:
            args, kwargs = map_arg((node.args, node.kwargs), self._evaluate)
            self.values[node] = cast(Any, node.target)(*args, **kwargs)
        return self.values[node]

    def _name(self, node: Node) -> str:
        """Return what the weight is called: as its largest source, before this was parametrized."""
        source = max(_sources(node), key=_elements)
        targets = {spec.arg.name: spec.target for spec in self.specs}
        name = _PARAMETRIZED.sub(r"\1\2", targets[source.name] or source.name)
        # Older parametrizations are hooks, and so is pruning.
        stem = name.removesuffix("_v")
        return stem if f"{stem}_g" in self.state else name.removesuffix("_orig")

    def _fold(self, node: Node, value: Tensor, name: str) -> None:
        graph = self.module.graph
        node_of = {each.name: each for each in graph.nodes if each.op == "placeholder"}
        holder = next((spec for spec in self.specs if spec.target == name), None)
        if holder is not None and torch.equal(self.state.get(name, value[:0]), value):
            # The same module was called before.
            node.replace_all_uses_with(node_of[holder.arg.name])
        else:
            self._add(node, value, name)
        graph.eliminate_dead_code()

    def _add(self, node: Node, value: Tensor, name: str) -> None:
        """Replace a node by a parameter, which takes the name of one that nothing reads."""
        graph = self.module.graph
        place = self._place(node)
        names = {each.name for each in graph.nodes}
        free = next(each for each in (f"folded_{i}" for i in count()) if each not in names)
        with graph.inserting_before(list(graph.nodes)[place]):
            weight = graph.placeholder(free)
        weight.meta = dict(node.meta)
        self.constants[weight.name] = value
        node.replace_all_uses_with(weight)
        graph.eliminate_dead_code()
        taken = {spec.target: spec for spec in self.specs}
        own = InputSpec(InputKind.PARAMETER, TensorArgument(weight.name), name)
        self.specs.insert(place, own)
        if name in taken and not self._drop(taken[name]):
            owner, dot, last = name.rpartition(".")
            numbered = (f"{owner}{dot}{number}.{last}" for number in count(1))
            own.target = next(each for each in numbered if each not in taken)
        self.state[cast(str, own.target)] = nn.Parameter(value, requires_grad=False)

    def _drop(self, spec: InputSpec) -> bool:
        """Remove an input if nothing reads it."""
        node = next(each for each in self.module.graph.nodes if each.name == spec.arg.name)
        if node.users:
            return False
        self.module.graph.erase_node(node)
        self.specs.remove(spec)
        return True

    def _place(self, node: Node) -> int:
        """Return where among the inputs a weight stands: before its largest source."""
        source = max(_sources(node), key=_elements)
        place = next(i for i, spec in enumerate(self.specs) if spec.arg.name == source.name)
        return place if self.specs[place].kind is InputKind.PARAMETER else 0


def _copy(module: GraphModule) -> GraphModule:
    """A copy whose nodes have the same names, which signatures refer to."""
    copied = copy.deepcopy(module)
    for new, old in zip(copied.graph.nodes, module.graph.nodes, strict=True):
        new.name = old.name
        if old.op == "placeholder":
            new.target = old.target
    return copied
