"""If, and what graphs inside of a node read from outside.

A condition that is known chooses its branch. Otherwise both branches are traced as graphs of their
own, whose operands are the values and constants of the surrounding graph that they read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from fewbit.errors import Error
from fewbit.frontends.onnx.graph import Graph
from fewbit.frontends.onnx.size_conditions import SizeCondition, is_checked
from fewbit.frontends.onnx.table import Call, NeedsValueError, op
from fewbit.frontends.onnx.values import Many, Tensorlike, Traced, Value

if TYPE_CHECKING:
    from fewbit.frontends.onnx.constants import Constants
    from fewbit.frontends.onnx.evaluate import Scope


def inner_scope(call: Call, what: str) -> Scope:
    """The scope of a branch or round; its constants are named after the node."""
    return call.scope.inner(f"{call.node.outputs[0] or call.node.name}/{what}/")


def tensors_of(call: Call, values: Sequence[Value | None]) -> list[Tensor]:
    """Return what a branch gives, each as a tensor of its own."""
    return [call.evaluator.tensor(value).clone() for value in tensorlike(call, values)]


def kinds_of(call: Call, values: Sequence[Value | None]) -> list[int]:
    """The element types of what a branch gives."""
    return [value.kind for value in tensorlike(call, values)]


def tensorlike(call: Call, values: Sequence[Value | None]) -> list[Tensorlike]:
    """The values, each of which must be a tensor and not absent or a sequence."""
    tensors: list[Tensorlike] = []
    for value in values:
        if value is None or isinstance(value, Many):
            raise call.refusal("a branch or body gives something that is no tensor")
        tensors.append(value)
    return tensors


class Captured:
    """What graphs inside of a node read from outside: traced values, and constants.

    Sizes need not be handed in: inside they are what they are outside.
    """

    def __init__(self, call: Call, graphs: Sequence[Graph]) -> None:
        self.call = call
        names = sorted({name for graph in graphs for name in graph.outer_names()})
        outer = {name: call.scope.values.get(name) for name in names}
        for name, value in outer.items():
            if isinstance(value, Many):
                raise call.refusal(f"a branch or body reads '{name}', which is no tensor")
        self.traced = {n: v for n, v in outer.items() if isinstance(v, Traced)}
        key = (call.node.number, call.scope.prefix)
        self.paths = call.evaluator.noted.setdefault(key, [])

    def operands(self) -> list[Tensor]:
        constants = call_constants(self.call)
        return [*(v.tensor for v in self.traced.values()), *(constants.at(p) for p in self.paths)]

    def run(self, graph: Graph, scope: Scope, tensors: Sequence[Tensor]) -> list[Value | None]:
        """Evaluate a graph with its operands given."""
        values = list(self.traced.items())
        for (name, value), tensor in zip(values, tensors, strict=False):
            scope.values[name] = Traced(tensor, value.kind, name)
        constants = call_constants(self.call)
        with constants.passing(self.paths, tensors[len(values) :]):
            return self.call.evaluator.graph(graph, scope)


def call_constants(call: Call) -> Constants:
    return call.evaluator.constants


@op("If", tensors=0, folds=False)
def branch(call: Call) -> list[Value | None]:
    chosen = call.items(0)
    graphs = call.attr("then_branch"), call.attr("else_branch")
    if chosen is not None:
        chosen = graphs[0] if chosen[0] else graphs[1]
        return call.evaluator.graph(chosen, inner_scope(call, "branch"))
    value = call.input(0)
    condition = value.condition if isinstance(value, Traced) else None
    key = (call.node.number, call.scope.prefix)
    if condition is not None and key in call.evaluator.settled:
        return _settle(call, condition, graphs)
    if not call.evaluator.tracing:
        try:
            return _run_both(call, Captured(call, graphs), graphs)
        except Error:
            if condition is None:
                raise
            call.evaluator.settled.add(key)
            return _settle(call, condition, graphs)
    captured = Captured(call, graphs)
    kinds: list[int] = []

    def side(graph: Graph, what: str) -> Callable[..., tuple[Tensor, ...]]:
        def run(*tensors: Tensor) -> tuple[Tensor, ...]:
            results = captured.run(graph, inner_scope(call, what), tensors)
            kinds[:] = kinds_of(call, results)
            return tuple(tensors_of(call, results))

        return run

    predicate = call.tensor(0).reshape([])
    results: Sequence[Tensor] = cast(Any, torch.ops.higher_order).cond(
        predicate, side(graphs[0], "then"), side(graphs[1], "else"), tuple(captured.operands())
    )
    return [Traced(tensor, kind) for tensor, kind in zip(results, kinds, strict=True)]


def _settle(call: Call, condition: SizeCondition, graphs: Sequence[Graph]) -> list[Value | None]:
    """The branch that the sizes of the example take; the program checks that it is the one.

    Exporters write both for PyTorch's `squeeze`, whose result depends on whether a size is 1.
    """
    reason = "a dynamic size chooses between branches that give results of different shapes"
    holds = condition.holds()
    if holds is None or not is_checked(requirement := condition.requirement()):
        raise call.refusal(reason)
    call.require(requirement, reason)
    return call.evaluator.graph(graphs[0] if holds else graphs[1], inner_scope(call, "branch"))


def _run_both(call: Call, captured: Captured, graphs: Sequence[Graph]) -> list[Value | None]:
    """Before the trace: run both branches, to find their constants and to compare their results."""
    with call_constants(call).noting() as noted:
        try:
            results = [
                call.evaluator.graph(graph, inner_scope(call, what))
                for graph, what in zip(graphs, ("then", "else"), strict=True)
            ]
        except Error as error:
            if not isinstance(error, NeedsValueError):
                error.hint = call.needs(0).hint
            raise
        tensors = [tensors_of(call, values) for values in results]
    captured.paths[:] = noted
    kinds = [kinds_of(call, values) for values in results]
    for i, (a, b) in enumerate(zip(*tensors, strict=True)):
        if a.shape != b.shape or kinds[0][i] != kinds[1][i]:
            raise call.refusal(
                f"the branches give results of different shapes or types, {list(a.shape)} and "
                f"{list(b.shape)}"
            )
    return [Traced(tensor, kind) for tensor, kind in zip(tensors[0], kinds[0], strict=True)]
