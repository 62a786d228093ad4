"""Kinds of nodes that select and write elements by indices, constant ones and computed ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.onnx_graphs import FLOAT, INT64, Array, Graph, Value
from tests.fuzz.onnx_kinds import COMPARISONS, Kind, axis_of, of_rank

ADDING = ("add", "mul", "max", "min")


def gather_elements(g: Graph) -> None:
    x = g.pick(of_rank(1, 2, 3, type=None))
    if x is None:
        return
    axis = axis_of(g, x)
    shape = [
        g.size() if i == axis else int(g.rng.integers(1, s + 1)) for i, s in enumerate(x.shape)
    ]
    indices = g.rng.integers(-x.shape[axis], x.shape[axis], shape)
    g.add("GatherElements", [x, g.constant(indices)], axis=axis)


def gather_nd(g: Graph) -> None:
    x = g.pick(of_rank(2, 3, 4, type=None))
    if x is None:
        return
    depth = int(g.rng.integers(1, x.rank + 1))
    indices = _points(g, x, depth, (g.size(),) if g.rng.random() < 0.5 else (g.size(), 2))
    g.add("GatherND", [x, g.constant(indices)])


def gather_computed(g: Graph) -> None:
    """Add a lookup at indices that the graph computes."""
    x, chosen = g.pick(of_rank(1, 2, 3)), g.pick(of_rank(0, 1, 2, type=INT64))
    if x is None or chosen is None:
        return
    axis = axis_of(g, x)
    if within := g.add("Mod", [chosen, g.integers(x.shape[axis])]):
        g.add("Gather", [x, within[0]], axis=axis)


def scatter_elements(g: Graph) -> None:
    """Add writes along an axis: places that are written twice are added, or there are none."""
    x = g.pick(of_rank(1, 2, 3))
    if x is None:
        return
    axis = axis_of(g, x)
    lines = list(x.shape)
    lines[axis] = int(g.rng.integers(1, x.shape[axis] + 1))
    order = np.argsort(g.rng.random(x.shape), axis).take(range(lines[axis]), axis)
    given: dict[str, Any] = {"axis": axis}
    if g.rng.random() < 0.5:
        given["reduction"] = g.choice(ADDING)
        order = g.rng.integers(-x.shape[axis], x.shape[axis], lines)
    g.add("ScatterElements", [x, g.constant(order), g.weight(*lines)], **given)


def scatter_nd(g: Graph) -> None:
    x = g.pick(of_rank(2, 3))
    if x is None:
        return
    given: dict[str, Any] = {}
    if g.rng.random() < 0.5:
        depth, count = int(g.rng.integers(1, x.rank + 1)), g.size()
        indices = _points(g, x, depth, (count,))
        given["reduction"] = g.choice(ADDING)
    else:
        depth, count = 1, int(g.rng.integers(1, x.shape[0] + 1))
        indices = g.rng.permutation(x.shape[0])[:count, None]
    updates = g.weight(count, *x.shape[depth:])
    g.add("ScatterND", [x, g.constant(indices), updates], **given)


def one_hot(g: Graph) -> None:
    if x := g.pick(of_rank(0, 1, 2, type=INT64)):
        levels = g.constant(np.array([0.25, 2.0], np.float32))
        g.add("OneHot", [x, g.integers(4), levels], axis=int(g.choice((-1, 0))))


def chosen_rows(g: Graph) -> None:
    """Add the sum of the elements that the data chooses, whose number it decides."""
    x = g.pick(of_rank(1, 2, 3))
    if x is None:
        return
    axis = axis_of(g, x)
    others = g.integers(*(i for i in range(x.rank) if i != axis))
    if x.rank > 1:
        g.node("ReduceMax", [x, others], [(x.shape[axis],)], keepdims=0)
    row = g.values[-1] if x.rank > 1 else x
    condition = g.add(g.choice(COMPARISONS), [row, g.constant(np.float32(0.1))])
    if not condition:
        return
    kept = f"kept{len(g.nodes)}"
    shape = tuple(1 if i == axis else size for i, size in enumerate(x.shape))
    g.hidden_node("Compress", [x, condition[0]], kept, axis=axis)
    g.node("ReduceSum", [kept, g.integers(axis)], [shape], keepdims=1)


def places(g: Graph) -> None:
    """Add the sum of the places of what is not zero."""
    if x := g.pick(of_rank(1, 2, 3)):
        found = f"found{len(g.nodes)}"
        g.node("Relu", [x], [x.shape])
        g.hidden_node("NonZero", [g.values[-1]], found)
        g.node("ReduceSum", [found, g.integers(1)], [(x.rank,)], INT64, keepdims=0)


def compressed(g: Graph) -> None:
    x = g.pick(of_rank(1, 2, 3, type=None))
    if x is None:
        return
    axis = axis_of(g, x)
    keep = g.rng.random(x.shape[axis]) < 0.6
    keep[0] = True
    shape = tuple(int(keep.sum()) if i == axis else size for i, size in enumerate(x.shape))
    g.node("Compress", [x, g.constant(keep)], [shape], x.type, axis=axis)


def reversed_sequence(g: Graph) -> None:
    if x := g.pick(of_rank(2, 3)):
        lengths = g.rng.integers(1, x.shape[0] + 1, x.shape[1])
        g.add("ReverseSequence", [x, g.constant(lengths)], time_axis=0, batch_axis=1)


def triangle(g: Graph) -> None:
    if x := g.pick(of_rank(2, 3, 4, type=None)):
        k = g.constant(np.array(g.rng.integers(-2, 3), np.int64))
        g.add("Trilu", [x, k], upper=int(g.rng.integers(2)))


def smallest(g: Graph) -> None:
    if x := g.pick(of_rank(1, 2, 3, 4)):
        axis = axis_of(g, x)
        k = int(g.rng.integers(1, x.shape[axis] + 1))
        g.add("TopK", [x, g.integers(k)], 2, axis=axis, largest=0)


def last_extreme(g: Graph) -> None:
    if x := g.pick(of_rank(1, 2, 3, 4)):
        kind = g.choice(("ArgMax", "ArgMin"))
        g.add(kind, [x], axis=axis_of(g, x) - x.rank, keepdims=1, select_last_index=1)


def running_sum(g: Graph) -> None:
    if x := g.pick(lambda v: v.type in (FLOAT, INT64) and 0 < v.rank < 5):
        axis = g.constant(np.array(axis_of(g, x) - x.rank, np.int64))
        g.add("CumSum", [x, axis], reverse=1, exclusive=int(g.rng.integers(2)))


def _points(g: Graph, x: Value, depth: int, counts: tuple[int, ...]) -> Array:
    """Return indices of the first `depth` dimensions, some of them counted from the end."""
    indices = [g.rng.integers(-size, size, counts) for size in x.shape[:depth]]
    return np.stack(indices, -1)


KINDS: tuple[Kind, ...] = (
    gather_elements, gather_nd, gather_computed, gather_computed, scatter_elements, scatter_nd,
    one_hot, chosen_rows, places, compressed, reversed_sequence, triangle, smallest, last_extreme,
    running_sum,
)  # fmt: skip
