"""Rows of a tensor that are written at given places, as slices inserted one by one.

`cache.index_copy_(2, position, k)` and `cache[:, :, position] = k` are how a model keeps keys and
values. Through torch-mlir each element would be written at coordinates of its own; as slices they
are seen as what they are, and are written in the memory of the tensor that they replace. Writes at
several coordinates, or that add up, are left to torch-mlir.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch.fx import Node
from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType
from xdsl.ir import Block, SSAValue

from fewbit.dialects import mico
from fewbit.frontends.torch.aten import Arguments, converts, shape_of
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_index,
    index_constant,
    size_of,
    sizes_of,
    tensor_type,
)

if TYPE_CHECKING:
    from fewbit.frontends.torch.emit import Emitter


@converts("index_copy")
def index_copy(emitter: Emitter, node: Node, a: Arguments):
    rank = len(shape_of(a["self"]))
    if rank == 0:
        return None
    target, index, source = (emitter.value(a[name]) for name in ("self", "index", "source"))
    return _emit_write(emitter, lambda: _write(target, index, source, a["dim"] % rank))


@converts("index_put")
def index_put(emitter: Emitter, node: Node, a: Arguments):
    given = [(axis, index) for axis, index in enumerate(a["indices"]) if index is not None]
    if len(given) != 1 or a["accumulate"]:
        return None
    axis, index = given[0]
    if len(shape_of(index)) != 1 or index.meta["val"].dtype == torch.bool:
        return None
    wanted = list(shape_of(a["self"]))
    wanted[axis] = shape_of(index)[0]
    shape = list(shape_of(a["values"]))
    missing = [1] * (len(wanted) - len(shape))
    if list(map(str, [*missing, *shape])) != list(map(str, wanted)):
        return None
    target, places, values = (emitter.value(each) for each in (a["self"], index, a["values"]))
    return _emit_write(emitter, lambda: _put(target, places, values, axis, len(missing)))


def _emit_write(emitter: Emitter, write: Callable[[], SSAValue]) -> Sequence[SSAValue]:
    block = Block()
    with ImplicitBuilder(block):
        result = write()
    for op in list(block.ops):
        op.detach()
        emitter.add(op)
    return [result]


def _put(target: SSAValue, index: SSAValue, values: SSAValue, axis: int, missing: int) -> SSAValue:
    """Here negative places count from the end, and leading sizes of 1 may be left out."""
    if missing:
        shape = [1] * missing + [0 if s == DYNAMIC_INDEX else s for s in mico.shape_of(values.type)]
        sizes = [*[1] * missing, *sizes_of(values)]
        type = tensor_type(sizes, mico.element_type(values.type))
        values = mico.ReshapeOp.of(values, shape=shape, result_types=[type]).results[0]
    return _write(target, index, values, axis, from_end=True)


def _write(
    target: SSAValue, index: SSAValue, values: SSAValue, axis: int, from_end: bool = False
) -> SSAValue:
    """`target` with slice `i` of the values at place `index[i]` along the axis."""
    size = size_of(target, axis)

    def written(into: SSAValue, i: Size) -> SSAValue:
        at = [as_index(i)] if mico.shape_of(index.type) else []
        place = tensor.ExtractOp(index, at, mico.element_type(index.type)).result
        place = arith.IndexCastOp(place, IndexType()).result
        if from_end:
            is_negative = arith.CmpiOp(place, index_constant(0), "slt").result
            place = arith.SelectOp(
                is_negative, arith.AddiOp(place, as_index(size)).result, place
            ).result
        return _insert(_slice(values, axis, i), into, axis, place)

    count = size_of(values, axis)
    if count == 1:
        return written(target, 0)
    body = Block(arg_types=[IndexType(), target.type])
    with ImplicitBuilder(body) as (i, into):
        scf.YieldOp(written(into, i))
    bounds = (index_constant(0), as_index(count), index_constant(1))
    return scf.ForOp(*bounds, [target], body).results[0]


def _slice(values: SSAValue, axis: int, i: Size) -> SSAValue:
    if mico.shape_of(values.type)[axis] == 1:
        return values
    sizes: list[Size] = sizes_of(values)
    offsets: list[Size] = [0] * len(sizes)
    sizes[axis], offsets[axis] = 1, i
    type = tensor_type(sizes, mico.element_type(values.type))
    return tensor.ExtractSliceOp(values, offsets, sizes, [1] * len(sizes), type).result


def _insert(piece: SSAValue, into: SSAValue, axis: int, place: SSAValue) -> SSAValue:
    sizes = sizes_of(piece)
    offsets = [0] * len(sizes)
    offsets[axis] = DYNAMIC_INDEX
    return tensor.InsertSliceOp.get(
        piece,
        into,
        static_sizes=[size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes],
        static_offsets=offsets,
        offsets=[place],
        sizes=[size for size in sizes if not isinstance(size, int)],
    ).result
