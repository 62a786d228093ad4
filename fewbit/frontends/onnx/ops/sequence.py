"""Sequences of tensors, whose length and places are known while the graph is evaluated."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fewbit.frontends.onnx.kinds import INT64
from fewbit.frontends.onnx.table import Call, op
from fewbit.frontends.onnx.values import Known, Many, Rows, Tensorlike, Traced, Value, known


def _items(call: Call) -> Sequence[Tensorlike]:
    value = call.inputs[0]
    if not isinstance(value, Many):
        raise call.refusal("its input is no sequence")
    return value.items


@op("SequenceConstruct", tensors=0, any_sign=True)
def construct(call: Call) -> Many:
    return Many(tuple(v for v in call.inputs if isinstance(v, Tensorlike)))


@op("SequenceEmpty", tensors=0)
def empty(call: Call) -> Many:
    return Many(())


@op("SequenceAt", tensors=0, any_sign=True)
def at(call: Call) -> Value:
    return _items(call)[call.whole(1)[0]]


@op("SequenceInsert", tensors=0, any_sign=True)
def insert(call: Call) -> Many:
    items = list(_items(call))
    value = call.inputs[1]
    assert isinstance(value, Tensorlike)
    items.insert(call.whole(2)[0] if call.has(2) else len(items), value)
    return Many(tuple(items))


@op("SequenceErase", tensors=0, any_sign=True)
def erase(call: Call) -> Many:
    items = list(_items(call))
    items.pop(call.whole(1)[0] if call.has(1) else -1)
    return Many(tuple(items))


@op("SequenceLength", tensors=0, any_sign=True)
def length(call: Call) -> Known:
    return known(len(_items(call)), INT64)


@op("ConcatFromSequence", tensors=0, any_sign=True)
def concat(call: Call) -> Known | Traced:
    items = _items(call)
    if isinstance(items, Rows):
        return _join_rows(call, items.whole)
    tensors = [call.evaluator.tensor(item, call.folding) for item in items]
    join = torch.stack if call.attr("new_axis", 0) else torch.cat
    result = join(tensors, call.attr("axis"))
    return call.result(result, items[0].kind)


def _join_rows(call: Call, whole: Known | Traced) -> Known | Traced:
    """The same of the rows of one tensor, whose number may be dynamic."""
    tensor = call.evaluator.tensor(whole, call.folding)
    if call.attr("new_axis", 0):
        return call.result(tensor.movedim(0, call.attr("axis")), whole.kind)
    axis = call.axis(tensor.ndim - 1, 0)
    return call.result(tensor.movedim(0, axis).flatten(axis, axis + 1), whole.kind)


@op("SplitToSequence", tensors=1, any_sign=True)
def split(call: Call, x: Tensor) -> Many:
    axis = call.axis(x.ndim, 0)
    size = int(x.shape[axis])
    keep = bool(call.attr("keepdims", 1))
    if not call.has(1):
        parts = [x.narrow(axis, i, 1) for i in range(size)]
        parts = parts if keep else [part.squeeze(axis) for part in parts]
    else:
        lengths = call.whole(1)
        if len(_shape(call)) == 0:
            each = lengths[0]
            lengths = [each] * (size // each) + ([size % each] if size % each else [])
        parts = [x.narrow(axis, sum(lengths[:i]), n) for i, n in enumerate(lengths)]
    hold = Known if call.folding else Traced
    return Many(tuple(hold(part, call.kind(0)) for part in parts))


def _shape(call: Call) -> tuple[object, ...]:
    return call.shape(1) if call.has(1) else ()
