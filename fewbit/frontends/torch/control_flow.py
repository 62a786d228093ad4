"""`torch.cond`, `while_loop` and `scan` as `scf.if`, `scf.while` and `scf.for`.

Branches and loop bodies are graphs of their own, whose placeholders stand for the operands of the
op. Values from outside are seen through regions; weights among the operands stay constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.fx import GraphModule, Node
from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, i1, i64
from xdsl.dialects.utils import split_dynamic_index_list
from xdsl.ir import Block, Region, SSAValue

from fewbit.decompositions.sizes import is_static
from fewbit.dialects import mico
from fewbit.errors import UnsupportedError
from fewbit.frontends.torch.types import value_type
from fewbit.passes.linalg.building.elements import keep_sizes, with_sizes
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_index,
    index_constant,
    sizes_of,
    tensor_type,
)

if TYPE_CHECKING:
    from fewbit.frontends.torch.emit import Emitter


def emit_control_flow(emitter: Emitter, node: Node) -> Sequence[SSAValue] | None:
    """The results of a cond, while_loop or scan node; None for any other."""
    if node.target is torch.ops.higher_order.cond:
        return _cond(emitter, node)
    if node.target is torch.ops.higher_order.while_loop:
        return _while(emitter, node)
    if node.target is torch.ops.higher_order.scan:
        return _scan(emitter, node)
    return None


def _cond(emitter: Emitter, node: Node) -> Sequence[SSAValue]:
    predicate, then, otherwise, operands = cast(Any, node.args)
    condition = _truth(emitter, emitter.value(predicate))
    true, false = (_branch(emitter, graph, operands) for graph in (then, otherwise))
    types = [value_type(value) for value in node.meta["val"]]
    return emitter.add(scf.IfOp(condition, types, true, false)).results


def _branch(emitter: Emitter, graph: Any, operands: Sequence[Any]) -> Region:
    block = Block()
    inner = emitter.within(block)
    results = _body(inner, _graph_module(emitter, graph), operands, None)
    block.add_op(scf.YieldOp(*results))
    return Region(block)


def _while(emitter: Emitter, node: Node) -> Sequence[SSAValue]:
    condition, body, carried, others = cast(Any, (*node.args, ())[:4])
    types = [value_type(value) for value in node.meta["val"]]
    before, after = Block(arg_types=types), Block(arg_types=types)
    operands = (*carried, *others)
    test = emitter.within(before)
    (flag,) = _body(test, _graph_module(emitter, condition), operands, before.args)
    before.add_op(scf.ConditionOp(_truth(test, flag), *before.args))
    results = _body(emitter.within(after), _graph_module(emitter, body), operands, after.args)
    after.add_op(scf.YieldOp(*results))
    initial = [emitter.value(value) for value in carried]
    return emitter.add(scf.WhileOp(initial, types, Region(before), Region(after))).results


def _scan(emitter: Emitter, node: Node) -> Sequence[SSAValue]:
    """A loop over the first axis of some tensors, whose results are written along one of theirs.

    Sizes inside of the loop are those outside, so that they are known before it runs.
    """
    combine, initial, sources, others = cast(Any, node.args)
    body = _graph_module(emitter, combine)
    types = [value_type(value) for value in node.meta["val"]]
    state = [emitter.value(value) for value in initial]
    steps = [emitter.value(value) for value in sources]
    known = _known_sizes([*initial, *sources], [*state, *steps])
    with emitter.building():
        of_steps = [sizes_of(step) for step in steps]
        of_state = [sizes_of(value) for value in state]
        count = of_steps[0][0]
        places = [
            _empty(value, [count, *(_size(size, known) for size in value.shape[1:])])
            for value in node.meta["val"][len(state) :]
        ]
    block = Block(arg_types=[IndexType(), *types])
    inner = emitter.within(block)
    at, *carried = block.args
    with inner.building():
        arguments = [with_sizes(v, s) for v, s in zip(carried[: len(state)], of_state, strict=True)]
        arguments += [_row(step, at, sizes) for step, sizes in zip(steps, of_steps, strict=True)]
    results = _body(inner, body, (*initial, *sources, *others), arguments)
    with inner.building():
        rows = zip(results[len(state) :], carried[len(state) :], places, strict=True)
        written = [_with_row(row, into, at, sizes_of(place)) for row, into, place in rows]
        scf.YieldOp(*results[: len(state)], *written)
    with emitter.building():
        start = [*state, *places]
        loop = scf.ForOp(index_constant(0), as_index(count), index_constant(1), start, block)
        return keep_sizes(loop.results, start)


def _known_sizes(
    nodes: Sequence[Any], values: Sequence[SSAValue]
) -> dict[str, tuple[SSAValue, int]]:
    """Map symbols, by text, to a tensor and the axis that is as long."""
    return {
        str(size): (value, axis)
        for node, value in zip(nodes, values, strict=True)
        for axis, size in enumerate(node.meta["val"].shape)
        if not is_static(size)
    }


def _size(size: Any, known: dict[str, tuple[SSAValue, int]]) -> Size:
    if is_static(size):
        return int(size)
    if str(size) not in known:
        raise UnsupportedError(f"a result of a loop is of size {size}, which its operands have not")
    value, axis = known[str(size)]
    return sizes_of(value)[axis]


def _empty(value: torch.Tensor, sizes: Sequence[Size]) -> SSAValue:
    dynamic = [size for size in sizes if not isinstance(size, int)]
    return tensor.EmptyOp(dynamic, value_type(value)).results[0]


def _row(source: SSAValue, at: SSAValue, sizes: Sequence[Size]) -> SSAValue:
    """One step of a tensor, without its first axis."""
    zeros, ones = [0] * (len(sizes) - 1), [1] * len(sizes)
    type = tensor_type(sizes[1:], mico.element_type(source.type))
    return tensor.ExtractSliceOp(source, [at, *zeros], [1, *sizes[1:]], ones, type).result


def _with_row(row: SSAValue, into: SSAValue, at: SSAValue, sizes: Sequence[Size]) -> SSAValue:
    static, dynamic = split_dynamic_index_list([1, *sizes[1:]], DYNAMIC_INDEX)
    zeros, ones = [0] * (len(sizes) - 1), [1] * len(sizes)
    return tensor.InsertSliceOp.build(
        operands=[row, into, [at], dynamic, []],
        properties={
            "static_offsets": DenseArrayBase.from_list(i64, [DYNAMIC_INDEX, *zeros]),
            "static_sizes": DenseArrayBase.from_list(i64, static),
            "static_strides": DenseArrayBase.from_list(i64, ones),
        },
        result_types=[into.type],
    ).result


def _body(
    emitter: Emitter,
    module: GraphModule,
    operands: Sequence[Any],
    arguments: Sequence[SSAValue] | None,
) -> list[SSAValue]:
    """Write a graph; its first placeholders are the block's arguments, others come from outside."""
    emitter.graphs = module
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    for i, (placeholder, operand) in enumerate(zip(placeholders, operands, strict=True)):
        if arguments is not None and i < len(arguments):
            emitter.bind(placeholder, [arguments[i]])
        elif isinstance(operand, Node) and operand in emitter.weights:
            emitter.weights[placeholder] = emitter.weights[operand]
        else:
            emitter.bind(placeholder, [emitter.outer(operand)])
    for node in module.graph.nodes:
        if node.op not in ("placeholder", "output"):
            emitter.emit(node)
    output: Any = next(n for n in module.graph.nodes if n.op == "output").args[0]
    outputs = cast("Sequence[Any]", output) if isinstance(output, list | tuple) else [output]
    return [emitter.value(value) for value in outputs]


def _graph_module(emitter: Emitter, attribute: Any) -> GraphModule:
    return getattr(emitter.graphs, attribute.target)


def _truth(emitter: Emitter, value: SSAValue) -> SSAValue:
    """A predicate of rank 0 as i1."""
    if value.type == i1:
        return value
    return emitter.add(tensor.ExtractOp(value, [], i1)).results[0]
