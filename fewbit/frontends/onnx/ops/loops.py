"""Loop and Scan.

Rounds that are counted become torch's `scan`, whatever their number, which may be dynamic; those
that go on until the data says so, `while_loop`. One or two rounds are written out, and so are more
of them where the body cannot be one graph: where shapes change from round to round, or decide on
values that do, or layers have weights of their own in each round. A sequence to which each round
appends a tensor, as exporters write lists of Python, is collected like any other result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from fewbit.decompositions.recurrent import scan_steps
from fewbit.errors import Error
from fewbit.frontends.onnx.graph import Graph
from fewbit.frontends.onnx.kinds import BOOL, INT64
from fewbit.frontends.onnx.ops.control_flow import (
    Captured,
    call_constants,
    inner_scope,
    kinds_of,
    tensorlike,
    tensors_of,
)
from fewbit.frontends.onnx.ops.known_rounds import (
    MOST_ROUNDS,
    Body,
    KnownPart,
    evaluate_known,
    has_layers_of_each_round,
)
from fewbit.frontends.onnx.table import Call, op
from fewbit.frontends.onnx.values import (
    Known,
    Many,
    Rows,
    Size,
    Sizes,
    Tensorlike,
    Traced,
    Value,
    concrete,
    known,
    outside_trace,
)

if TYPE_CHECKING:
    from fewbit.frontends.onnx.evaluate import Scope

FEW_ROUNDS = 2
"""So many are written out: a loop would not be shorter."""


@dataclass(frozen=True)
class Element:
    """A tensor of which each round takes a slice."""

    value: Tensorlike
    axis: int
    backward: bool

    def whole(self, call: Call) -> Tensor:
        """The tensor with its rounds first, in their order."""
        tensor = call.evaluator.tensor(self.value).movedim(self.axis, 0)
        return tensor.flip(0) if self.backward else tensor

    def row(self, call: Call, number: int) -> Tensorlike:
        at = int(self.value.shape[self.axis]) - 1 - number if self.backward else number
        if isinstance(self.value, Known):
            with outside_trace():
                return Known(self.value.tensor.select(self.axis, at), self.value.kind)
        return Traced(call.evaluator.tensor(self.value).select(self.axis, at), self.value.kind)


class Rounds:
    """A loop whose rounds are counted: their number is known, or a size."""

    def __init__(
        self,
        call: Call,
        body: Body,
        start: Mapping[str, Value | None],
        elements: Mapping[str, Element],
        part: KnownPart,
    ) -> None:
        self.call, self.body, self.part = call, body, part
        self.start, self.elements = start, elements
        self.count: Size = part.rounds
        self.appended = body.find_appended(start)
        self.key = (call.node.number, call.scope.prefix)

    def run(self) -> list[Value | None]:
        """The last state, and what was collected with its rounds first."""
        written_out = self.call.evaluator.written_out
        if self.key in written_out or not self._is_loop():
            return self._write_out()
        if self.call.evaluator.tracing:
            return self._loop()
        try:
            return self._loop()
        except Error:
            if not isinstance(self.count, int) or self.count > MOST_ROUNDS:
                raise
            written_out.add(self.key)
            return self._write_out()

    def _is_loop(self) -> bool:
        if not isinstance(self.count, int) or self.count > MOST_ROUNDS:
            return True
        if self.count <= FEW_ROUNDS:
            return False
        return not has_layers_of_each_round(self.body, self.part.differing)

    def _write_out(self) -> list[Value | None]:
        call, body = self.call, self.body
        state = {name: self.start[name] for name in body.state}
        collected: list[list[Value | None]] = [[] for _ in body.collected]
        for number in range(self.count):
            scope = inner_scope(call, str(number))
            scope.values.update(state)
            scope.values.update({n: e.row(call, number) for n, e in self.elements.items()})
            if body.counter:
                scope.values[body.counter] = known(number, INT64)
            if body.condition:
                scope.values[body.condition] = known(True, BOOL)
            call.evaluator.graph(body.graph, scope)
            state = {name: scope.values.get(body.variables[name]) for name in body.state}
            for kept, name in zip(collected, body.collected, strict=True):
                kept.append(scope.values.get(name))
        return [*state.values(), *(_stack(call, values) for values in collected)]

    def _loop(self) -> list[Value | None]:
        call, part = self.call, self.part
        body = self.body.without(self.appended)
        kept = [n for n in body.state if n not in part.last and body.is_handed_on(n)]
        state = [n for n in body.state if n not in part.last and n not in kept]
        collected = [n for n in dict.fromkeys(body.collected) if n not in part.collected]
        finals: dict[str, Value | None] = {n: self.start[n] for n in kept} | dict(part.last)
        stacks: dict[str, Value] = {n: _stack(call, [*v]) for n, v in part.collected.items()}
        if state or collected:
            ends, whole = self._trace(body, kept, state, collected)
            finals |= dict(zip(state, ends, strict=True))
            stacks |= dict(zip(collected, whole, strict=True))
        for name, tensor in self.appended.items():
            whole = stacks[tensor]
            assert isinstance(whole, Known | Traced)
            finals[name] = Many(Rows(whole))
        return [*(finals[n] for n in self.body.state), *(stacks[n] for n in self.body.collected)]

    def _trace(
        self, body: Body, kept: Sequence[str], state: Sequence[str], collected: Sequence[str]
    ) -> tuple[list[Traced], list[Traced]]:
        call = self.call
        captured = Captured(call, [body.graph])
        starts = [self.start[name] for name in state]
        handed_on = tensorlike(call, [self.start[name] for name in kept])
        rows = self._rows()
        names = [*state, *rows, *kept]
        kinds = [*kinds_of(call, starts), *(kind for _, kind in rows.values())]
        kinds += [value.kind for value in handed_on]
        outputs = [*(body.variables[name] for name in state), *collected]
        given: list[int] = []

        def step(*tensors: Tensor) -> list[Tensor]:
            scope = self._scope()
            pairs = zip(names, tensors, kinds, strict=False)
            scope.values.update({name: Traced(tensor, kind) for name, tensor, kind in pairs})
            captured.run(body.graph, scope, tensors[len(names) :])
            results = [scope.values.get(name) for name in outputs]
            given[:] = kinds_of(call, results)
            return tensors_of(call, results)

        begin = tensors_of(call, starts)
        steps = [tensor for tensor, _ in rows.values()]
        others = [call.evaluator.tensor(value) for value in handed_on]
        if call.evaluator.tracing:
            results = scan_steps(step, begin, steps, [*others, *captured.operands()])
        else:
            results = self._shapes(step, begin, steps, others, captured)
            if given[: len(state)] != kinds[: len(state)]:
                raise call.refusal("its state changes in type from round to round")
        traced = [Traced(tensor, kind) for tensor, kind in zip(results, given, strict=True)]
        return traced[: len(state)], traced[len(state) :]

    def _rows(self) -> dict[str, tuple[Tensor, int]]:
        """Return what differs from round to round, as tensors, rounds first, and its kinds."""
        call, body = self.call, self.body
        counter = torch.arange(self.count)
        rows = {body.counter or "/counter": (counter, INT64)}
        for name, values in self.part.tables().items():
            table = _stack(call, [*values])
            assert isinstance(table, Known)
            rows[name] = call.constant(table.tensor, f"{name}.rounds"), table.kind
        for name, element in self.elements.items():
            rows[name] = element.whole(call), element.value.kind
        return rows

    def _scope(self) -> Scope:
        scope = inner_scope(self.call, "round")
        scope.values.update(self.part.constants())
        if self.body.condition:
            scope.values[self.body.condition] = known(True, BOOL)
        return scope

    def _shapes(
        self,
        step: Any,
        begin: Sequence[Tensor],
        steps: Sequence[Tensor],
        others: Sequence[Tensor],
        captured: Captured,
    ) -> list[Tensor]:
        """Before the trace: one round, to find the constants and the shapes of results."""
        call = self.call
        captured.paths.clear()
        traced = [value.tensor for value in captured.traced.values()]
        with call_constants(call).noting() as noted:
            results = step(*begin, *(tensor[0] for tensor in steps), *others, *traced)
        captured.paths[:] = noted
        _check_state(call, begin, results[: len(begin)])
        rounds = [tensor.unsqueeze(0) for tensor in results[len(begin) :]]
        whole = [tensor.expand([self.count, *tensor.shape[1:]]) for tensor in rounds]
        return [*results[: len(begin)], *whole]


def _check_state(call: Call, before: Sequence[Tensor], after: Sequence[Tensor]) -> None:
    for old, new in zip(before, after, strict=True):
        if old.shape != new.shape or old.dtype != new.dtype:
            raise call.refusal("its state changes in shape or type from round to round")


def _stack(call: Call, values: list[Value | None]) -> Value:
    """The results of all rounds, one after the other along a new first axis."""
    if not values:
        raise call.refusal("it has no round, so that its results have no shape")
    tensors = tensorlike(call, values)
    kind = tensors[0].kind
    constants = [v for v in tensors if isinstance(v, Known)]
    if any(v.shape != tensors[0].shape for v in constants):
        raise call.refusal("what it collects changes in shape from round to round")
    if len(constants) == len(tensors):
        with outside_trace():
            return Known(torch.stack([v.tensor for v in constants], 0), kind)
    return Traced(torch.stack([call.evaluator.tensor(v) for v in tensors], 0), kind)


@op("Loop", tensors=0, folds=False)
def loop(call: Call) -> list[Value | None]:
    graph: Graph = call.attr("body")
    counter, condition, *state = (value.name for value in graph.inputs)
    more, *outputs = graph.outputs
    following = dict(zip([condition, *state], [more, *outputs], strict=False))
    body = Body(graph, following, tuple(outputs[len(state) :]), counter, condition)
    begin = call.input(1) or known(True, BOOL)
    start: dict[str, Value | None] = dict(zip(state, call.inputs[2:], strict=True))
    rounds = _count(call)
    if not isinstance(begin, Known) or (call.has(0) and rounds is None):
        return _while(call, body, [*start.values()])
    part = evaluate_known(call, body, start | {condition: begin}, {}, rounds)
    if part is None:
        raise call.refusal(f"it ends after no {MOST_ROUNDS} rounds")
    if part.rounds is None or (isinstance(part.rounds, int) and part.rounds > 2**31 - 1):
        return _while(call, body, [*start.values()])
    return Rounds(call, body, start, {}, part).run()


def _count(call: Call) -> Size | None:
    """The number of rounds, which may be a size; None where it is not known."""
    value = call.input(0)
    if isinstance(value, Sizes):
        return concrete(value.array.flat[0])
    return int(value.items()[0]) if isinstance(value, Known) else None


def _while(call: Call, body: Body, begin: Sequence[Value | None]) -> list[Value | None]:
    """Rounds that the program counts; results of all rounds would have no known size."""
    count = len(begin)
    if len(call.node.outputs) > count and any(call.node.outputs[count:]):
        unknown = [i for i in (0, 1) if call.has(i) and call.known(i) is None]
        if unknown:
            raise call.needs(*unknown)
        raise call.refusal("the number of its rounds is not known, and it collects results")
    evaluator = call.evaluator
    captured = Captured(call, [body.graph])
    start = tensors_of(call, begin)
    kinds = kinds_of(call, begin)
    more = call.tensor(1).reshape([]).clone() if call.has(1) else torch.ones((), dtype=torch.bool)
    most = call.tensor(0).reshape([]).to(torch.int64) if call.has(0) else None
    names = [body.counter, body.condition, *body.state]

    def round_scope(counter: Tensor, go: Tensor, state: Sequence[Tensor]) -> Scope:
        scope = inner_scope(call, "round")
        values = [Traced(counter, INT64), Traced(go, BOOL)]
        values += [Traced(t, k) for t, k in zip(state, kinds, strict=True)]
        scope.values.update(zip(names, values, strict=True))
        return scope

    if not evaluator.tracing:
        with call_constants(call).noting() as noted:
            scope = round_scope(torch.zeros((), dtype=torch.int64), more, start)
            after = tensors_of(call, evaluator.graph(body.graph, scope))
        captured.paths[:] = noted
        _check_state(call, start, after[1 : 1 + count])
        return [Traced(t, k) for t, k in zip(start, kinds, strict=True)]
    outer = captured.operands()
    limit = [] if most is None else [most]

    def running(counter: Tensor, go: Tensor, *operands: Tensor) -> Tensor:
        bound = operands[count] if limit else None
        return go & (counter < bound) if bound is not None else go.clone()

    def step(counter: Tensor, go: Tensor, *operands: Tensor) -> tuple[Tensor, ...]:
        state, others = operands[:count], operands[count + len(limit) :]
        results = captured.run(body.graph, round_scope(counter, go, state), others)
        go, *after = tensors_of(call, results)[: 1 + count]
        return (counter + 1, go.reshape([]), *after)

    counter = torch.zeros((), dtype=torch.int64)
    results: Sequence[Tensor] = cast(Any, torch.ops.higher_order).while_loop(
        running, step, (counter, more, *start), (*limit, *outer)
    )
    return [Traced(t, k) for t, k in zip(results[2:], kinds, strict=True)]


@op("Scan", tensors=0, folds=False)
def scan(call: Call) -> list[Value | None]:
    if call.version < 9:
        return _scan_batch(call)
    body = _scan_body(call)
    count, outputs = len(body.elements), len(body.collected)
    axes: list[int] = call.attr("scan_input_axes", [0] * count)
    backward: list[int] = call.attr("scan_input_directions", [0] * count)
    results = _scan(call, body, call.inputs, axes, backward)
    directions = call.attr("scan_output_directions", [0] * outputs)
    places = call.attr("scan_output_axes", [0] * outputs)
    first = len(body.state)
    whole = zip(tensorlike(call, results[first:]), places, directions, strict=True)
    return [*results[:first], *(_arrange(call, v, axis, bool(back)) for v, axis, back in whole)]


def _scan_body(call: Call) -> Body:
    graph: Graph = call.attr("body")
    names = [value.name for value in graph.inputs]
    count = len(names) - call.attr("num_scan_inputs")
    variables = dict(zip(names[:count], graph.outputs, strict=False))
    return Body(graph, variables, graph.outputs[count:], elements=tuple(names[count:]))


def _scan(
    call: Call,
    body: Body,
    inputs: Sequence[Value | None],
    axes: Sequence[int],
    backward: Sequence[int],
) -> list[Value | None]:
    """The last state, and what is collected with its rounds first."""
    state = dict(zip(body.state, inputs, strict=False))
    given = tensorlike(call, inputs[len(state) :])
    elements = {
        name: Element(value, axis % len(value.shape), bool(back))
        for name, value, axis, back in zip(body.elements, given, axes, backward, strict=True)
    }
    first = next(iter(elements.values()))
    length = concrete(first.value.shape[first.axis])
    rows: dict[str, list[Known]] = {}
    if isinstance(length, int) and length <= MOST_ROUNDS:
        for name, element in elements.items():
            if isinstance(element.value, Known):
                each = [element.row(call, number) for number in range(length)]
                rows[name] = [row for row in each if isinstance(row, Known)]
    part = evaluate_known(call, body, state, rows, length)
    assert part is not None
    return Rounds(call, body, state, elements, part).run()


def _scan_batch(call: Call) -> list[Value | None]:
    """The form of version 8, which is one loop for each sample of a batch."""
    body = _scan_body(call)
    inputs = tensorlike(call, call.inputs[1:])
    sizes = {concrete(value.shape[0]) for value in inputs}
    length = concrete(inputs[-1].shape[1])
    lengths = call.whole(0) if call.has(0) else []
    if any(given != length for given in lengths):
        raise call.refusal("sequences of different lengths")
    if len(sizes) != 1 or not isinstance(batch := sizes.pop(), int):
        raise call.refusal("its form before version 9 with a dynamic batch")
    backward = call.attr("directions", [0] * len(body.elements))
    samples: list[list[Value | None]] = []
    for number in range(batch):
        scope = replace(call.scope, prefix=f"{call.scope.prefix}{call.node.outputs[0]}/{number}/")
        inner = Call(
            call.evaluator, call.node, scope, call.attributes, call.inputs, call.version,
            call.place, call.folding,
        )  # fmt: skip
        slices = [Element(value, 0, False).row(inner, number) for value in inputs]
        samples.append(_scan(inner, body, slices, [0] * len(body.elements), backward))
    return [_stack(call, list(values)) for values in zip(*samples, strict=True)]


def _arrange(call: Call, value: Tensorlike, axis: int, backward: bool) -> Value:
    """Return what was collected, with its rounds along this axis and in this order."""
    if axis == 0 and not backward:
        return value

    def move(tensor: Tensor) -> Tensor:
        return (tensor.flip(0) if backward else tensor).movedim(0, axis)

    if isinstance(value, Known):
        with outside_trace():
            return Known(move(value.tensor), value.kind)
    return Traced(move(call.evaluator.tensor(value)), value.kind)
