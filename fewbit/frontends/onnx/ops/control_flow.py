# pyright: basic
"""If, Loop and Scan.

A condition that is known chooses its branch, and a loop whose number of rounds is known is written
out. Otherwise both branches, or the body, are traced as graphs of their own, whose operands are the
values and constants of the surrounding graph that they read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fewbit.errors import Error
from fewbit.frontends.onnx.graph import Graph
from fewbit.frontends.onnx.kinds import BOOL, INT64
from fewbit.frontends.onnx.table import Call, NeedsValueError, op
from fewbit.frontends.onnx.values import Known, Many, Sizes, Traced, Value, known, outside_trace

MOST_ROUNDS = 4096


def _inner(call: Call, what: str) -> Any:
    return call.scope.inner(f"{call.node.outputs[0] or call.node.name}/{what}/")


def _tensors(call: Call, values: Sequence[Value | None]) -> list[Tensor]:
    """What a branch gives, each as a tensor of its own."""
    made: list[Tensor] = []
    for value in values:
        if value is None or isinstance(value, Many):
            raise call.refused("a branch or body gives something that is no tensor")
        made.append(call.evaluator.tensor(value).clone())
    return made


def _kinds(call: Call, values: Sequence[Value | None]) -> list[int]:
    if any(v is None or isinstance(v, Many) for v in values):
        raise call.refused("a branch or body gives something that is no tensor")
    return [v.kind for v in values]  # pyright: ignore


class Captured:
    """What graphs inside of a node read from outside: traced values, and constants."""

    def __init__(self, call: Call, graphs: Sequence[Graph]) -> None:
        self.call = call
        names = sorted(set().union(*(graph.outer_names() for graph in graphs)))
        found = {name: call.scope.values.get(name) for name in names}
        for name, value in found.items():
            if isinstance(value, Many | Sizes):
                raise call.refused(f"a branch or body reads '{name}', which is no tensor")
        self.traced = {n: v for n, v in found.items() if isinstance(v, Traced)}
        key = (call.node.number, call.scope.prefix)
        self.paths = call.evaluator.noted.setdefault(key, [])

    def operands(self) -> list[Tensor]:
        constants = call_constants(self.call)
        return [*(v.tensor for v in self.traced.values()), *(constants.at(p) for p in self.paths)]

    def run(self, graph: Graph, scope: Any, tensors: Sequence[Tensor]) -> list[Value | None]:
        """Evaluate a graph with its operands given."""
        values = list(self.traced.items())
        for (name, value), tensor in zip(values, tensors, strict=False):
            scope.values[name] = Traced(tensor, value.kind, name)
        constants = call_constants(self.call)
        with constants.passing(self.paths, tensors[len(values) :]):
            return self.call.evaluator.graph(graph, scope)


def call_constants(call: Call) -> Any:
    return call.evaluator.constants


@op("If", tensors=0, folds=False)
def branch(call: Call) -> list[Value | None]:
    chosen = call.items(0)
    graphs = call.attr("then_branch"), call.attr("else_branch")
    if chosen is not None:
        chosen = graphs[0] if chosen[0] else graphs[1]
        return call.evaluator.graph(chosen, _inner(call, "branch"))
    captured = Captured(call, graphs)
    if not call.evaluator.tracing:
        return _both(call, captured, graphs)
    kinds: list[int] = []

    def side(graph: Graph, what: str):
        def run(*tensors: Tensor) -> tuple[Tensor, ...]:
            results = captured.run(graph, _inner(call, what), tensors)
            kinds[:] = _kinds(call, results)
            return tuple(_tensors(call, results))

        return run

    predicate = call.tensor(0).reshape([])
    made = torch.ops.higher_order.cond(
        predicate, side(graphs[0], "then"), side(graphs[1], "else"), tuple(captured.operands())
    )
    return [Traced(tensor, kind) for tensor, kind in zip(made, kinds, strict=True)]


def _both(call: Call, captured: Captured, graphs: Sequence[Graph]) -> list[Value | None]:
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
            raise call.refused(
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

    def round(self, number: int, condition: Value, state: Sequence[Value | None]):
        scope = _inner(self.call, str(number))
        counter = known(number, INT64)
        scope.values.update(zip(self.names, [counter, condition, *state], strict=True))
        return self.call.evaluator.graph(self.graph, scope)


@op("Loop", tensors=0, folds=False)
def loop(call: Call) -> list[Value | None]:
    body = Body(call)
    rounds = call.items(0) if call.has(0) else None
    condition: Value = call.inputs[1] if call.has(1) else known(True, BOOL)  # pyright: ignore
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
        condition, *results = body.round(number, condition, state)  # pyright: ignore
        if not isinstance(condition, Known):
            return _while(call, body)
        state = results[: body.state]
        for kept, value in zip(scanned, results[body.state :], strict=False):
            kept.append(value)
    else:
        if rounds is None:
            raise call.refused(f"it ends after no {MOST_ROUNDS} rounds")
    return [*state, *(_stacked(call, values) for values in scanned)]


def _stacked(call: Call, values: list[Value | None], axis: int = 0) -> Value:
    if not values:
        raise call.refused("it has no round, so that its results have no shape")
    tensors = [v for v in values if isinstance(v, Known | Traced | Sizes)]
    kind = tensors[0].kind
    if all(isinstance(v, Known) for v in tensors):
        with outside_trace():
            return Known(torch.stack([v.tensor for v in tensors], axis), kind)  # pyright: ignore
    return Traced(torch.stack([call.evaluator.tensor(v) for v in tensors], axis), kind)


def _while(call: Call, body: Body) -> list[Value | None]:
    """Rounds that the program counts; results of all rounds would have no known size."""
    if len(call.node.outputs) > body.state and any(call.node.outputs[body.state :]):
        unknown = [i for i in (0, 1) if call.has(i) and call.known(i) is None]
        if unknown:
            raise call.needs(*unknown)
        raise call.refused("the number of its rounds is not known, and it collects results")
    evaluator = call.evaluator
    captured = Captured(call, [body.graph])
    start = [evaluator.tensor(v).clone() for v in call.inputs[2:]]  # pyright: ignore
    kinds = _kinds(call, call.inputs[2:])
    more = call.tensor(1).reshape([]).clone() if call.has(1) else torch.ones((), dtype=torch.bool)
    most = call.tensor(0).reshape([]).to(torch.int64) if call.has(0) else None

    def once(scope: Any, counter: Tensor, go: Tensor, state: Sequence[Tensor], run: Any):
        values = [Traced(counter, INT64), Traced(go, BOOL)]
        values += [Traced(t, k) for t, k in zip(state, kinds, strict=True)]
        scope.values.update(zip(body.names, values, strict=True))
        return run(scope)

    if not evaluator.tracing:
        with call_constants(call).noting() as noted:
            results = once(
                _inner(call, "round"), torch.zeros((), dtype=torch.int64), more, start,
                lambda scope: evaluator.graph(body.graph, scope),
            )  # fmt: skip
            after = _tensors(call, results)
        captured.paths[:] = noted
        for old, new in zip(start, after[1 : 1 + body.state], strict=True):
            if old.shape != new.shape or old.dtype != new.dtype:
                raise call.refused("its state changes in shape or type from round to round")
        return [Traced(t, k) for t, k in zip(start, kinds, strict=True)]
    outer = captured.operands()
    limit = [] if most is None else [most]

    def running(counter: Tensor, go: Tensor, *rest: Tensor) -> Tensor:
        bound = rest[body.state] if limit else None
        return go & (counter < bound) if bound is not None else go.clone()

    def step(counter: Tensor, go: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        state, others = rest[: body.state], rest[body.state + len(limit) :]
        results = once(
            _inner(call, "round"), counter, go, state,
            lambda scope: captured.run(body.graph, scope, others),
        )  # fmt: skip
        go, *after = _tensors(call, results)[: 1 + body.state]
        return (counter + 1, go.reshape([]), *after)

    counter = torch.zeros((), dtype=torch.int64)
    made = torch.ops.higher_order.while_loop(
        running, step, (counter, more, *start), (*limit, *outer)
    )
    return [Traced(t, k) for t, k in zip(made[2:], kinds, strict=True)]


@op("Scan", tensors=0, folds=False)
def scan(call: Call) -> list[Value | None]:
    if call.version < 9:
        raise call.refused("its form before version 9")
    body: Graph = call.attr("body")
    count = call.attr("num_scan_inputs")
    state: list[Value | None] = list(call.inputs[: len(call.inputs) - count])
    inputs = call.inputs[len(call.inputs) - count :]
    outputs = len(body.outputs) - len(state)
    axes = call.attr("scan_input_axes", [0] * count)
    backward = call.attr("scan_input_directions", [0] * count)
    length = int(inputs[0].shape[axes[0]])  # pyright: ignore
    if length > MOST_ROUNDS:
        raise call.refused(f"{length} rounds are more than {MOST_ROUNDS}")
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
        _stacked(call, values[::-1] if back else values, axis)
        for values, back, axis in zip(collected, directions, places, strict=True)
    ]
    return [*state, *whole]


def _slice(call: Call, value: Any, axis: int, at: int) -> Value:
    if isinstance(value, Known):
        with outside_trace():
            return Known(value.tensor.select(axis, at), value.kind)
    return Traced(call.evaluator.tensor(value).select(axis, at), value.kind)
