"""Kinds of nodes of sequences: recurrent layers, attention, loops, branches, sizes as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.fuzz.onnx_graphs import BOOL, FLOAT, MOST, Graph, Value
from tests.fuzz.onnx_kinds import Kind, of_rank

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def recurrent(g: Graph) -> None:
    """Add a recurrent layer that goes one way or both, perhaps over sequences of some lengths."""
    x = g.pick(of_rank(3))
    if x is None:
        return
    kind, hidden = g.choice(tuple(GATES)), int(g.rng.integers(1, 5))
    direction = g.choice(("forward", "reverse", "bidirectional"))
    ways, rows = (2 if direction == "bidirectional" else 1), GATES[kind] * hidden
    inputs: list[Value | str] = [x, g.weight(ways, rows, x.shape[2]), g.weight(ways, rows, hidden)]
    inputs.append(g.weight(ways, 2 * rows) if g.rng.random() < 0.7 else "")
    steps, batch = x.shape[:2]
    some = g.rng.integers(1, steps + 1, batch).astype(np.int32)
    inputs.append(g.constant(some) if g.rng.random() < 0.3 else "")
    if g.rng.random() < 0.5:
        inputs.append(g.weight(ways, batch, hidden))
    given: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if kind == "GRU":
        given["linear_before_reset"] = int(g.rng.integers(2))
    g.add(kind, inputs, 3 if kind == "LSTM" else 2, **given)


def attention(g: Graph) -> None:
    """Add an attention of a tensor to itself, causal or not."""
    x = g.pick(lambda v: v.type == FLOAT and v.rank in (2, 3, 4) and v.shape[-2] * v.shape[-1] > 1)
    if x is None:
        return
    width, steps = x.shape[-1], x.shape[-2]
    query, key, value = (g.add("MatMul", [x, g.weight(width, width)]) for _ in range(3))
    if not (query and key and value):
        return
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    scores = g.add("MatMul", [*query, *g.add("Transpose", key, perm=order)])
    if not scores:
        return
    scaled = g.add("Mul", [*scores, g.constant(np.float32(width**-0.5))])
    if g.rng.random() < 0.5:
        mask = np.triu(np.full((steps, steps), -np.inf, np.float32), 1)
        scaled = g.add("Add", [*scaled, g.constant(mask)])
    shares = g.add("Softmax", [*scaled], axis=-1)
    g.add("MatMul", [*shares, *value])


def heads(g: Graph) -> None:
    """Add a tensor's columns as heads: a reshape and a transpose."""
    x = g.pick(lambda v: v.rank == 3 and v.shape[2] % 2 == 0)
    if x is None:
        return
    parts = g.add("Reshape", [x, g.integers(0, 0, 2, x.shape[2] // 2)])
    if parts:
        g.add("Transpose", [*parts], perm=[0, 2, 1, 3])


EQUATIONS = {
    2: ("ij,kj->ik", "ij,kj->ki", "ij,ij->i", "ij,ij->"),
    3: ("bij,bkj->bik", "bij,bkj->bki", "bij,bij->b", "bij,bij->ij", "bij,bkj->bikj"),
    4: ("bhid,bhjd->bhij", "bhid,bhjd->bhji", "bhid,bhid->bhi"),
}


def any_einsum(g: Graph) -> None:
    if x := g.pick(of_rank(2, 3, 4)):
        other = g.pick(lambda v: v.type == FLOAT and v.shape == x.shape) or x
        g.add("Einsum", [x, other], equation=g.choice(EQUATIONS[x.rank]))


def several(g: Graph) -> None:
    """Add an op of as many tensors as one likes."""
    if x := g.pick():
        other = g.pick(lambda v: v.type == FLOAT and v.shape == x.shape) or x
        g.add(g.choice(("Sum", "Mean", "Max", "Min")), [x, other, g.constant(np.float32(0.3))])


def sizes_as_numbers(g: Graph) -> None:
    """Add a reshape to a shape that the graph computes from that of the tensor."""
    x = g.pick(of_rank(2, 3, 4, type=None))
    if x is None:
        return
    sizes = g.add("Shape", [x])
    first = g.add("Gather", [*sizes, g.integers(0)])
    shape = g.add("Concat", [*first, g.integers(-1)], axis=0)
    rest = int(np.prod(x.shape[1:]))
    g.node("Reshape", [x, *shape], [(x.shape[0], rest)], x.type)


def expanded_as_another(g: Graph) -> None:
    """Add a tensor broadcast to the shape of another one."""
    x, other = g.pick(of_rank(0, 1)), g.pick(of_rank(2, 3))
    if x is None or other is None or (x.rank and x.shape[0] not in (1, other.shape[-1])):
        return
    shape = g.add("Shape", [other])
    g.node("Expand", [x, *shape], [other.shape])


def counted(g: Graph) -> None:
    """Add a range as long as a tensor, as positions are made."""
    x = g.pick(of_rank(2, 3))
    if x is None:
        return
    sizes = g.add("Shape", [x], start=1, end=2)
    size = g.add("Squeeze", [*sizes])
    zero, one = (g.constant(np.array(n, np.int64)) for n in (0, 1))
    g.node("Range", [zero, *size, one], [(x.shape[1],)], g.values[-1].type)


def any_reduction(g: Graph) -> None:
    """Add a reduction over several axes, some counted from the end, by any of its rules."""
    x = g.pick(of_rank(1, 2, 3, 4, 5))
    if x is None:
        return
    kind = g.choice(
        ("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceProd", "ReduceMean", "ReduceMax")
    )
    count = int(g.rng.integers(1, x.rank + 1))
    axes = [
        int(i) - x.rank * int(g.rng.integers(2)) for i in g.rng.choice(x.rank, count, replace=False)
    ]
    inputs: list[Value | str] = [x, g.integers(*axes)] if g.rng.random() < 0.8 else [x]
    g.add(kind, inputs, keepdims=int(g.rng.integers(2)))


def loop(g: Graph) -> None:
    """Add a loop of a few rounds, which gives its last state and all of them."""
    x = g.pick(lambda v: v.type == FLOAT and 3 * int(np.prod(v.shape)) <= MOST)
    if x is None:
        return
    n = len(g.nodes)
    rounds, always = g.constant(np.array(3, np.int64)), g.constant(np.array(True))
    body = helper.make_graph(
        [
            helper.make_node(g.choice(("Tanh", "Relu", "Neg")), [f"s{n}"], [f"u{n}"]),
            helper.make_node("Add", [f"u{n}", x.name], [f"v{n}"]),
            helper.make_node("Identity", [f"v{n}"], [f"o{n}"]),
            helper.make_node("Identity", [f"d{n}"], [f"e{n}"]),
        ],
        "body",
        [
            helper.make_tensor_value_info(f"i{n}", helper.np_dtype_to_tensor_dtype(np.dtype(np.int64)), []),
            helper.make_tensor_value_info(f"d{n}", BOOL, []),
            helper.make_tensor_value_info(f"s{n}", FLOAT, None),
        ],
        [
            helper.make_tensor_value_info(f"e{n}", BOOL, []),
            helper.make_tensor_value_info(f"v{n}", FLOAT, None),
            helper.make_tensor_value_info(f"o{n}", FLOAT, None),
        ],
    )  # fmt: skip
    g.node("Loop", [rounds, always, x], [x.shape, (3, *x.shape)], body=body)


def scan(g: Graph) -> None:
    """Add a scan over the rows of a tensor."""
    x = g.pick(of_rank(2, 3))
    if x is None:
        return
    n = len(g.nodes)
    body = helper.make_graph(
        [
            helper.make_node("Mul", [f"s{n}", f"x{n}_"], [f"m{n}"]),
            helper.make_node("Sigmoid", [f"m{n}"], [f"v{n}"]),
            helper.make_node("Add", [f"v{n}", f"x{n}_"], [f"o{n}"]),
        ],
        "body",
        [helper.make_tensor_value_info(name, FLOAT, None) for name in (f"s{n}", f"x{n}_")],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in (f"v{n}", f"o{n}")],
    )
    start = g.weight(*x.shape[1:])
    g.node("Scan", [start, x], [x.shape[1:], x.shape], body=body, num_scan_inputs=1)


def branches(g: Graph) -> None:
    """Add two branches, of which the data chooses one."""
    x = g.pick()
    if x is None:
        return
    n = len(g.nodes)
    graphs: dict[str, Any] = {}
    for name, kind in (("then_branch", "Relu"), ("else_branch", "Neg")):
        node = helper.make_node(kind, [x.name], [f"{name}{n}"])
        end = helper.make_tensor_value_info(f"{name}{n}", FLOAT, None)
        graphs[name] = helper.make_graph([node], name, [], [end])
    g.node("ReduceMax", [x], [()], keepdims=0)
    positive = g.add("Greater", [g.values[-1], g.constant(np.float32(1.0))])
    g.node("If", [*positive], [x.shape], **graphs)


KINDS: tuple[Kind, ...] = (
    recurrent, recurrent, attention, attention, heads, any_einsum, several, sizes_as_numbers,
    expanded_as_another, counted, any_reduction, any_reduction, loop, scan, branches,
)  # fmt: skip
