"""Rows of a tensor that are written at given places, as slices inserted one by one.

`cache.index_copy_(2, position, k)` and `cache[:, :, position] = k` are how a model keeps keys and
values. Through torch-mlir each element would be written at coordinates of its own; as slices they
are seen as what they are, and are written in the memory of the tensor that they replace. So are
writes along several dimensions at once, `cache[:, :, block, :, place] = k`. Those that add up, or
whose places are in a tensor of more than one dimension, are left to torch-mlir.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    axis = a["dim"] % rank
    return _emit_write(emitter, lambda: _write(target, {axis: index}, source, axis))


@converts("index_put")
def index_put(emitter: Emitter, node: Node, a: Arguments):
    given = {axis: index for axis, index in enumerate(a["indices"]) if index is not None}
    if not given or a["accumulate"]:
        return None
    for index in given.values():
        if len(shape_of(index)) != 1 or index.meta["val"].dtype == torch.bool:
            return None
    counts = {str(shape_of(index)[0]) for index in given.values()}
    if len(counts) != 1:
        return None
    first, last = min(given), max(given)
    at = first if last - first == len(given) - 1 else 0  # where PyTorch has the places of values
    wanted = [str(size) for axis, size in enumerate(shape_of(a["self"])) if axis not in given]
    wanted.insert(at, counts.pop())
    shape = [str(size) for size in shape_of(a["values"])]
    missing = len(wanted) - len(shape)
    if [*["1"] * missing, *shape] != wanted:
        return None
    target, values = emitter.value(a["self"]), emitter.value(a["values"])
    places = {axis: emitter.value(index) for axis, index in given.items()}
    return _emit_write(emitter, lambda: _put(target, places, values, at, missing))


def _emit_write(emitter: Emitter, write: Callable[[], SSAValue]) -> Sequence[SSAValue]:
    block = Block()
    with ImplicitBuilder(block):
        result = write()
    for op in list(block.ops):
        op.detach()
        emitter.add(op)
    return [result]


def _put(
    target: SSAValue, indices: Mapping[int, SSAValue], values: SSAValue, at: int, missing: int
) -> SSAValue:
    """Here negative places count from the end, and leading sizes of 1 may be left out."""
    if missing:
        shape = [1] * missing + [0 if s == DYNAMIC_INDEX else s for s in mico.shape_of(values.type)]
        sizes = [*[1] * missing, *sizes_of(values)]
        type = tensor_type(sizes, mico.element_type(values.type))
        values = mico.ReshapeOp.of(values, shape=shape, result_types=[type]).results[0]
    return _write(target, indices, values, at, from_end=True)


def _write(
    target: SSAValue,
    indices: Mapping[int, SSAValue],
    values: SSAValue,
    at: int,
    from_end: bool = False,
) -> SSAValue:
    """`target` with slice `i` of the values, along `at`, at the places `i` of the indices."""

    def write(into: SSAValue, i: Size) -> SSAValue:
        places = {
            axis: _place(index, i, size_of(target, axis) if from_end else None)
            for axis, index in indices.items()
        }
        return _insert(_spread(_slice(values, at, i), into, places), into, places)

    count = size_of(values, at)
    if count == 1:
        return write(target, 0)
    body = Block(arg_types=[IndexType(), target.type])
    with ImplicitBuilder(body) as (i, into):
        scf.YieldOp(write(into, i))
    bounds = (index_constant(0), as_index(count), index_constant(1))
    return scf.ForOp(*bounds, [target], body).results[0]


def _place(index: SSAValue, i: Size, size: Size | None) -> SSAValue:
    """Return place `i` of an index; negative ones count from the end of a `size` that is given."""
    at = [as_index(i)] if mico.shape_of(index.type) else []
    place = tensor.ExtractOp(index, at, mico.element_type(index.type)).result
    place = arith.IndexCastOp(place, IndexType()).result
    if size is None:
        return place
    is_negative = arith.CmpiOp(place, index_constant(0), "slt").result
    from_end = arith.AddiOp(place, as_index(size)).result
    return arith.SelectOp(is_negative, from_end, place).result


def _spread(piece: SSAValue, into: SSAValue, places: Mapping[int, SSAValue]) -> SSAValue:
    """Return a piece with a size of 1 in each dimension that has a place."""
    if len(places) == 1:
        return piece
    sizes: list[Size] = sizes_of(into)
    spelled = [-1 if size == DYNAMIC_INDEX else size for size in mico.shape_of(into.type)]
    for axis in places:
        sizes[axis] = spelled[axis] = 1
    type = tensor_type(sizes, mico.element_type(piece.type))
    return mico.ReshapeOp.of(piece, shape=spelled, result_types=[type]).results[0]


def _slice(values: SSAValue, axis: int, i: Size) -> SSAValue:
    if mico.shape_of(values.type)[axis] == 1:
        return values
    sizes: list[Size] = sizes_of(values)
    offsets: list[Size] = [0] * len(sizes)
    sizes[axis], offsets[axis] = 1, i
    type = tensor_type(sizes, mico.element_type(values.type))
    return tensor.ExtractSliceOp(values, offsets, sizes, [1] * len(sizes), type).result


def _insert(piece: SSAValue, into: SSAValue, places: Mapping[int, SSAValue]) -> SSAValue:
    sizes = sizes_of(piece)
    offsets = [DYNAMIC_INDEX if axis in places else 0 for axis in range(len(sizes))]
    return tensor.InsertSliceOp.get(
        piece,
        into,
        static_sizes=[size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes],
        static_offsets=offsets,
        offsets=[places[axis] for axis in sorted(places)],
        sizes=[size for size in sizes if not isinstance(size, int)],
    ).result
