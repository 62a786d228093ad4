"""What a loop computes of constants alone, which is evaluated while the graph is read.

Exporters have loops count in variables of their own, end when such a count does, and hand weights
on from round to round. Variables of this kind are none of the program: one that never changes is a
constant of the body, one that changes is a table with a row for each round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from fewbit.frontends.onnx.graph import Graph, Node
from fewbit.frontends.onnx.kinds import INT64
from fewbit.frontends.onnx.ops.control_flow import inner_scope
from fewbit.frontends.onnx.table import Call
from fewbit.frontends.onnx.values import Known, Many, Rows, Size, Value, known, outside_trace

MOST_ROUNDS = 4096
LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclass(frozen=True)
class Body:
    """The body of a loop, by the names of what it takes and gives."""

    graph: Graph
    variables: Mapping[str, str]
    """What each state is called, and the name of what it is in the next round."""
    collected: tuple[str, ...]
    counter: str = ""
    condition: str = ""
    """One of the variables, or empty for loops that only count."""
    elements: tuple[str, ...] = ()

    @property
    def state(self) -> list[str]:
        return [name for name in self.variables if name != self.condition]

    def is_handed_on(self, variable: str) -> bool:
        """Return whether it is in the next round what it is in this one."""
        copies = {n.outputs[0]: n.inputs[0] for n in self.graph.nodes if n.op == "Identity"}
        name = self.variables[variable]
        while name in copies:
            name = copies[name]
        return name == variable

    def find_appended(self, start: Mapping[str, Value | None]) -> dict[str, str]:
        """The sequences that each round appends a tensor to, with the names of these tensors.

        They begin empty, and nothing else reads them in the body.
        """
        appended: dict[str, str] = {}
        for node in self.graph.nodes:
            name = node.inputs[0] if node.op == "SequenceInsert" and len(node.inputs) == 2 else ""
            begin = start.get(name)
            if not isinstance(begin, Many) or isinstance(begin.items, Rows) or begin.items:
                continue
            readers = sum(
                name in _reads(n) or node.outputs[0] in _reads(n) for n in self.graph.nodes
            )
            if readers == 1 and self.variables[name] == node.outputs[0]:
                appended[name] = node.inputs[1]
        return appended

    def without(self, appended: Mapping[str, str]) -> Body:
        """The body that collects those tensors in place of appending them."""
        results = {self.variables[name] for name in appended}
        graph = replace(
            self.graph,
            nodes=tuple(n for n in self.graph.nodes if not results & set(n.outputs)),
            outputs=tuple(n for n in self.graph.outputs if n not in results),
        )
        kept = {a: b for a, b in self.variables.items() if a not in appended}
        return replace(
            self, graph=graph, variables=kept, collected=(*self.collected, *appended.values())
        )


@dataclass
class KnownPart:
    """The variables that are computed now: before each round, and after the last."""

    rounds: Size | None
    """None where the program must find out whether there is another round."""
    before: dict[str, list[Known]] = field(default_factory=dict[str, "list[Known]"])
    last: dict[str, Known] = field(default_factory=dict[str, Known])
    collected: dict[str, list[Known]] = field(default_factory=dict[str, "list[Known]"])
    differing: frozenset[str] = frozenset()
    """Names in the body of constants that differ from round to round."""

    def constants(self) -> dict[str, Known]:
        """The variables that are the same in all rounds."""
        return {n: v[0] for n, v in self.before.items() if v and n not in self.differing}

    def tables(self) -> dict[str, list[Known]]:
        """The variables that differ from round to round."""
        return {n: v for n, v in self.before.items() if n in self.differing}


def evaluate_known(
    call: Call,
    body: Body,
    start: Mapping[str, Value | None],
    rows: Mapping[str, Sequence[Known]],
    most: Size | None,
) -> KnownPart | None:
    """Evaluate what is known of a loop; None if it does not end within what is tried.

    `rows` are the elements that are constants. Of a loop with a dynamic number of rounds, or of too
    many to try, only what never changes is known.
    """
    if most is None or (isinstance(most, int) and most <= MOST_ROUNDS):
        part = _run(call, body, start, rows, most)
        if part is not None or most is None:
            return part
    return _run_unchanging(call, body, start, most)


def _run(
    call: Call,
    body: Body,
    start: Mapping[str, Value | None],
    rows: Mapping[str, Sequence[Known]],
    most: int | None,
) -> KnownPart | None:
    given = {body.counter, *rows} - {""}
    variables, names = _known_names(call, body, start, given)
    if body.condition and body.condition not in variables:
        return KnownPart(None)
    collected = [name for name in body.collected if name in names]
    part, steady = _slice(body, [*(body.variables[v] for v in variables), *collected], given)
    now = {v: value for v in variables if isinstance(value := start[v], Known)}
    before: dict[str, list[Known]] = {name: [] for name in now}
    stacks: dict[str, list[Known]] = {name: [] for name in collected}
    rounds = 0
    while most is None or rounds < most:
        if body.condition and not now[body.condition].items()[0]:
            break
        if rounds == MOST_ROUNDS:
            return None
        after = _round(call, body, part, rounds, now, rows)
        if after is None:
            return None
        for name, value in now.items():
            before[name].append(value)
        for name in collected:
            stacks[name].append(after[name])
        then = {name: after[body.variables[name]] for name in now}
        rounds += 1
        if steady and most is not None and all(_same(now[n], then[n]) for n in now):
            for kept in (*before.values(), *stacks.values()):
                kept.extend([kept[-1]] * (most - rounds))
            rounds = most
        now = then
    before.pop(body.condition, None)  # It holds before each round.
    changing = {n for n, v in before.items() if not all(_same(v[0], x) for x in v[1:])}
    differing = _constant_names(call, body.graph, {*given, *changing}, {*now} - changing)
    return KnownPart(rounds, before, now, stacks, frozenset(differing))


def _run_unchanging(
    call: Call, body: Body, start: Mapping[str, Value | None], most: Size
) -> KnownPart | None:
    tried = dict(start)
    while True:
        variables, _ = _known_names(call, body, tried, set())
        if body.condition and body.condition not in variables:
            return KnownPart(None)
        part, _ = _slice(body, [body.variables[v] for v in variables], set())
        now = {v: value for v in variables if isinstance(value := start[v], Known)}
        after = _round(call, body, part, 0, now, {})
        changed = [n for n in now if after is None or not _same(now[n], after[body.variables[n]])]
        if body.condition and body.condition in changed:
            return KnownPart(None)
        if not changed:
            differing = {body.counter, *body.elements} - {""}
            names = _constant_names(call, body.graph, differing, set(now))
            before = {n: [v] for n, v in now.items() if n != body.condition}
            return KnownPart(most, before, now, {}, frozenset(names))
        for name in changed:
            tried[name] = None


def _known_names(
    call: Call, body: Body, start: Mapping[str, Value | None], given: set[str]
) -> tuple[list[str], set[str]]:
    """The variables that depend on constants alone, and all such names of the body."""
    variables = [name for name in body.variables if isinstance(start[name], Known)]
    while True:
        names = _constant_names(call, body.graph, {*given, *variables}, set(), True)
        kept = [name for name in variables if body.variables[name] in names]
        if kept == variables:
            return variables, names
        variables = kept


def _constant_names(
    call: Call, graph: Graph, given: set[str], fixed: set[str], all_of_them: bool = False
) -> set[str]:
    """Names whose values follow from the given and from constants, and not from constants alone."""
    outer = {n for n in graph.outer_names() if isinstance(call.scope.values.get(n), Known)}
    constants = {*graph.constants, *outer, *fixed}
    names = set(given)
    for node in graph.nodes:
        reads = _reads(node)
        if not reads <= (constants | names):
            continue
        (names if reads & names else constants).update(node.outputs)
    return names | constants if all_of_them else names


def _reads(node: Node) -> set[str]:
    inside = (name for graph in node.graphs() for name in graph.outer_names())
    return {*node.inputs, *inside} - {""}


def _slice(body: Body, outputs: Sequence[str], given: Iterable[str]) -> tuple[Graph, bool]:
    """The nodes that these outputs need, and whether they are the same in all rounds."""
    wanted = set(outputs)
    kept: list[Node] = []
    for node in reversed(body.graph.nodes):
        if wanted & set(node.outputs):
            kept.append(node)
            wanted |= _reads(node)
    graph = replace(body.graph, nodes=tuple(reversed(kept)), outputs=tuple(outputs))
    return graph, not wanted & set(given)


def _round(
    call: Call,
    body: Body,
    part: Graph,
    number: int,
    now: Mapping[str, Known],
    rows: Mapping[str, Sequence[Known]],
) -> dict[str, Known] | None:
    scope = inner_scope(call, "known")
    scope.values.update(now)
    scope.values.update({name: values[number] for name, values in rows.items()})
    if body.counter:
        scope.values[body.counter] = known(number, INT64)
    results = call.evaluator.graph(part, scope)
    values = {n: v for n, v in zip(part.outputs, results, strict=True) if isinstance(v, Known)}
    return values if len(values) == len(set(part.outputs)) else None


def _same(a: Known, b: Known) -> bool:
    if a is b:
        return True
    if a.kind != b.kind or a.shape != b.shape:
        return False
    with outside_trace():
        return bool(torch.equal(a.tensor, b.tensor))


def has_layers_of_each_round(body: Body, differing: frozenset[str]) -> bool:
    """Return whether layers have constant weights of their own in each round, if written out."""
    return any(
        node.op in LAYERS and bool(differing & set(node.inputs[1:])) for node in body.graph.nodes
    )
