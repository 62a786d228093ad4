"""If, Loop and Scan.

A condition that is known chooses its branch, and a loop whose number of rounds is known is written
out. Otherwise both branches, or the body, are traced as graphs of their own, whose operands are the
values and constants of the surrounding graph that they read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from fewbit.errors import Error
from fewbit.frontends.onnx.graph import Graph
from fewbit.frontends.onnx.kinds import BOOL, INT64
from fewbit.frontends.onnx.size_conditions import SizeCondition, is_checked
from fewbit.frontends.onnx.table import Call, NeedsValueError, op
from fewbit.frontends.onnx.values import (
    Known,
    Many,
    Sizes,
    Tensorlike,
    Traced,
    Value,
    known,
    outside_trace,
)

if TYPE_CHECKING:
    from fewbit.frontends.onnx.constants import Constants
    from fewbit.frontends.onnx.evaluate import Scope

MOST_ROUNDS = 4096


def _inner(call: Call, what: str) -> Scope:
    return call.scope.inner(f"{call.node.outputs[0] or call.node.name}/{what}/")


def _tensors(call: Call, values: Sequence[Value | None]) -> list[Tensor]:
    """What a branch gives, each as a tensor of its own."""
    return [call.evaluator.tensor(value).clone() for value in _tensorlike(call, values)]


def _kinds(call: Call, values: Sequence[Value | None]) -> list[int]:
    return [value.kind for value in _tensorlike(call, values)]


def _tensorlike(call: Call, values: Sequence[Value | None]) -> list[Tensorlike]:
    """The values, each of which must be a tensor and not absent or a sequence."""
    tensors: list[Tensorlike] = []
    for value in values:
        if value is None or isinstance(value, Many):
            raise call.refusal("a branch or body gives something that is no tensor")
        tensors.append(value)
    return tensors


class Captured:
    """What graphs inside of a node read from outside: traced values, and constants."""

    def __init__(self, call: Call, graphs: Sequence[Graph]) -> None:
        self.call = call
        names = sorted({name for graph in graphs for name in graph.outer_names()})
        outer = {name: call.scope.values.get(name) for name in names}
        for name, value in outer.items():
            if isinstance(value, Many | Sizes):
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
        return call.evaluator.graph(chosen, _inner(call, "branch"))
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
            results = captured.run(graph, _inner(call, what), tensors)
            kinds[:] = _kinds(call, results)
            return tuple(_tensors(call, results))

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
    return call.evaluator.graph(graphs[0] if holds else graphs[1], _inner(call, "branch"))


def _run_both(call: Call, captured: Captured, graphs: Sequence[Graph]) -> list[Value | None]:
    """Before the trace: run both branches, to find their constants and to compare their results."""
    with call_constants(call).noting() as noted:
        try:
            results = [
                call.evaluator.graph(graph, _inner(call, what))
                for graph, what in zip(graphs, ("then", "else"), strict=True)
            ]
        except Error as error:
            if not isinstance(error, NeedsValueError):
                error.hint = call.needs(0).hint
            raise
        tensors = [_tensors(call, values) for values in results]
    captured.paths[:] = noted
    kinds = [_kinds(call, values) for values in results]
    for i, (a, b) in enumerate(zip(*tensors, strict=True)):
        if a.shape != b.shape or kinds[0][i] != kinds[1][i]:
            raise call.refusal(
                f"the branches give results of different shapes or types, {list(a.shape)} and "
                f"{list(b.shape)}"
            )
    return [Traced(tensor, kind) for tensor, kind in zip(tensors[0], kinds[0], strict=True)]


class Body:
    """The body of a loop: (round, condition, state...) to (condition, state..., scanned...)."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.graph: Graph = call.attr("body")
        self.names = [value.name for value in self.graph.inputs]
        self.state = len(self.names) - 2

    def round(
        self, number: int, condition: Value, state: Sequence[Value | None]
    ) -> list[Value | None]:
        scope = _inner(self.call, str(number))
        counter = known(number, INT64)
        scope.values.update(zip(self.names, [counter, condition, *state], strict=True))
        return self.call.evaluator.graph(self.graph, scope)


@op("Loop", tensors=0, folds=False)
def loop(call: Call) -> list[Value | None]:
    body = Body(call)
    rounds = call.items(0) if call.has(0) else None
    condition = call.input(1) or known(True, BOOL)
    if (call.has(0) and rounds is None) or not isinstance(condition, Known):
        return _while(call, body)
    most = MOST_ROUNDS if rounds is None else int(rounds[0])
    if most > MOST_ROUNDS:
        return _while(call, body)
    state: list[Value | None] = list(call.inputs[2:])
    scanned: list[list[Value | None]] = [[] for _ in range(len(call.node.outputs) - body.state)]
    for number in range(most):
        if not condition.items()[0]:
            break
        condition, *results = body.round(number, condition, state)
        if not isinstance(condition, Known):
            return _while(call, body)
        state = results[: body.state]
        for kept, value in zip(scanned, results[body.state :], strict=False):
            kept.append(value)
    else:
        if rounds is None:
            raise call.refusal(f"it ends after no {MOST_ROUNDS} rounds")
    return [*state, *(_stack(call, values) for values in scanned)]


def _stack(call: Call, values: list[Value | None], axis: int = 0) -> Value:
    if not values:
        raise call.refusal("it has no round, so that its results have no shape")
    tensors = [v for v in values if isinstance(v, Known | Traced | Sizes)]
    kind = tensors[0].kind
    constants = [v for v in tensors if isinstance(v, Known)]
    if len(constants) == len(tensors):
        with outside_trace():
            return Known(torch.stack([v.tensor for v in constants], axis), kind)
    return Traced(torch.stack([call.evaluator.tensor(v) for v in tensors], axis), kind)


def _while(call: Call, body: Body) -> list[Value | None]:
    """Rounds that the program counts; results of all rounds would have no known size."""
    if len(call.node.outputs) > body.state and any(call.node.outputs[body.state :]):
        unknown = [i for i in (0, 1) if call.has(i) and call.known(i) is None]
        if unknown:
            raise call.needs(*unknown)
        raise call.refusal("the number of its rounds is not known, and it collects results")
    evaluator = call.evaluator
    captured = Captured(call, [body.graph])
    start = _tensors(call, call.inputs[2:])
    kinds = _kinds(call, call.inputs[2:])
    more = call.tensor(1).reshape([]).clone() if call.has(1) else torch.ones((), dtype=torch.bool)
    most = call.tensor(0).reshape([]).to(torch.int64) if call.has(0) else None

    def round_scope(counter: Tensor, go: Tensor, state: Sequence[Tensor]) -> Scope:
        scope = _inner(call, "round")
        values = [Traced(counter, INT64), Traced(go, BOOL)]
        values += [Traced(t, k) for t, k in zip(state, kinds, strict=True)]
        scope.values.update(zip(body.names, values, strict=True))
        return scope

    if not evaluator.tracing:
        with call_constants(call).noting() as noted:
            scope = round_scope(torch.zeros((), dtype=torch.int64), more, start)
            after = _tensors(call, evaluator.graph(body.graph, scope))
        captured.paths[:] = noted
        for old, new in zip(start, after[1 : 1 + body.state], strict=True):
            if old.shape != new.shape or old.dtype != new.dtype:
                raise call.refusal("its state changes in shape or type from round to round")
        return [Traced(t, k) for t, k in zip(start, kinds, strict=True)]
    outer = captured.operands()
    limit = [] if most is None else [most]

    def running(counter: Tensor, go: Tensor, *operands: Tensor) -> Tensor:
        bound = operands[body.state] if limit else None
        return go & (counter < bound) if bound is not None else go.clone()

    def step(counter: Tensor, go: Tensor, *operands: Tensor) -> tuple[Tensor, ...]:
        state, others = operands[: body.state], operands[body.state + len(limit) :]
        results = captured.run(body.graph, round_scope(counter, go, state), others)
        go, *after = _tensors(call, results)[: 1 + body.state]
        return (counter + 1, go.reshape([]), *after)

    counter = torch.zeros((), dtype=torch.int64)
    results: Sequence[Tensor] = cast(Any, torch.ops.higher_order).while_loop(
        running, step, (counter, more, *start), (*limit, *outer)
    )
    return [Traced(t, k) for t, k in zip(results[2:], kinds, strict=True)]


@op("Scan", tensors=0, folds=False)
def scan(call: Call) -> list[Value | None]:
    if call.version < 9:
        raise call.refusal("its form before version 9")
    body: Graph = call.attr("body")
    count = call.attr("num_scan_inputs")
    state: list[Value | None] = list(call.inputs[: len(call.inputs) - count])
    inputs = call.inputs[len(call.inputs) - count :]
    outputs = len(body.outputs) - len(state)
    axes: list[int] = call.attr("scan_input_axes", [0] * count)
    backward = call.attr("scan_input_directions", [0] * count)
    length = int(_tensorlike(call, inputs)[0].shape[axes[0]])
    if length > MOST_ROUNDS:
        raise call.refusal(f"{length} rounds are more than {MOST_ROUNDS}")
    names = [value.name for value in body.inputs]
    collected: list[list[Value | None]] = [[] for _ in range(outputs)]
    for number in range(length):
        scope = _inner(call, str(number))
        slices = [
            _slice(call, value, axis, length - 1 - number if back else number)
            for value, axis, back in zip(inputs, axes, backward, strict=True)
        ]
        scope.values.update(zip(names, [*state, *slices], strict=True))
        results = call.evaluator.graph(body, scope)
        state = results[: len(state)]
        for kept, value in zip(collected, results[len(state) :], strict=True):
            kept.append(value)
    directions = call.attr("scan_output_directions", [0] * outputs)
    places = call.attr("scan_output_axes", [0] * outputs)
    whole = [
        _stack(call, values[::-1] if back else values, axis)
        for values, back, axis in zip(collected, directions, places, strict=True)
    ]
    return [*state, *whole]


def _slice(call: Call, value: Any, axis: int, at: int) -> Value:
    if isinstance(value, Known):
        with outside_trace():
            return Known(value.tensor.select(axis, at), value.kind)
    return Traced(call.evaluator.tensor(value).select(axis, at), value.kind)
