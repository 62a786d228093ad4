"""Frames of a traced graph as `graph` subgraphs of `mico` ops.

A node becomes an op of ours where the table in `aten` knows one, and otherwise a call of a function
that torch-mlir lowers (`islands`). Parameters and buffers are read as constants where they are
used, so that a subgraph's arguments are what flows through it, as in the model's own code.
"""

from __future__ import annotations

import operator
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node
from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import FunctionType, IndexType, IntegerAttr, i64
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation, Region, SSAValue

from fewbit.dialects import graph, mico
from fewbit.errors import UnsupportedError

# Importing `einsum` and its like enters their converters.
from fewbit.frontends.torch import (
    aten,
    einsum,  # noqa: F401  # pyright: ignore[reportUnusedImport]
    indexed_writes,  # noqa: F401  # pyright: ignore[reportUnusedImport]
    language_ops,  # noqa: F401  # pyright: ignore[reportUnusedImport]
)
from fewbit.frontends.torch.control_flow import emit_control_flow
from fewbit.frontends.torch.hierarchy import Frame
from fewbit.frontends.torch.islands import Islands, outputs_of
from fewbit.frontends.torch.numbers import emit_number
from fewbit.frontends.torch.sources import location_of, source_of
from fewbit.frontends.torch.types import tensor_type, value_type
from fewbit.ir.symbols import value_name


class Emitter:
    """Writes one block: the body of a subgraph, or a branch in one."""

    def __init__(
        self,
        islands: Islands,
        weights: dict[Node, str],
        graphs: GraphModule,
        block: Block,
        around: Emitter | None = None,
    ) -> None:
        self.islands = islands
        self.weights = weights
        self.graphs = graphs
        """Where graphs of branches and loop bodies are found by name."""
        self.block = block
        self.around = around
        self.node: Node | None = None
        self._values: dict[Node, Sequence[SSAValue]] = {}
        self._constants: dict[str, SSAValue] = {}

    def within(self, block: Block) -> Emitter:
        """Writes a block of a region in this one."""
        inner = Emitter(self.islands, dict(self.weights), self.graphs, block, self)
        inner.node = self.node
        return inner

    def outer(self, node: Any) -> SSAValue:
        """A value of the block around this one."""
        assert self.around is not None
        return self.around.value(node)

    def bind(self, node: Node, values: Sequence[SSAValue]) -> None:
        self._values[node] = values
        for value in values:
            if value.name_hint is None:
                value.name_hint = value_name(node.name)

    def values(self, node: Node) -> Sequence[SSAValue]:
        if node in self.weights:
            return [self._constant(node)]
        return self._values[node]

    def knows(self, node: Node) -> bool:
        """Return whether a node's value is one of this block."""
        return node in self._values or node in self.weights

    def value(self, node: Any) -> SSAValue:
        """The value of a tensor or symbolic integer; a number becomes a constant."""
        if isinstance(node, Node):
            return self.values(node)[0]
        return self.add(arith.ConstantOp(IntegerAttr(int(node), i64))).results[0]

    def add(self, op: Operation) -> Operation:
        if self.node is not None:
            op.location = location_of(self.node)
        self.block.add_op(op)
        return op

    @contextmanager
    def building(self) -> Generator[None]:
        """Add the ops that are made inside to the block."""
        before = self.block.last_op
        with ImplicitBuilder(self.block):
            yield
        if self.node is not None:
            new = self.block.first_op if before is None else before.next_op
            while new is not None:
                new.location = location_of(self.node)
                new = new.next_op

    def _constant(self, node: Node) -> SSAValue:
        name = self.weights[node]
        if name not in self._constants:
            read = mico.GetConstantOp(name, tensor_type(node.meta["val"]))
            read.result.name_hint = value_name(name)
            self.add(read)
            self._constants[name] = read.result
        return self._constants[name]

    def emit(self, node: Node) -> None:
        self.node = node
        self.bind(node, self._emit_node(node))

    def _emit_node(self, node: Node) -> Sequence[SSAValue]:
        if node.target is operator.getitem:
            source, index = cast(tuple[Node, int], node.args)
            return [self.values(source)[index]]
        number = emit_number(self, node)
        if number is not None:
            return [number]
        if node.target is torch.ops.aten.sym_size.int:
            return [self._size(self.value(node.args[0]), cast(int, node.args[1]))]
        if node.op == "get_attr" or aten.is_check(node):
            return []
        branched = emit_control_flow(self, node)
        if branched is not None:
            return branched
        values = aten.convert(self, node)
        return self._emit_call(node) if values is None else values

    def _size(self, value: SSAValue, dim: int) -> SSAValue:
        index = self.add(arith.ConstantOp(IntegerAttr(dim, IndexType())))
        size = self.add(tensor.DimOp(value, index.results[0]))
        return self.add(arith.IndexCastOp(size.results[0], i64)).results[0]

    def _emit_call(self, node: Node) -> Sequence[SSAValue]:
        if node.op != "call_function" or not isinstance(node.target, OpOverload):
            raise UnsupportedError(f"'{node.target}' cannot be imported: {source_of(node)}")
        arguments = [self.value(arg) for arg in node.all_input_nodes]
        results = [value_type(value) for value in outputs_of(node)]
        return self.add(CallOp(self.islands.name_of(node), arguments, results)).results


@dataclass(frozen=True)
class Emitted:
    """The subgraph of a frame, with the values that it takes and gives."""

    subgraph: graph.SubgraphOp
    inputs: list[Node]
    outputs: list[Node]


def emit_frame(
    frame: Frame,
    islands: Islands,
    weights: dict[Node, str],
    graphs: GraphModule,
    subgraphs: list[graph.SubgraphOp],
) -> Emitted:
    """Write a frame, and before it those that it calls; all are added to `subgraphs`."""
    inputs = [node for node in frame.live_ins() if node not in weights]
    outputs = frame.live_outs()
    block = Block(arg_types=[value_type(node.meta["val"]) for node in inputs])
    emitter = Emitter(islands, weights, graphs, block)
    for node, argument in zip(inputs, block.args, strict=True):
        emitter.bind(node, [argument])
    for item in frame.items:
        if isinstance(item, Frame):
            _call(emitter, item, emit_frame(item, islands, weights, graphs, subgraphs))
        else:
            emitter.emit(item)
    results = [value for node in outputs for value in emitter.values(node)]
    block.add_op(graph.ReturnOp(*results))
    # A symbolic size that a reshape keeps by its place is not needed as a value.
    unused = [argument for argument in block.args if not argument.uses]
    inputs = [n for n, a in zip(inputs, block.args, strict=True) if a not in unused]
    for argument in unused:
        block.erase_arg(argument)
    signature = FunctionType.from_lists(block.arg_types, [value.type for value in results])
    subgraph = graph.SubgraphOp(frame.name, signature, Region(block))
    subgraphs.append(subgraph)
    return Emitted(subgraph, inputs, outputs)


def _call(emitter: Emitter, frame: Frame, callee: Emitted) -> None:
    emitter.node = next(frame.nodes())
    arguments = [emitter.value(node) for node in callee.inputs]
    types = callee.subgraph.function_type.outputs.data
    call = emitter.add(graph.CallOp(callee.subgraph.sym_name.data, arguments, types))
    results = iter(call.results)
    for node in callee.outputs:
        emitter.bind(node, [next(results) for _ in outputs_of(node)])
