"""`torch.cond` and `while_loop` as `scf.if` and `scf.while`.

Branches and loop bodies are graphs of their own, whose placeholders stand for the operands of the
op. Values from outside are seen through regions; weights among the operands stay constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.fx import GraphModule, Node
from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Region, SSAValue

from fewbit.frontends.torch.types import value_type

if TYPE_CHECKING:
    from fewbit.frontends.torch.emit import Emitter


def emit_control_flow(emitter: Emitter, node: Node) -> Sequence[SSAValue] | None:
    """The results of a cond or while_loop node; None for any other."""
    if node.target is torch.ops.higher_order.cond:
        return _cond(emitter, node)
    if node.target is torch.ops.higher_order.while_loop:
        return _while(emitter, node)
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
