"""Reshapes: the one that leads to a shape, and which dimensions one joins and splits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from xdsl.ir import Attribute, SSAValue

from fewbit.dialects import mico
from fewbit.dialects.mico.shapes import DYNAMIC, axis
from fewbit.dialects.mico.syntax import ints


class Group(NamedTuple):
    """Neighbouring dimensions of the input, and those of the result that they become."""

    before: list[int]
    after: list[int]


def groups_of(op: mico.ReshapeOp | mico.FlattenOp) -> list[Group] | None:
    """Return the smallest groups of a reshape; None where dynamic sizes hide them."""
    before = mico.shape_of(op.input.type)
    if isinstance(op, mico.FlattenOp):
        first = axis(op.start_dim.value.data, len(before), "start_dim")
        last = axis(op.end_dim.value.data, len(before), "end_dim")
        joined = Group(list(range(first, last + 1)), [first])
        behind = [Group([d], [d - last + first]) for d in range(last + 1, len(before))]
        return [*(Group([d], [d]) for d in range(first)), joined, *behind]
    return _match(*_known_apart(before, ints(op.shape), mico.shape_of(op.result.type)))


def _known_apart(
    before: Sequence[int], wanted: Sequence[int], after: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return both shapes with negative numbers for dynamic sizes, equal where the sizes are."""
    named = [-2 - d if extent == DYNAMIC else extent for d, extent in enumerate(before)]
    fresh = count(-2 - len(before), -1)
    kept = {d for d, w in enumerate(wanted) if w == 0}
    free = [name for d, name in enumerate(named) if name < 0 and d not in kept]
    result: list[int] = []
    for d, (w, extent) in enumerate(zip(wanted, after, strict=True)):
        if w == 0:
            result.append(named[d])
        elif w > 0 or extent != DYNAMIC:
            result.append(max(w, extent))
        else:
            # With one dynamic size left on either side, the two are one if the rest matches.
            result.append(free[0] if len(free) == 1 else next(fresh))
    return named, result


def _match(before: Sequence[int], after: Sequence[int]) -> list[Group] | None:
    groups: list[Group] = []
    i = j = 0
    while i < len(before) and j < len(after):
        group = Group([i], [j])
        sizes = [before[i], after[j]]
        i, j = i + 1, j + 1
        while sizes[0] != sizes[1]:
            if min(sizes) < 1 or (sizes[0] < sizes[1] and i == len(before)):
                return None
            if sizes[0] < sizes[1]:
                sizes[0] *= before[i]
                group.before.append(i)
                i += 1
            elif j == len(after):
                return None
            else:
                sizes[1] *= after[j]
                group.after.append(j)
                j += 1
        groups.append(group)
    if not groups or any(extent != 1 for extent in (*before[i:], *after[j:])):
        return None
    groups[-1].before.extend(range(i, len(before)))
    groups[-1].after.extend(range(j, len(after)))
    return groups


def reshape_to(value: SSAValue, type: Attribute, kept: int = 0) -> SSAValue | None:
    """Reshape a value, keeping its first `kept` sizes; None where sizes cannot be stated."""
    shape = mico.shape_of(type)
    wanted = [0 if d < kept else extent for d, extent in enumerate(shape)]
    if wanted.count(DYNAMIC) > 1 or 0 in shape:
        return None
    wanted = [-1 if extent == DYNAMIC else extent for extent in wanted]
    return mico.ReshapeOp.of(value, shape=wanted, result_types=[type]).result


def simpler_reshape(op: mico.ReshapeOp | mico.FlattenOp) -> Sequence[SSAValue] | None:
    """Compose a reshape with one in front of it, or drop one to the same shape."""
    if mico.shape_of(op.result.type).count(DYNAMIC) > 1:
        return None
    if op.input.type == op.result.type:
        return [op.input]
    inner = op.input.owner
    if not isinstance(inner, mico.ReshapeOp | mico.FlattenOp):
        return None
    direct = reshape_to(inner.input, op.result.type)
    return None if direct is None else [direct]
