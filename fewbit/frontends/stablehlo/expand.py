"""Ops that the lowering to linalg does not know, written with ops that it does.

A sort counts for each element how many come before it, which is its place: no loop, and the order
of equal elements is kept. A scatter is a loop over its windows, as they may overlap. The total
order of floats is that of integers, of their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from fewbit.frontends.stablehlo.build import Builder, Recorder, array_text
from fewbit.frontends.stablehlo.emit import Bound, Emitter
from fewbit.frontends.stablehlo.ops import Block, Op, TensorType, Value, numbers_of

LONGEST = 4096
"""Elements along which a sort compares each with each."""

Expander = Callable[[Builder, Op], "Sequence[Value] | None"]


def expand(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    expander = EXPANDERS.get(op.kind)
    values = None if expander is None else expander(Builder(emitter, op.source), op)
    return None if values is None else [emitter.bound(value) for value in values]


def _is_elementwise(body: Block) -> bool:
    return all(
        not op.regions and len(op.results) == 1 and op.kind != "call" for op in body.ops[:-1]
    )


def _sort(build: Builder, op: Op) -> Sequence[Value] | None:
    type = op.operands[0].tensor
    axis = op.integer("dimension", type.rank - 1) % max(type.rank, 1)
    body = op.regions[0]
    if type.size == 0 or type.shape[axis] > LONGEST or not _is_elementwise(body):
        return None
    count, rank = type.shape[axis], type.rank
    pairs = (*type.shape, count)
    here = list(range(rank))
    moved = [rank if d == axis else d for d in here]
    own = [build.broadcast(value, pairs, here) for value in op.operands]
    others = [build.broadcast(value, pairs, moved) for value in op.operands]
    (before,) = build.lift(body, _interleave(others, own))
    (after,) = build.lift(body, _interleave(own, others))
    numbers = TensorType(pairs, "i32")
    first = build.compare("LT", build.iota(numbers, rank), build.iota(numbers, axis))
    strictly = build.both(before, build.negate(after))
    equal = build.negate(build.op("xor", before.tensor, before, after))
    precedes = build.either(strictly, build.both(equal, first))
    places = build.sum_of_last(build.convert(precedes, "i32"))
    chosen = build.compare("EQ", build.broadcast(places, pairs, moved), build.iota(numbers, axis))
    origin = build.select(chosen, build.iota(numbers, rank), build.number(0, numbers))
    index = build.sum_of_last(origin)
    return [_gather(build, value, index, axis) for value in op.operands]


def _interleave(left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
    return [value for pair in zip(left, right, strict=True) for value in pair]


def _gather(build: Builder, value: Value, index: Value, axis: int) -> Value:
    """The elements of `value` at `index` along an axis."""
    shape, rank = value.tensor.shape, value.tensor.rank
    columns = [
        build.reshape(index if d == axis else build.iota(index.tensor, d), (*shape, 1))
        for d in range(rank)
    ]
    everything = ", ".join(map(str, range(rank)))
    numbers = (
        f"#stablehlo.gather<collapsed_slice_dims = [{everything}], "
        f"start_index_map = [{everything}], index_vector_dim = {rank}>"
    )
    return build.op(
        "gather",
        value.tensor,
        value,
        build.concatenate(columns, rank),
        dimension_numbers=numbers,
        slice_sizes=array_text([1] * rank),
        indices_are_sorted="false",
    )


def _scatter(build: Builder, op: Op) -> Sequence[Value] | None:
    count = len(op.results)
    tensors, indices, updates = op.operands[:count], op.operands[count], op.operands[count + 1 :]
    body = op.regions[0]
    if not _is_elementwise(body) or any(v.tensor.size == 0 for v in op.operands):
        return None
    dims = numbers_of(op.attributes["scatter_dimension_numbers"])
    target = tensors[0].tensor
    starts, axes = _starts(build, indices, dims)
    window_dims = dims.get("update_window_dims", [])
    left_out = {*dims.get("inserted_window_dims", []), *dims.get("input_batching_dims", [])}
    sizes = iter(updates[0].tensor.shape[d] for d in window_dims)
    window = [1 if d in left_out else next(sizes) for d in range(target.rank)]
    rows = [d for d in range(updates[0].tensor.rank) if d not in window_dims]
    windows = starts.tensor.shape[0]
    listed = [
        build.reshape(build.transpose(value, [*rows, *window_dims]), (windows, *window))
        for value in updates
    ]
    return _loop(build, op, list(tensors), starts, axes, listed, window)


def _starts(build: Builder, indices: Value, dims: dict[str, list[int]]) -> tuple[Value, list[int]]:
    """The corners of all windows, one a row; and which dimensions of the tensor they are along."""
    vector = dims.get("index_vector_dim", [indices.tensor.rank])[0]
    element = "i32" if indices.tensor.element == "i32" else "i64"
    indices = build.convert(indices, element)
    if vector == indices.tensor.rank:
        indices = build.reshape(indices, (*indices.tensor.shape, 1))
    rest = [d for d in range(indices.tensor.rank) if d != vector]
    indices = build.transpose(indices, [*rest, vector])
    axes = list(dims.get("scatter_dims_to_operand_dims", []))
    column = indices.tensor.of((*indices.tensor.shape[:-1], 1))
    batching = zip(
        dims.get("input_batching_dims", []),
        dims.get("scatter_indices_batching_dims", []),
        strict=True,
    )
    for tensor_dim, index_dim in batching:
        along = build.iota(column, rest.index(index_dim))
        indices = build.concatenate([indices, along], column.rank - 1)
        axes.append(tensor_dim)
    return build.reshape(indices, (prod(column.shape), len(axes))), axes


def _loop(
    build: Builder,
    op: Op,
    tensors: list[Value],
    starts: Value,
    axes: list[int],
    updates: list[Value],
    window: list[int],
) -> Sequence[Value]:
    """For each window in turn: combine it with its update, where it lies inside."""
    scalar = starts.tensor.of(())
    types = [scalar, *(value.tensor for value in tensors)]

    def region() -> tuple[Builder, Recorder, list[Value]]:
        recorder = Recorder(op.source)
        return Builder(recorder, op.source), recorder, [Value(type) for type in types]

    test, test_ops, seen = region()
    limit = test.number(starts.tensor.shape[0], scalar)
    test.put(Op("stablehlo.return", [test.compare("LT", seen[0], limit)], [], {}, [], op.source))

    step, step_ops, carried = region()
    number, *current = carried
    zero = step.number(0, scalar)
    corner = [zero] * len(window)
    inside = step.number(1, TensorType((), "i1"))
    shape = tensors[0].tensor.shape
    for column, axis in enumerate(axes):
        place = [number, step.number(column, scalar)]
        at = step.op(
            "dynamic_slice", scalar.of((1, 1)), starts, *place, slice_sizes=array_text([1, 1])
        )
        corner[axis] = step.reshape(at, ())
        last = step.number(shape[axis] - window[axis], scalar)
        inside = step.both(inside, step.compare("GE", corner[axis], zero))
        inside = step.both(inside, step.compare("LE", corner[axis], last))
    old: list[Value] = []
    new: list[Value] = []
    for tensor, update in zip(current, updates, strict=True):
        size = array_text(window)
        old.append(
            step.op("dynamic_slice", tensor.tensor.of(window), tensor, *corner, slice_sizes=size)
        )
        row = [number, *[zero] * len(window)]
        one = update.tensor.of((1, *window))
        taken = step.op("dynamic_slice", one, update, *row, slice_sizes=array_text(one.shape))
        new.append(step.reshape(taken, window))
    combined = step.lift(op.regions[0], [*old, *new])
    mask = step.broadcast(inside, window, [])
    results = [
        step.op("dynamic_update_slice", tensor.tensor, tensor, step.select(mask, a, b), *corner)
        for tensor, a, b in zip(current, combined, old, strict=True)
    ]
    following = step.op("add", scalar, number, step.number(1, scalar))
    step.put(Op("stablehlo.return", [following, *results], [], {}, [], op.source))
    loop = Op(
        "stablehlo.while",
        [build.number(0, scalar), *tensors],
        [Value(type) for type in types],
        {},
        [Block(seen, test_ops.ops), Block(carried, step_ops.ops)],
        op.source,
    )
    build.put(loop)
    return loop.results[1:]


def _compare(build: Builder, op: Op) -> Sequence[Value] | None:
    if op.word("compare_type") != "TOTALORDER" or not op.operands[0].tensor.is_float:
        return None
    left, right = (_order_of(build, operand) for operand in op.operands)
    return [build.compare(op.word("comparison_direction"), left, right)]


def _order_of(build: Builder, value: Value) -> Value:
    """Integers that lie as floats do in their total order: negative ones by their other bits."""
    bits = 8 * value.tensor.dtype.itemsize
    type = TensorType(value.tensor.shape, f"i{bits}")
    raw = build.op("bitcast_convert", type, value)
    sign = build.op("shift_right_arithmetic", type, raw, build.number(bits - 1, type))
    mask = build.op("and", type, sign, build.number(2 ** (bits - 1) - 1, type))
    return build.op("xor", type, raw, mask)


EXPANDERS: dict[str, Expander] = {"sort": _sort, "scatter": _scatter, "compare": _compare}
